/** Budgets: how far each is used, and the dialog that sets one. */
import { useState } from "preact/hooks";
import { call } from "../../base/api";
import { useBudgetName } from "../../base/budget-names";
import { invalidate } from "../../base/cache";
import { useAgents, useKeys, useMembers } from "../../base/data";
import { closePart, route, setParams } from "../../base/route";
import { can, workspace } from "../../base/session";
import { now } from "../../base/text";
import { money, outlook, PERIODS, type Budget } from "../../base/usage";
import { useBudgets, useWeekdays } from "../../base/usage-data";
import { Button, Empty, options, Told } from "../../parts/base";
import { BudgetBar, BudgetFoot, BudgetHead } from "../../parts/budget";
import { Confirm, FormDialog, Menu } from "../../parts/dialog";
import { attempt, Reading, toast } from "../../parts/feedback";
import { Choices, Field, Input, Select } from "../../parts/fields";

const NEW = "new";
const open = (id: string): void => setParams({ budget: id }, false, "budget");
const address = ({ scope, scope_id, period }: Pick<Budget, "scope" | "scope_id" | "period">) => ({
  workspace_id: workspace.value!.id,
  scope,
  scope_id,
  period,
});
const changed = (): void => invalidate("usage", "audit");

export function Budgets() {
  const read = useBudgets();
  const nameOf = useBudgetName();
  const may = can("budgets:manage");
  const weights = useWeekdays((read.data?.length ?? 0) > 0);
  const [removing, setRemoving] = useState<Budget | null>(null);
  const budgets = read.data;
  const asked = route.value.params.get("budget");
  const chosen = budgets?.find(({ id }) => id === asked);
  const looks = (budgets ?? [])
    .map((budget) => ({ budget, look: outlook(budget, now.value, weights) }))
    .sort((a, b) => b.look.used - a.look.used);
  const settle = (): Promise<void> =>
    attempt("Not settled.", async () => {
      await call("POST", "api/budgets/settle", { query: { workspace_id: workspace.value!.id } });
      changed();
      toast("What was not settled is counted by the usage now.");
    });
  if (!budgets && read.error !== null) return <Reading of={read} what="The budgets" />;
  const add = (
    <Button small icon="plus" onClick={() => open(NEW)}>
      New budget
    </Button>
  );
  return (
    <section class="card budgets">
      <header>
        <h2>Budgets</h2>
        {may && looks.length > 0 && add}
      </header>
      {!budgets ? (
        <Reading of={read} what="The budgets" rows={3} />
      ) : looks.length === 0 ? (
        <Empty icon="usage" title="No budget yet" action={may && add}>
          <Told of="no budget" />
        </Empty>
      ) : (
        <ul>
          {looks.map(({ budget, look }) => {
            const name = nameOf(budget);
            return (
              <li key={budget.id} class="budget">
                <BudgetHead name={name} budget={budget} look={look} />
                <BudgetBar name={name} look={look} />
                <div class="row">
                  <BudgetFoot budget={budget} look={look} />
                  {may && (
                    <Menu
                      small
                      label={`Actions for the budget of ${name} ${PERIODS[budget.period]}`}
                      items={[
                        { label: "Change budget", icon: "edit", run: () => open(budget.id) },
                        Number(budget.unsettled_usd) > 0
                          ? { label: "Settle what is open", icon: "check", run: () => void settle() }
                          : null,
                        { label: "Remove budget", icon: "trash", danger: true, run: () => setRemoving(budget) },
                      ]}
                    />
                  )}
                </div>
              </li>
            );
          })}
          <li class="budget hint row wrap" aria-hidden="true">
            <span class="row">
              <svg width="14" height="8" class="budget-bar ok">
                <rect class="spent" width="14" height="8" rx="2" />
              </svg>
              spent
            </span>
            <span class="row">
              <svg width="14" height="8">
                <rect fill="url(#hatch)" width="14" height="8" />
              </svg>
              reserved
            </span>
            <span class="row">
              <svg width="20" height="8" class="budget-bar">
                <line class="way" x1="0" x2="12" y1="4" y2="4" />
                <circle class="end" cx="15" cy="4" r="3" />
              </svg>
              expected end
            </span>
          </li>
        </ul>
      )}
      {may && (asked === NEW || chosen) && (
        <Edit key={asked} budget={chosen ?? null} all={budgets ?? []} onClose={() => closePart("budget")} />
      )}
      {removing && (
        <Confirm
          title={`Remove the budget of ${nameOf(removing)}?`}
          verb="Remove budget"
          run={async () => {
            await call("DELETE", "api/budgets", { query: address(removing) });
            changed();
            toast("The budget is removed.");
          }}
          onClose={() => setRemoving(null)}
        >
          Its limit of {money(Number(removing.limit_usd))} no longer holds. What was spent stays in the usage.
        </Confirm>
      )}
    </section>
  );
}

const SCOPES: [Budget["scope"], string][] = [
  ["workspace", "The workspace"],
  ["agent", "An agent"],
  ["key", "An API key"],
  ["user", "A person"],
];
const NAMES: Record<Budget["scope"], string> = { workspace: "", agent: "Agent", key: "API key", user: "Person" };
const MOST = 1e9;

function Edit({ budget, all, onClose }: { budget: Budget | null; all: Budget[]; onClose: () => void }) {
  const [scope, setScope] = useState<Budget["scope"]>(budget?.scope ?? "workspace");
  const [who, setWho] = useState(budget?.scope_id ?? "");
  const [period, setPeriod] = useState<Budget["period"]>(budget?.period ?? "month");
  const [limit, setLimit] = useState(budget ? budget.limit_usd.replace(/\.0+$/, "") : "");
  const [action, setAction] = useState<Budget["action"]>(budget?.action ?? "refuse");
  const [tried, setTried] = useState(false);
  const nameOf = useBudgetName();
  const agents = useAgents().data ?? [];
  const keys = useKeys().data ?? [];
  const members = useMembers().data ?? [];
  const choices: Record<Budget["scope"], [string, string][]> = {
    workspace: [],
    agent: agents.filter(({ agent_type }) => agent_type === "ai").map(({ agent_id, display_name }) => [agent_id, display_name]),
    key: keys.filter(({ revoked_at }) => revoked_at === null).map(({ id, name }) => [id, name]),
    user: members.filter(({ user_id }) => !user_id.startsWith("group:")).map(({ user_id }) => [user_id, user_id]),
  };
  const scope_id = scope === "workspace" ? null : who;
  const written = limit.trim().replace(/^\$/, "");
  const limitFault =
    /^\d+(\.\d{1,9})?$/.test(written) && Number(written) <= MOST ? null : "An amount in dollars, such as 120 or 0.50.";
  const whoFault = scope !== "workspace" && !who ? "Choose one." : null;
  const old = all.find((one) => one.scope === scope && one.scope_id === scope_id && one.period === period);
  const save = async (): Promise<void> => {
    await call("PUT", "api/budgets", { query: address({ scope, scope_id, period }), body: { limit_usd: written, action } });
    changed();
    toast("The budget is set.");
  };
  return (
    <FormDialog
      title={budget ? `Change the budget of ${nameOf(budget)}` : "New budget"}
      verb="Set budget"
      check={() => {
        setTried(true);
        return !limitFault && !whoFault;
      }}
      run={save}
      failed="Not set."
      onClose={onClose}
    >
      <div class="stack">
        {!budget && (
          <>
            <div class="two">
              <Field label="Applies to">
                {(field) => (
                  <Select
                    {...field}
                    value={scope}
                    onPick={(value) => {
                      setScope(value as Budget["scope"]);
                      setWho("");
                    }}
                  >
                    {options(SCOPES)}
                  </Select>
                )}
              </Field>
              {scope !== "workspace" && (
                <Field label={NAMES[scope]} error={tried ? whoFault : null}>
                  {(field) => (
                    <Select {...field} value={who} onPick={setWho}>
                      <option value="">Choose</option>
                      {options(choices[scope].sort((a, b) => a[1].localeCompare(b[1])))}
                    </Select>
                  )}
                </Field>
              )}
            </div>
            <Choices<Budget["period"]>
              label="Period"
              value={period}
              onPick={setPeriod}
              choices={[
                ["day", "A day"],
                ["month", "A month"],
                ["total", "In all"],
              ]}
            />
          </>
        )}
        <Field
          label="Limit in USD"
          hint={
            old && !budget
              ? `There is one of ${money(Number(old.limit_usd))} already: this replaces it.`
              : period === "total"
                ? "It never begins again."
                : `It begins again ${period === "day" ? "each day" : "with each month"}, in UTC.`
          }
          error={tried ? limitFault : null}
        >
          {(field) => (
            <Input
              {...field}
              inputMode="decimal"
              value={limit}
              onText={setLimit}
              autocomplete="off"
              {...(budget ? { "data-first": true } : {})}
            />
          )}
        </Field>
        <div class="field">
          <Choices<Budget["action"]>
            label="When it is reached"
            value={action}
            onPick={setAction}
            choices={[
              ["refuse", "Refuse calls"],
              ["warn", "Only warn"],
            ]}
          />
          <p class="hint" role="status">
            <Told of={`budget ${action}`} />
          </p>
        </div>
      </div>
    </FormDialog>
  );
}
