/** What needs a person, each with one way to cure it. */
import { useMemo, useState } from "preact/hooks";
import { attention, fullPlan, type Cure, type Point, type StatusChange } from "../../base/attention";
import { useBudgetName } from "../../base/budget-names";
import { useResource, type Resource } from "../../base/cache";
import { byAgent, useAgents, useKeys, useModels, useWebhooks } from "../../base/data";
import { lastAnswer } from "../../base/api";
import { href } from "../../base/route";
import { can, workspace } from "../../base/session";
import { ago, DAY, now, second, span } from "../../base/text";
import type { ApiKey, StatusEntry } from "../../base/types";
import { outlook } from "../../base/usage";
import { useBudgets, useWeekdays } from "../../base/usage-data";
import { Button, cx, Icon, LinkButton, Skeleton } from "../../parts/base";
import { Reading } from "../../parts/feedback";
import { isLive, isReplaced, Rotate } from "../keys";

/** With more agents than this the changes of their status are not read here. */
export const MOST_LANES = 1_000;

/**
 * The changes of the live status of the last 24 hours. An agent that has reported the same since the server began has none: its
 * first one is what it reports, at that time.
 */
export function useStatusHistory(): Resource<StatusChange[]> {
  const few = (useAgents().data?.length ?? Infinity) <= MOST_LANES;
  const query = { workspace_id: workspace.value!.id };
  const history = useResource<StatusChange[]>("status", few ? "api/agents/status/history" : null, query);
  const { data: live } = useResource<StatusEntry[]>("status", few ? "api/agents/status" : null, query);
  const data = useMemo(() => {
    const at = history.headers?.get("History-Since");
    const changed = byAgent(history.data);
    const same = at && live?.filter(({ agent_id, status }) => status !== "offline" && !changed.has(agent_id));
    return history.data && [...(same || []).map((entry) => ({ ...entry, at: at! })), ...history.data];
  }, [history.data, live]);
  return { ...history, data };
}

/** What needs a person now, as far as the role may know it. */
export function usePoints(): Point[] {
  const hooks = useWebhooks().data ?? [];
  const allKeys = useKeys().data ?? [];
  const budgets = useBudgets().data ?? [];
  const weights = useWeekdays(budgets.length > 0);
  const nameOf = useBudgetName();
  return attention({
    now: now.value,
    webhooks: hooks,
    budgets: budgets.map((budget) => ({ budget, name: nameOf(budget), look: outlook(budget, now.value, weights) })),
    agents: useAgents().data ?? [],
    models: useModels().data ?? [],
    changes: useStatusHistory().data ?? [],
    keys: allKeys.filter((key) => key.expires_at !== null && isLive(key, now.value) && !isReplaced(key, allKeys)),
    plan: fullPlan(workspace.value!),
  });
}

export function Attention() {
  const agents = useAgents();
  const points = usePoints();
  const [rotating, setRotating] = useState<ApiKey | null>(null);
  return (
    <section class="card">
      <header>
        <h2>Needs attention {points.length > 0 && <span class="count">{points.length}</span>}</h2>
        <span class="hint">Checked {ago(lastAnswer.value, second.value)}</span>
      </header>
      {agents.error !== null ? (
        <div class="card-body">
          <Reading of={agents} what="The agents" />
        </div>
      ) : !agents.data ? (
        <Skeleton rows={3} />
      ) : points.length === 0 ? (
        <p class="card-body row dim">
          <span class="good row">
            <Icon name="done" />
          </span>
          Nothing needs you.
        </p>
      ) : (
        <ul class="list attention">
          {points.map(({ id, tone, before, name, after, why, at, cure }) => (
            <li key={id}>
              <span class={cx("row", `${tone}-text`)}>
                <Icon name={tone === "bad" ? "bad" : "warn"} />
                <span class="hidden">{tone === "bad" ? "Broken: " : "Warning: "}</span>
              </span>
              <div class="grow">
                <p class="clip">
                  {before}
                  <b dir="auto">{name}</b>
                  {after}
                </p>
                <p class="hint clip" title={why}>
                  {why}
                </p>
              </div>
              {!/key|budget|plan/.test(cure.kind) && (
                <span class="hint second">{now.value - at < DAY ? span(now.value - at) : ago(at, now.value)}</span>
              )}
              <Way cure={cure} name={name} rotate={setRotating} />
            </li>
          ))}
        </ul>
      )}
      {rotating && <Rotate apiKey={rotating} onClose={() => setRotating(null)} />}
    </section>
  );
}

/** The way to cure it, by what the role may do. */
function Way({ cure, name, rotate }: { cure: Cure; name: string; rotate: (key: ApiKey) => void }) {
  if (cure.kind === "key")
    return can("api_keys:manage") ? (
      <Button small label={`Rotate ${name}`} onClick={() => rotate(cure.key)}>
        Rotate
      </Button>
    ) : (
      <To verb="Open" name={name} to={href("api-keys")} />
    );
  if (cure.kind === "plan") return <To verb="Open" name="agents" to={href("agents")} />;
  if (cure.kind === "webhook") return <To verb="Open" name={name} to={href("webhook", { id: cure.id })} />;
  if (cure.kind === "agent") return <To verb="Open" name={name} to={href("agent", { id: cure.id })} />;
  if (cure.kind === "budget")
    return can("budgets:manage") ? (
      <To verb="Raise" name={`the budget of ${name}`} to={href("usage", { budget: cure.id })} />
    ) : (
      <To verb="Open" name={`the budget of ${name}`} to={href("usage")} />
    );
  return can("provider_keys:manage") ? (
    <To verb="Add key" name={`for ${name}`} to={href("ai-providers")} />
  ) : can("settings:read") ? (
    <To verb="Open" name="AI providers" to={href("ai-providers")} />
  ) : null;
}

function To({ verb, name, to }: { verb: string; name: string; to: string }) {
  return (
    <LinkButton small to={to} aria-label={`${verb} ${name}`}>
      {verb}
    </LinkButton>
  );
}
