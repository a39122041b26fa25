// A receiver of webhooks, as docs/webhooks.md shows it.
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const verifier = new Webhook(process.env.WEBHOOK_SECRET);
const [host, port] = process.env.LISTEN.split(":");

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    // The signature is over the bytes as they came, so the body is verified before it is used.
    const event = verifier.verify(Buffer.concat(chunks).toString(), request.headers);
    console.log(request.headers["webhook-id"], event.type, event.data.target.id);
    response.writeHead(204).end();
  } catch {
    response.writeHead(401).end();
  }
}).listen(Number(port), host, () => console.log("listening"));
