/** The state of the caller's rate limit as of one answer. */
export interface RateLimit {
  /** Requests allowed in a window. */
  readonly limit: number;
  /** Requests left in the window. */
  readonly remaining: number;
  /** When the window ends. */
  readonly reset: Date;
}

/** What is known about a failure besides its message. */
export interface ErrorFacts {
  status?: number | undefined;
  requestId?: string | undefined;
  retryAfterMs?: number | undefined;
  rateLimit?: RateLimit | undefined;
  fields?: readonly string[] | undefined;
  currentEtag?: string | undefined;
  cause?: unknown;
}

/** What a failure tells about the request: whether another attempt may help, and whether it may repeat a change. */
export type Outcome = "not-applied" | "unknown" | "final";

/** The base of all errors of this package. `message` is the server's own where it gave one. */
export class AgentCfgError extends Error {
  override readonly name: string = "AgentCfgError";
  /** The status of the answer, if one came. */
  readonly status: number | undefined;
  /** The identifier of the request, which finds the entry in the server's log. */
  readonly requestId: string | undefined;
  /** How long the server asks to wait before the next request. */
  readonly retryAfterMs: number | undefined;
  /** The rate limit as of this answer. */
  readonly rateLimit: RateLimit | undefined;
  /**
   * The fields and parameters that break a rule (400), such as `display_name` and `capabilities[2]`: each once, in the
   * order of the message. Empty where the server names none; of very many it names the first.
   */
  readonly fields: readonly string[];
  /**
   * The entity tag that the record has now, of a change whose `ifMatch` is not met (412). The server names it to
   * callers that may read the record. It tells whether a copy is the current one, and is no reason to send the same
   * change with this tag: that would overwrite what another caller has changed.
   */
  readonly currentEtag: string | undefined;
  /**
   * Whether the server may have made the requested change although the call failed. Then read the record before another
   * attempt.
   */
  mayHaveBeenApplied = false;
  /** What the failure tells about the request. */
  readonly outcome: Outcome = "final";

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.status = facts.status;
    this.requestId = facts.requestId;
    this.retryAfterMs = facts.retryAfterMs;
    this.rateLimit = facts.rateLimit;
    this.fields = facts.fields ?? [];
    this.currentEtag = facts.currentEtag;
  }
}

/** Options or arguments that make no valid request: nothing was sent. */
export class InputError extends AgentCfgError {
  override readonly name: string = "InputError";
}

/** An agent that the label does not release, or that is not active. */
export class UnknownAgentError extends InputError {
  override readonly name: string = "UnknownAgentError";
}

/** Nothing is known of the agents yet: `ready()` has not been awaited. */
export class NotReadyError extends InputError {
  override readonly name: string = "NotReadyError";
}

/** The function that returns the key has failed: nothing was sent. Its own error is the `cause`. */
export class CredentialError extends AgentCfgError {
  override readonly name: string = "CredentialError";
  override readonly outcome: Outcome = "not-applied";
}

/** No connection could be made, or it broke before the end of the answer. */
export class ConnectionError extends AgentCfgError {
  override readonly name: string = "ConnectionError";
  override readonly outcome: Outcome;
  /** Whether the request was certainly not sent. */
  readonly isUnsent: boolean;

  constructor(message: string, outcome: Outcome, facts: ErrorFacts = {}) {
    super(message, facts);
    this.outcome = outcome;
    this.isUnsent = outcome !== "unknown";
  }
}

/** No answer came in time. */
export class TimeoutError extends AgentCfgError {
  override readonly name: string = "TimeoutError";
  override readonly outcome: Outcome = "unknown";
}

/** An answer that this client cannot read. */
export class UnreadableAnswerError extends AgentCfgError {
  override readonly name: string = "UnreadableAnswerError";
}

/** A server has answered from a state before one that was seen already. */
export class LaggingError extends AgentCfgError {
  override readonly name: string = "LaggingError";
  override readonly outcome: Outcome = "unknown";
}

/** An answer with a status other than success. The classes below are those of the statuses with a meaning of their own. */
export class StatusError extends AgentCfgError {
  override readonly name: string = "StatusError";
  override readonly status: number;
  override readonly outcome: Outcome;
  /** Whether the answer has the form of the service's own. Those of a proxy have another one. @internal */
  isOfService = false;

  constructor(message: string, status: number, outcome: Outcome, facts: ErrorFacts = {}) {
    super(message, { ...facts, status });
    this.status = status;
    this.outcome = outcome;
  }
}

/** 400: the request breaks a rule. The message names the field and the rule, and `fields` has the names. */
export class InvalidRequestError extends StatusError {
  override readonly name: string = "InvalidRequestError";
}

/** 401: the credential is missing, wrong, expired or revoked. */
export class UnauthorizedError extends StatusError {
  override readonly name: string = "UnauthorizedError";
}

/** 403: the credential does not allow this. */
export class ForbiddenError extends StatusError {
  override readonly name: string = "ForbiddenError";
}

/** 404: the record does not exist. */
export class NotFoundError extends StatusError {
  override readonly name: string = "NotFoundError";
}

/** 409: the request conflicts with the current state. */
export class ConflictError extends StatusError {
  override readonly name: string = "ConflictError";
}

/** 410: the position in the change feed is no longer one of the workspace. Read the list again. */
export class GoneError extends StatusError {
  override readonly name: string = "GoneError";
}

/** 412: the record is not in the state that the request is based on. `currentEtag` is its tag now. */
export class PreconditionFailedError extends StatusError {
  override readonly name: string = "PreconditionFailedError";
}

/** 422: a limit of the plan or the workspace is reached. */
export class LimitReachedError extends StatusError {
  override readonly name: string = "LimitReachedError";
}

/** 429: the rate limit, or the limit of streams, is reached. */
export class RateLimitedError extends StatusError {
  override readonly name: string = "RateLimitedError";
}

/** 503: the service, or a proxy in front of it, is temporarily unavailable. */
export class UnavailableError extends StatusError {
  override readonly name: string = "UnavailableError";
}

const CLASSES: Record<number, typeof StatusError> = {
  400: InvalidRequestError,
  401: UnauthorizedError,
  403: ForbiddenError,
  404: NotFoundError,
  409: ConflictError,
  410: GoneError,
  412: PreconditionFailedError,
  422: LimitReachedError,
  429: RateLimitedError,
  503: UnavailableError,
};

/**
 * The error of an answer. `isOfService` tells the service's own answers from those of a proxy: only a 503 of the service with
 * `Retry-After` promises that nothing was changed.
 *
 * @internal
 */
export function statusError(message: string, status: number, isOfService: boolean, facts: ErrorFacts): StatusError {
  const isOwn = isOfService && facts.requestId !== undefined;
  const isPromised = status === 503 && isOwn && facts.retryAfterMs !== undefined;
  const outcome: Outcome = status === 429 || isPromised ? "not-applied" : status >= 502 && status <= 504 ? "unknown" : "final";
  const error = new (CLASSES[status] ?? StatusError)(message, status, outcome, facts);
  error.isOfService = isOwn;
  return error;
}

/** Whether the service itself, and no proxy in front of it, refuses the credential or the request. @internal */
export function isRefusal(error: unknown): boolean {
  if (error instanceof InputError) return true;
  return error instanceof StatusError && error.isOfService && [400, 401, 403].includes(error.status);
}

/** Whether a failure may pass by itself. @internal */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof AgentCfgError)) return false;
  return error.outcome !== "final" || error.status === 408 || (error.status ?? 0) >= 500;
}

/** Whether the server may have made the change of a failed call. @internal */
export function mayBeApplied(error: AgentCfgError): boolean {
  if (error instanceof InputError || error.outcome === "not-applied") return false;
  if (error instanceof ConnectionError) return error.outcome === "unknown";
  if (error instanceof StatusError) return error.status < 400 || error.status >= 500;
  return true;
}
