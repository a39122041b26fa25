import assert from "node:assert/strict";
import { test } from "node:test";
import { verifyWebhook, type WebhookEvent, WebhookVerificationError } from "../src/index.js";
import { Inbox, scripted, Server } from "./server.js";

// The public vector of Standard Webhooks.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const body = '{"test": 2432232314}';
const now = new Date(1_614_265_330_000);
const headers = {
  "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "webhook-timestamp": "1614265330",
  "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
};

test("the public vector is accepted in each form", async () => {
  const event = (await verifyWebhook(body, headers, secret, { now })) as unknown;
  assert.deepEqual(event, { test: 2_432_232_314 });
  const forms = [new Headers(headers), { ...headers, "Webhook-Id": headers["webhook-id"] }];
  for (const form of forms) await verifyWebhook(new TextEncoder().encode(body), form, secret.slice("whsec_".length), { now });
  const several = { ...headers, "webhook-signature": `v2,x v1,AAAA ${headers["webhook-signature"]}` };
  await verifyWebhook(body, several, secret, { now });
});

test("anything else is refused", async () => {
  const refused: [name: string, body: string, headers: Record<string, string>, secret: string, now: Date, message: RegExp][] = [
    ["another body", `${body} `, headers, secret, now, /no signature fits/],
    ["another id", body, { ...headers, "webhook-id": "msg_2" }, secret, now, /no signature fits/],
    ["another secret", body, headers, "whsec_AAAA", now, /no signature fits/],
    ["no secret", body, headers, "whsec_", now, /the secret is not/],
    ["a secret that is no base64", body, headers, "whsec_%%%", now, /the secret is not/],
    [
      "another version",
      body,
      { ...headers, "webhook-signature": headers["webhook-signature"].replace("v1", "v2") },
      secret,
      now,
      /no signature fits/,
    ],
    ["an empty signature", body, { ...headers, "webhook-signature": "v1," }, secret, now, /no signature fits/],
    ["an old one", body, headers, secret, new Date(now.getTime() + 301_000), /too far/],
    ["one of the future", body, headers, secret, new Date(now.getTime() - 301_000), /too far/],
    ["no time", body, { ...headers, "webhook-timestamp": "soon" }, secret, now, /not a number/],
    ["no header", body, { "webhook-id": "x" }, secret, now, /webhook-timestamp is missing/],
  ];
  for (const [name, text, given, key, present, message] of refused) {
    await assert.rejects(verifyWebhook(text, given, key, { now: present }), (error) => {
      assert.ok(error instanceof WebhookVerificationError, name);
      assert.match(error.message, message, name);
      return true;
    });
  }
});

test("what the server sends is accepted, with the secret before and after a rotation", async () => {
  const deliveries = new Inbox<{ text: string; headers: Record<string, string | string[] | undefined> }>();
  const receiver = await scripted((request, response) => {
    deliveries.put({ text: request.text, headers: request.headers });
    response.writeHead(204).end();
  });
  const host = new URL(receiver.url).host;
  const server = await Server.start({ AGENTCFG_WEBHOOK_ALLOWED_HOSTS: host });
  const studio = await server.studio();
  const { webhooks } = await studio.client();
  const webhook = await webhooks.create({ url: `${receiver.url}/hook`, types: ["label.*"] });
  await studio.released(["a", "b"]);
  const first = await deliveries.next("a delivery");
  const event: WebhookEvent = await verifyWebhook(first.text, first.headers, webhook.secret);
  assert.equal(event.type, "label.promoted");
  assert.deepEqual(event.data.labels?.[0], { agent_id: "a", label: "production", from: null, to: 1 });
  await assert.rejects(
    verifyWebhook(first.text.replace("production", "staging"), first.headers, webhook.secret),
    WebhookVerificationError,
  );

  const rotated = await webhooks.rotateSecret(webhook.id);
  const outcome = await webhooks.test(webhook.id);
  assert.equal(outcome.status, 204);
  const second = await deliveries.next("a test");
  for (const key of [webhook.secret, rotated.secret]) {
    assert.equal((await verifyWebhook(second.text, second.headers, key)).type, "webhook.test");
  }
  await webhooks.replay(webhook.id, webhook.cursor);
  const again = await deliveries.next("the first event again");
  assert.equal(again.headers["webhook-id"], first.headers["webhook-id"]);
  assert.equal((await webhooks.update(webhook.id, { enabled: false })).enabled, false);
  assert.ok((await webhooks.deliveries(webhook.id)).length >= 2);
  assert.equal((await webhooks.list()).length, 1);
  await webhooks.delete(webhook.id);
  assert.deepEqual(await webhooks.list(), []);
});
