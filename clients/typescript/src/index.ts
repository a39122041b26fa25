export { AgentCfg, type AgentCfgOptions } from "./agentcfg.js";
export type { CacheStorage } from "./cache.js";
export { Client, type ClientOptions } from "./client.js";
export {
  AgentCfgError,
  ConflictError,
  ConnectionError,
  CredentialError,
  ForbiddenError,
  GoneError,
  InputError,
  InvalidRequestError,
  LaggingError,
  LimitReachedError,
  NotFoundError,
  NotReadyError,
  PreconditionFailedError,
  type RateLimit,
  RateLimitedError,
  StatusError,
  TimeoutError,
  UnauthorizedError,
  UnavailableError,
  UnknownAgentError,
  UnreadableAnswerError,
} from "./errors.js";
export type { Followed } from "./follow.js";
export type * from "./generated.js";
export type { Health } from "./mirror.js";
export type { Variables } from "./prompt.js";
export type { AnthropicClient, OpenAIClient, ProviderOptions } from "./providers.js";
export type { AgentRelease, Frozen } from "./release.js";
export type { AgentList, VersionedAgent } from "./rest/agents.js";
export type { CallOptions, ChangeOptions, ConditionalOptions, Tagged } from "./rest/caller.js";
export type { ChangePage } from "./rest/changes.js";
export type { ReleasedList, TrialOptions } from "./rest/labels.js";
export type { StatusHistory } from "./rest/status.js";
export type { VersionSelector } from "./rest/versions.js";
export type { AgentChange, Snapshot, SnapshotChange } from "./snapshot.js";
export type { AgentSource } from "./source.js";
export type { Work } from "./status-scope.js";
export type { Key, RetryPolicy, Timeouts } from "./transport.js";
export { VERSION } from "./version.js";
export { verifyWebhook, type WebhookEvent, type WebhookOptions, WebhookVerificationError } from "./webhook.js";
