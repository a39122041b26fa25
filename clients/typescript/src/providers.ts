// The official SDKs of model providers, set up to call through the server.
import { InputError } from "./errors.js";
import type { Variables } from "./prompt.js";
import { urlPart } from "./transport.js";

/** Options of a provider's SDK: whatever its client takes besides what is set here, and the values of the agent's variables. */
export interface ProviderOptions {
  /** Values for the variables of the persona, in each call of this client. */
  variables?: Variables | undefined;
  /** Another provider of the server that speaks the same API, by its id. */
  provider?: string | undefined;
  [option: string]: unknown;
}

// The packages are optional: without one of them its client has the type `any`.
/** The client of the package `openai`. */
/** @ts-ignore */
export type OpenAIClient = import("openai").default;
/** The client of the package `@anthropic-ai/sdk`. */
/** @ts-ignore */
export type AnthropicClient = import("@anthropic-ai/sdk").default;

/** @internal */
export interface ProviderTarget {
  base: string;
  key: string;
  agentId: string;
  label: string;
  workspace: string | undefined;
}

/** @internal */
export async function openaiClient(target: ProviderTarget, options: ProviderOptions): Promise<OpenAIClient> {
  let sdk: typeof import("openai");
  try {
    sdk = await import("openai");
  } catch (error) {
    throw new InputError("the package openai is not installed: npm install openai", { cause: error });
  }
  const { OpenAI } = sdk;
  const baseURL = `${baseUrl(target, options, "openai")}/v1`;
  // Without `null` the SDK takes these from the environment, for an account of OpenAI itself.
  const account = { organization: null, project: null };
  return new OpenAI({ ...account, ...shared(target, options), baseURL, apiKey: target.key });
}

/** @internal */
export async function anthropicClient(target: ProviderTarget, options: ProviderOptions): Promise<AnthropicClient> {
  let sdk: typeof import("@anthropic-ai/sdk");
  try {
    sdk = await import("@anthropic-ai/sdk");
  } catch (error) {
    throw new InputError("the package @anthropic-ai/sdk is not installed: npm install @anthropic-ai/sdk", { cause: error });
  }
  const { Anthropic } = sdk;
  // The SDK sends `authToken` as the bearer; `apiKey: null` keeps it from sending another key along.
  const baseURL = baseUrl(target, options, "anthropic");
  return new Anthropic({ ...shared(target, options), baseURL, authToken: target.key, apiKey: null });
}

/** The base URL of an agent's calls: the path names the agent and the label. */
function baseUrl(target: ProviderTarget, options: ProviderOptions, provider: string): string {
  const [id, agent] = [options.provider ?? provider, target.agentId].map(urlPart);
  return `${target.base}/api/agents/model-calls/${id}/@${agent}:${target.label}`;
}

function shared(target: ProviderTarget, { variables, provider: _, ...options }: ProviderOptions) {
  const query = target.workspace === undefined ? {} : { workspace_id: target.workspace };
  // The SDKs take further headers from the environment, among them perhaps a key of the provider itself.
  const bearer = { Authorization: `Bearer ${target.key}` };
  const headers = variables === undefined ? bearer : { ...bearer, "Agent-Variables": headerJson(variables) };
  return {
    ...options,
    defaultQuery: { ...(options["defaultQuery"] as Record<string, string> | undefined), ...query },
    defaultHeaders: { ...(options["defaultHeaders"] as Record<string, string> | undefined), ...headers },
  };
}

/** JSON of ASCII characters alone, as a header needs it. */
function headerJson(value: unknown): string {
  return JSON.stringify(value).replace(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}
