/** The names of what entries of the audit log are about. */
import { useAgents, useKeys, useWebhooks } from "./data";
import { useBudgetName } from "./budget-names";
import { PROVIDERS } from "./providers";
import { workspace } from "./session";
import { PERIODS } from "./usage";
import { useBudgets } from "./usage-data";

/** Names of targets that have an id only: keys, members, webhooks and providers have readable ones. */
export function useTargets(): ReadonlyMap<string, string> {
  const agents = useAgents().data ?? [];
  const keys = useKeys().data ?? [];
  const hooks = useWebhooks().data ?? [];
  const budgets = useBudgets().data ?? [];
  const nameOf = useBudgetName();
  const { id, name } = workspace.value!;
  return new Map([
    ...agents.map((agent) => [`agent ${agent.agent_id}`, agent.display_name] as const),
    ...keys.map((key) => [`api_key ${key.id}`, key.name] as const),
    ...Object.entries(PROVIDERS).map(([provider, called]) => [`provider_key ${provider}`, called] as const),
    ...hooks.map((hook) => [`webhook ${hook.id}`, hook.url] as const),
    ...budgets.map((budget) => [`budget ${budget.id}`, `${nameOf(budget)}, ${PERIODS[budget.period]}`] as const),
    [`workspace ${id}`, name] as const,
  ]);
}
