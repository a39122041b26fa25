import type {
  ApiKey,
  AuditEntry,
  Budget,
  BudgetLimit,
  CreatedApiKey,
  ExportLine,
  Member,
  ModelInfo,
  NewApiKey,
  NewWebhook,
  Provider,
  ProviderKeyInfo,
  ProviderKeyTest,
  Readiness,
  Role,
  ServerHealth,
  UsageCall,
  UsageRow,
  Webhook,
  WebhookDelivery,
  WebhookPatch,
  WebhookWithSecret,
  WhoAmI,
  Workspace,
  WorkspacePatch,
  WorkspaceView,
} from "../generated.js";
import type { Caller, CallOptions, QueryOf } from "./caller.js";

/** API keys. All but the list need a session token. */
export class ApiKeys {
  constructor(private readonly caller: Caller) {}

  async list(options: CallOptions = {}): Promise<ApiKey[]> {
    return await this.caller.call("listApiKeys", {}, options);
  }

  /** Creates a key. The answer is the only one that shows it. */
  async create(key: Omit<NewApiKey, "workspace_id">, options: CallOptions = {}): Promise<CreatedApiKey> {
    const body: NewApiKey = { ...key, workspace_id: await this.caller.workspaceId() };
    return await this.caller.call("createApiKey", {}, { ...options, body });
  }

  /** Replaces a key; the old one ends after the overlap. */
  async rotate(keyId: string, overlapSeconds = 0, options: CallOptions = {}): Promise<CreatedApiKey> {
    return await this.caller.call("rotateApiKey", { key_id: keyId }, { ...options, body: { overlap_seconds: overlapSeconds } });
  }

  /** Ends a key at once. */
  async revoke(keyId: string, options: CallOptions = {}): Promise<void> {
    await this.caller.call("revokeApiKey", { key_id: keyId }, options);
  }
}

/** Webhooks. */
export class Webhooks {
  constructor(private readonly caller: Caller) {}

  async list(options: CallOptions = {}): Promise<Webhook[]> {
    return await this.caller.call("listWebhooks", {}, options);
  }

  /** Creates a webhook. The answer is the only one that shows its secret. */
  async create(webhook: Omit<NewWebhook, "workspace_id">, options: CallOptions = {}): Promise<WebhookWithSecret> {
    const body: NewWebhook = { ...webhook, workspace_id: await this.caller.workspaceId() };
    return await this.caller.call("createWebhook", {}, { ...options, body });
  }

  async update(webhookId: string, patch: WebhookPatch, options: CallOptions = {}): Promise<Webhook> {
    return await this.caller.call("updateWebhook", { webhook_id: webhookId }, { ...options, body: patch });
  }

  async delete(webhookId: string, options: CallOptions = {}): Promise<void> {
    await this.caller.call("deleteWebhook", { webhook_id: webhookId }, options);
  }

  /** Sends an event `webhook.test` now, and answers how it went. */
  async test(webhookId: string, options: CallOptions = {}): Promise<WebhookDelivery> {
    return await this.caller.call("testWebhook", { webhook_id: webhookId }, { attemptMs: 30_000, ...options, body: {} });
  }

  /** Sends the events after a cursor again. */
  async replay(webhookId: string, after: string, options: CallOptions = {}): Promise<Webhook> {
    return await this.caller.call("replayWebhook", { webhook_id: webhookId }, { ...options, body: { after } });
  }

  /** Makes a new secret; the old one signs too for 24 hours. */
  async rotateSecret(webhookId: string, options: CallOptions = {}): Promise<WebhookWithSecret> {
    return await this.caller.call("rotateWebhookSecret", { webhook_id: webhookId }, { ...options, body: {} });
  }

  /** Lists the last attempts to deliver. */
  async deliveries(webhookId: string, options: CallOptions = {}): Promise<WebhookDelivery[]> {
    return await this.caller.call("listWebhookDeliveries", { webhook_id: webhookId }, options);
  }
}

/** The audit log. */
export class AuditLog {
  constructor(private readonly caller: Caller) {}

  /** Lists entries, the newest first. */
  async list(query: QueryOf<"listAuditLog"> = {}, options: CallOptions = {}): Promise<AuditEntry[]> {
    return await this.caller.call("listAuditLog", query, options);
  }
}

/** What model calls use, and what that costs. */
export class Usage {
  constructor(private readonly caller: Caller) {}

  /** Adds calls up, by what the query names. */
  async sums(query: QueryOf<"getUsage"> = {}, options: CallOptions = {}): Promise<UsageRow[]> {
    return await this.caller.call("getUsage", query, options);
  }

  /** Lists calls, the newest first. */
  async calls(query: QueryOf<"listUsageCalls"> = {}, options: CallOptions = {}): Promise<UsageCall[]> {
    return await this.caller.call("listUsageCalls", query, options);
  }
}

/** Budgets: limits of what model calls may cost. */
export class Budgets {
  constructor(private readonly caller: Caller) {}

  /** Lists budgets, with what is spent and reserved in their current periods. */
  async list(options: CallOptions = {}): Promise<Budget[]> {
    return await this.caller.call("listBudgets", {}, options);
  }

  /** Makes a budget, or changes its limit and action. */
  async set(budget: QueryOf<"setBudget">, limit: BudgetLimit, options: CallOptions = {}): Promise<Budget> {
    return await this.caller.call("setBudget", budget, { ...options, body: limit });
  }

  async remove(budget: QueryOf<"removeBudget">, options: CallOptions = {}): Promise<void> {
    await this.caller.call("removeBudget", budget, options);
  }

  /** Sets what ended servers had taken of the budgets to what the usage says that they have spent. */
  async settle(options: CallOptions = {}): Promise<Budget[]> {
    return await this.caller.call("settleBudgets", {}, options);
  }
}

/** Workspaces and who the caller is. */
export class Workspaces {
  constructor(private readonly caller: Caller) {}

  /** Says who the caller is, and what it may do. */
  async whoAmI(options: CallOptions = {}): Promise<WhoAmI> {
    return await this.caller.call("whoAmI", {}, options);
  }

  async list(options: CallOptions = {}): Promise<WorkspaceView[]> {
    return await this.caller.call("listWorkspaces", {}, options);
  }

  /** Creates a workspace, whose owner is the caller. Needs a session token. */
  async create(name: string, options: CallOptions = {}): Promise<Workspace> {
    return await this.caller.call("createWorkspace", {}, { ...options, body: { name } });
  }

  async update(patch: WorkspacePatch, options: CallOptions = {}): Promise<Workspace> {
    return await this.caller.call("updateWorkspace", {}, { ...options, body: patch });
  }

  /** Deletes the client's workspace for good. `confirm` is its exact name. */
  async delete(confirm: string, options: CallOptions = {}): Promise<void> {
    await this.caller.call("deleteWorkspace", { confirm }, options);
  }

  /**
   * Reads all records of the workspace, one after another, as they were at one revision. Needs the session token of an owner. The
   * export is never repeated by itself.
   */
  async *export(options: CallOptions = {}): AsyncGenerator<ExportLine, void, undefined> {
    yield* this.caller.lines("exportWorkspace", {}, options);
  }
}

/** The state of the server. No credential is needed. */
export class System {
  constructor(private readonly caller: Caller) {}

  /** Says whether the process is up. */
  async health(options: CallOptions = {}): Promise<ServerHealth> {
    return await this.caller.call("getHealth", {}, options);
  }

  /** Says whether requests can be served. A server that cannot serve any fails the call with `UnavailableError`. */
  async readiness(options: CallOptions = {}): Promise<Readiness> {
    return await this.caller.call("getReadiness", {}, options);
  }
}

/** Members of the workspace. */
export class Members {
  constructor(private readonly caller: Caller) {}

  async list(options: CallOptions = {}): Promise<Member[]> {
    return await this.caller.call("listMembers", {}, options);
  }

  async set(userId: string, role: Role, options: CallOptions = {}): Promise<Member> {
    return await this.caller.call("setMember", { user_id: userId }, { ...options, body: { role } });
  }

  async remove(userId: string, options: CallOptions = {}): Promise<void> {
    await this.caller.call("removeMember", { user_id: userId }, options);
  }
}

/** All workspaces of the deployment. Needs the session token of an operator, whom the settings of the server name. */
export class Operators {
  constructor(private readonly caller: Caller) {}

  /** Lists all workspaces in the order of their creation. */
  async workspaces(options: CallOptions = {}): Promise<Workspace[]> {
    return await this.caller.call("listAllWorkspaces", {}, options);
  }

  /** Reads an API key of any workspace. */
  async apiKey(keyId: string, options: CallOptions = {}): Promise<ApiKey> {
    return await this.caller.call("findApiKey", { key_id: keyId }, options);
  }

  /** Ends an API key of any workspace at once. */
  async revokeApiKey(keyId: string, options: CallOptions = {}): Promise<void> {
    await this.caller.call("revokeAnyApiKey", { key_id: keyId }, options);
  }

  /** Ends all memberships and browser sessions of a user, whose tokens workspaces refuse until an owner adds the user again. */
  async removeUser(userId: string, options: CallOptions = {}): Promise<void> {
    await this.caller.call("removeUser", { user_id: userId }, options);
  }
}

/** Models on offer, and the keys of their providers. */
export class Models {
  constructor(private readonly caller: Caller) {}

  async list(options: CallOptions = {}): Promise<ModelInfo[]> {
    return await this.caller.call("listModels", {}, options);
  }

  async providerKeys(options: CallOptions = {}): Promise<ProviderKeyInfo[]> {
    return await this.caller.call("listProviderKeys", {}, options);
  }

  async saveProviderKey(provider: Provider, apiKey: string, options: CallOptions = {}): Promise<ProviderKeyInfo> {
    return await this.caller.call("saveProviderKey", { provider }, { ...options, body: { api_key: apiKey } });
  }

  /** Asks the provider whether it accepts the saved key. Costs nothing. */
  async testProviderKey(provider: Provider, options: CallOptions = {}): Promise<ProviderKeyTest> {
    return await this.caller.call("testProviderKey", { provider }, options);
  }

  async deleteProviderKey(provider: Provider, options: CallOptions = {}): Promise<void> {
    await this.caller.call("deleteProviderKey", { provider }, options);
  }
}
