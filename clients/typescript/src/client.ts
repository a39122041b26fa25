import { systemClock } from "./clock.js";
import { InputError, type RateLimit } from "./errors.js";
import {
  ApiKeys,
  AuditLog,
  Budgets,
  Members,
  Models,
  Operators,
  System,
  Usage,
  Webhooks,
  Workspaces,
} from "./rest/administration.js";
import { Agents } from "./rest/agents.js";
import { Caller } from "./rest/caller.js";
import { Changes } from "./rest/changes.js";
import { Labels } from "./rest/labels.js";
import { Prompts } from "./rest/prompts.js";
import { Statuses } from "./rest/status.js";
import { Versions } from "./rest/versions.js";
import { type Key, type RetryPolicy, type Timeouts, Transport } from "./transport.js";

/** Options of the REST API's client. */
export interface ClientOptions {
  /** The server's URL, with the path under which it is mounted if it is. */
  url: string;
  /** An API key or a session token, or a function that returns the one to use now. */
  key?: Key | undefined;
  /** The workspace. Left out, it is the only one of the credential, which one request asks for. */
  workspace?: string | undefined;
  /** Time limits of calls. */
  timeouts?: Timeouts | undefined;
  /** How failed calls are repeated. */
  retry?: RetryPolicy | undefined;
  /** Replaces the runtime's `fetch`, for example to go through a proxy. */
  fetch?: typeof globalThis.fetch | undefined;
}

/**
 * The REST API with types. Methods are grouped by what they are about, and named as in the documentation of the API. Each fails
 * with an `AgentCfgError`, whose class tells the status.
 */
export class Client {
  /** The configurations of agents. */
  readonly agents: Agents;
  /** The versions of agents. */
  readonly versions: Versions;
  /** The labels of versions: what is released. */
  readonly labels: Labels;
  /** The live status of agents. */
  readonly status: Statuses;
  /** The prompts of agents, as the server renders them. */
  readonly prompts: Prompts;
  /** The change feed. */
  readonly changes: Changes;
  /** API keys. */
  readonly apiKeys: ApiKeys;
  /** Webhooks. */
  readonly webhooks: Webhooks;
  /** The audit log. */
  readonly auditLog: AuditLog;
  readonly usage: Usage;
  /** Budgets of model calls. */
  readonly budgets: Budgets;
  /** Workspaces and who the caller is. */
  readonly workspaces: Workspaces;
  /** Members of the workspace. */
  readonly members: Members;
  /** Models on offer, and the keys of their providers. */
  readonly models: Models;
  /** All workspaces of the deployment, for its operators. */
  readonly operators: Operators;
  /** The state of the server. */
  readonly system: System;
  /** @internal */
  readonly caller: Caller;

  constructor(options: ClientOptions) {
    const workspace = options.workspace?.toLowerCase();
    if (workspace !== undefined && !/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(workspace)) {
      throw new InputError(`workspace must be a hyphenated UUID, got ${JSON.stringify(options.workspace)}`);
    }
    const caller = new Caller(new Transport({ ...options, clock: systemClock }), workspace);
    this.caller = caller;
    this.agents = new Agents(caller);
    this.versions = new Versions(caller);
    this.labels = new Labels(caller);
    this.status = new Statuses(caller);
    this.prompts = new Prompts(caller);
    this.changes = new Changes(caller);
    this.apiKeys = new ApiKeys(caller);
    this.webhooks = new Webhooks(caller);
    this.auditLog = new AuditLog(caller);
    this.usage = new Usage(caller);
    this.budgets = new Budgets(caller);
    this.workspaces = new Workspaces(caller);
    this.members = new Members(caller);
    this.models = new Models(caller);
    this.operators = new Operators(caller);
    this.system = new System(caller);
  }

  /** The workspace of the client's calls. */
  async workspaceId(): Promise<string> {
    return await this.caller.workspaceId();
  }

  /** The rate limit of the credential, as of the last answer that told it. */
  get rateLimit(): RateLimit | undefined {
    return this.caller.transport.rateLimit;
  }
}
