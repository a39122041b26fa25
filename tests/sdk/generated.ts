// A client that openapi-typescript generated from /openapi.json, as its users write it: for tests/clients/typescript.rs,
// which compiles this file with all checks of the compiler.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { env: Record<string, string | undefined> };

type Agent = components["schemas"]["Agent"];

const need = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is missing`);
  return value;
};
const workspace_id = need("WORKSPACE_ID");
const client = createClient<paths>({
  baseUrl: need("AGENTCFG_URL"),
  headers: { Authorization: `Bearer ${need("AGENTCFG_API_KEY")}` },
});
const agents = "/api/agents/configs";

// A create needs the required fields alone.
const made = await client.POST(agents, { body: { workspace_id, agent_id: "writer", display_name: "Writer" } });
if (made.data === undefined) throw new Error(made.error.error);
const agent: Agent = made.data;
const etag = made.response.headers.get("ETag") ?? "";

const listed = await client.GET(agents, { params: { query: { workspace_id, limit: 10 } } });
const names: string[] = (listed.data ?? []).map((agent) => agent.agent_id);

const patch = {
  params: { query: { agent_id: "writer" }, header: { "If-Match": etag } },
  body: { role: "Author", model: null, parameters: { creativity: 0.4 } },
};
const changed = await client.PATCH(agents, patch);
const stale = await client.PATCH(agents, patch);

// @ts-expect-error: display_name is required.
const refused = await client.POST(agents, { body: { workspace_id, agent_id: "editor" } });

const query = { agent_id: "writer" };
const chat = await client.POST("/api/agents/model-calls/openai/v1/chat/completions", {
  params: { query },
  body: { messages: [{ role: "user", content: "Hello" }] },
});
// The generator encodes the slash of the path.
const other = await client.POST("/api/agents/model-calls/{provider}/{path}", {
  params: { path: { provider: "openai", path: "v1/chat/completions" }, query },
  body: { messages: [] },
});

const who = await client.GET("/api/whoami");
const scope: components["schemas"]["Scope"] | null | undefined = who.data?.workspaces[0]?.scope;

// The refusal of a model call has the form of the provider, which has the message in an object.
type Refusal = { error: string | { message: string } };
const message = ({ error }: Refusal) => (typeof error === "string" ? error : error.message);
const outcome = (answer: { response: Response; error?: Refusal }) => ({
  status: answer.response.status,
  error: answer.error ? message(answer.error) : null,
});
console.log(
  JSON.stringify({
    made: { type: agent.agent_type, role: agent.role, capabilities: agent.capabilities },
    names,
    changed: { role: changed.data?.role, parameters: changed.data?.parameters },
    stale: outcome(stale),
    refused: outcome(refused),
    chat: outcome(chat),
    other: outcome(other),
    scope,
  }),
);
