/** What budgets are for, by name. */
import { useAgents, useKeys } from "./data";
import { workspace } from "./session";
import type { Budget } from "./usage";

export function useBudgetName(): (budget: Budget) => string {
  const agents = useAgents().data;
  const keys = useKeys().data;
  return ({ scope, scope_id: id }) =>
    scope === "workspace" || id === null
      ? workspace.value!.name
      : ((scope === "agent"
          ? agents?.find(({ agent_id }) => agent_id === id)?.display_name
          : scope === "key"
            ? keys?.find((key) => key.id === id)?.name
            : id) ?? id);
}
