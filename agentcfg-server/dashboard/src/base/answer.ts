/** A model call as an agent, streamed. */
import { ApiError, call, failure, send, Unreachable } from "./api";
import { events } from "./events";
import { can } from "./session";

export interface Answer {
  text: string;
  running: boolean;
  error: unknown;
  /** How it ended before its end: by the user, or by the provider. */
  ended: "stopped" | "cut" | null;
  /** "v3", or "draft". */
  version: string | null;
  /** The model that answered, and which attempt it was. */
  model: string | null;
  attempts: number;
  input: number | null;
  output: number | null;
  /** USD, as the usage says it, once it does. */
  cost: number | null;
  /** Milliseconds until the first piece of text, and in all. */
  first: number | null;
  took: number;
}

interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  prompt_tokens?: number;
  completion_tokens?: number;
}

interface Chunk {
  delta?: { text?: string };
  message?: { usage?: Usage };
  choices?: { delta?: { content?: string | null } }[];
  usage?: Usage | null;
  error?: { message?: string };
}

export interface Message {
  role: "system" | "user" | "assistant";
  content: string;
}

const MOST_TOKENS = 1024;

/** JSON in ASCII, for a header field. */
const ascii = (value: unknown): string =>
  JSON.stringify(value).replace(/[^\x20-\x7e]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`);

export interface Asked {
  provider: string;
  api: string;
  /** Names the agent and its version. */
  query: Record<string, string>;
  /** Only where it is not that of the version. */
  model: string | null;
  /** What a draft says itself, because no version of the server has it. */
  draft: { system: string; settings: object } | null;
  /** The version sets its own limit. */
  limited: boolean;
  messages: Message[];
  variables: Record<string, string>;
}

/** Usage is written within a second of the end of a call. */
const WRITTEN = 1_500;

async function costOf({ workspace_id, agent_id }: Record<string, string>, request: string): Promise<number | null> {
  await new Promise((resolve) => setTimeout(resolve, WRITTEN));
  const { data } = await call<{ request_id: string; cost_usd: string | null }[]>("GET", "api/usage/calls", {
    query: { workspace_id, agent_id, limit: 100 },
  });
  const cost = data.find(({ request_id }) => request_id === request)?.cost_usd;
  return cost == null ? null : Number(cost);
}

/** Asks, and shows each state of the answer. A provider speaks the API of Anthropic, or that of OpenAI. */
export async function ask(asked: Asked, signal: AbortSignal, show: (answer: Answer) => void): Promise<void> {
  const { provider, api, query, model, draft, limited, messages, variables } = asked;
  const anthropic = api === "anthropic";
  const started = performance.now();
  let answer: Answer = {
    text: "",
    running: true,
    error: null,
    ended: null,
    version: null,
    model: null,
    attempts: 1,
    input: null,
    output: null,
    cost: null,
    first: null,
    took: 0,
  };
  const say = (change: Partial<Answer>): void => show((answer = { ...answer, ...change, took: performance.now() - started }));
  say({});
  try {
    const response = await send("POST", `api/agents/model-calls/${provider}/v1/${anthropic ? "messages" : "chat/completions"}`, {
      query,
      body: {
        ...draft?.settings,
        ...(model ? { model } : {}),
        ...(!anthropic ? { stream_options: { include_usage: true } } : limited ? {} : { max_tokens: MOST_TOKENS }),
        // The server puts in the persona of the stored version where a call has none: an empty list is one.
        ...(draft && anthropic ? { system: draft.system || [] } : {}),
        stream: true,
        messages: draft && !anthropic ? [{ role: "system", content: draft.system }, ...messages] : messages,
      },
      ...(Object.keys(variables).length ? { headers: { "Agent-Variables": ascii(variables) } } : {}),
      signal,
    });
    if (!response.ok) throw await failure(response, response.headers.get("WWW-Authenticate") !== null);
    const version = response.headers.get("Agent-Version");
    say({
      version: draft ? "draft" : version && `v${version}`,
      model: response.headers.get("Agent-Model"),
      attempts: Number(response.headers.get("Agent-Attempts")) || 1,
    });
    for await (const data of events(response)) {
      if (data === "[DONE]") break;
      const chunk = JSON.parse(data) as Chunk;
      if (chunk.error) throw new ApiError(0, chunk.error.message ?? "The provider ended with an error.", null, null);
      const piece = chunk.delta?.text ?? chunk.choices?.[0]?.delta?.content ?? "";
      const usage = chunk.usage ?? chunk.message?.usage;
      if (piece || usage)
        say({
          text: answer.text + piece,
          first: answer.first ?? (piece ? performance.now() - started : null),
          input: usage?.input_tokens ?? usage?.prompt_tokens ?? answer.input,
          output: usage?.output_tokens ?? usage?.completion_tokens ?? answer.output,
        });
    }
    say({ running: false });
    const request = response.headers.get("X-Request-Id");
    if (request && can("analytics:read")) show({ ...answer, cost: await costOf(query, request).catch(() => null) });
  } catch (error) {
    // What the provider or the server says is shown; without a word the answer broke off.
    const said = error instanceof ApiError || error instanceof Unreachable;
    say({ running: false, ...(signal.aborted ? { ended: "stopped" } : said ? { error } : { ended: "cut" }) });
  }
}
