// Webhooks as they arrive: the signature of Standard Webhooks.
import type { Action, Actor, ApplyAction, Target, Timestamp } from "./generated.js";

/** The body of a webhook. */
export interface WebhookEvent {
  type: Action | "webhook.test";
  timestamp: Timestamp;
  data: {
    workspace_id: string;
    /** The number of the event in the workspace; null for a test. */
    revision: number | null;
    /** The last one that this webhook was given before, so that a gap shows. */
    previous_revision: number | null;
    actor: Actor;
    target: Target;
    version: number | null;
    /** The labels that moved, in events of labels: at most 100. */
    labels?: { agent_id: string; label: string; from: number | null; to: number | null }[];
    /** The agents of `agents.applied`: at most 100. */
    agents?: { agent_id: string; action: ApplyAction; version: number }[];
    /** Whether there are more labels or agents than the lists have. */
    truncated?: boolean;
  };
}

/** A webhook that is not from the server, or too old. Answer it with 400. */
export class WebhookVerificationError extends Error {
  override readonly name = "WebhookVerificationError";
}

/** Options of `verifyWebhook`. */
export interface WebhookOptions {
  /** How far the time of the attempt may lie from the present, in seconds. The default is 300. */
  toleranceSeconds?: number;
  /** The present; for tests. */
  now?: Date;
}

type HeaderValues = { get(name: string): string | null } | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Checks the signature of a webhook and returns its body. Give it the bytes as they came: JSON that is parsed and written again
 * has another signature. `headers` are those of the request, in Node.js or of `fetch`. The identifier `webhook-id` is the same on
 * each attempt: keep it to handle an event once.
 *
 * @throws WebhookVerificationError
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: HeaderValues,
  secret: string,
  options: WebhookOptions = {},
): Promise<WebhookEvent> {
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = header(headers, name);
    if (value === undefined) throw new WebhookVerificationError(`the header ${name} is missing`);
    return value;
  }) as [string, string, string];
  const age = Math.abs((options.now ?? new Date()).getTime() / 1000 - Number(timestamp));
  if (!/^\d+$/.test(timestamp)) throw new WebhookVerificationError("webhook-timestamp is not a number of seconds");
  if (age > (options.toleranceSeconds ?? 300))
    throw new WebhookVerificationError("webhook-timestamp is too far from the present");
  const text = typeof body === "string" ? body : new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const prefix = new TextEncoder().encode(`${id}.${timestamp}.`);
  const signed = new Uint8Array(prefix.length + bytes.length);
  signed.set(prefix);
  signed.set(bytes, prefix.length);
  const raw = base64(secret.replace(/^whsec_/, ""));
  if (raw === undefined || raw.length === 0) throw new WebhookVerificationError("the secret is not whsec_ and base64");
  const { subtle } = globalThis.crypto;
  const key = await subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
  for (const signature of signatures.split(" ")) {
    const [version, value] = signature.split(",", 2);
    const given = version === "v1" && value !== undefined ? base64(value) : undefined;
    // The comparison takes the same time wherever the two differ.
    if (given !== undefined && (await subtle.verify("HMAC", key, given, signed))) return parsed(text);
  }
  throw new WebhookVerificationError("no signature fits the body and the secret");
}

function parsed(text: string): WebhookEvent {
  try {
    return JSON.parse(text) as WebhookEvent;
  } catch {
    throw new WebhookVerificationError("the body is not JSON");
  }
}

function header(headers: HeaderValues, name: string): string | undefined {
  if (typeof headers.get === "function") return (headers as Headers).get(name) ?? undefined;
  const found = Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  return typeof found === "string" ? found : undefined;
}

function base64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (unit) => unit.charCodeAt(0));
  } catch {
    return undefined;
  }
}
