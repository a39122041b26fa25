/** Usage: what model calls cost, who spends it, and whether it will last. */
import { useRef } from "preact/hooks";
import { route, setParams } from "../../base/route";
import { can } from "../../base/session";
import { sum, type By, type Metric, type Range } from "../../base/usage";
import { useCalls, useSpan, useUsage, within } from "../../base/usage-data";
import { cx, Skeleton } from "../../parts/base";
import { Reading } from "../../parts/feedback";
import { Segments } from "../../parts/fields";
import { Page } from "../../parts/page";
import { Budgets } from "./budgets";
import { FirstCall } from "./first-call";
import { Stacks } from "./stacks";
import { Stats } from "./stats";
import { UsageTable } from "./table";
import type { View } from "./view";

export function RangePicker({ range }: { range: Range }) {
  return (
    <Segments<Range>
      label="Range"
      value={range}
      onPick={(value) => setParams({ range: value === "30d" ? null : value })}
      choices={[
        ["24h", "24 h"],
        ["7d", "7 d"],
        ["30d", "30 d"],
      ]}
    />
  );
}

export const rangeOf = (): Range => {
  const named = route.value.params.get("range");
  return named === "24h" || named === "7d" ? named : "30d";
};

const BYS: Record<By, string> = { agent: "agent", model: "model", key: "key", version: "agent,version" };
const MOST: Record<By, number | null> = { agent: 50, model: 50, key: 50, version: 20 };

export function Usage() {
  const params = route.value.params;
  const range = rangeOf();
  const asked = params.get("by") as By;
  const by: By = BYS[asked] && (asked !== "key" || can("audit_log:read")) ? asked : "agent";
  const metric = (params.get("show") ?? "cost") as Metric;
  const span = useSpan(range);
  const reads = {
    steps: useUsage({ ...within(span), by: `${span.unit},${BYS[by]}`, top: MOST[by] }),
    sums: useUsage({ ...within(span), by: BYS[by], top: by === "version" ? 50 : null }),
    whole: useUsage({ ...within(span), by: span.unit }),
    total: useUsage(within(span)),
  };
  const before = useUsage(within({ from: 2 * span.from - span.to, to: span.from }));
  const all = Object.values(reads);
  const failed = all.find(({ error, data }) => error !== null && data === undefined);
  const kept = useRef<View | null>(null);
  const ready = all.every(({ data }) => data !== undefined);
  if (ready)
    kept.current = {
      span,
      by,
      steps: reads.steps.data!,
      sums: reads.sums.data!,
      whole: reads.whole.data!,
      total: sum(reads.total.data!),
      before: before.data ? sum(before.data) : null,
    };
  const view = kept.current;
  const none = ready && view!.total.calls === 0;
  const last = useCalls({ limit: 1 }, none);
  return (
    <Page title="Usage" buttons={<RangePicker range={range} />}>
      {failed ? (
        <div class="usage-split">
          <Reading of={failed} what="The usage" />
          <Budgets />
        </div>
      ) : !view || (none && !last.data && last.error === null) ? (
        <Skeleton rows={8} tall />
      ) : none && last.data?.length === 0 ? (
        <FirstCall total={view.total} aside={<Budgets />} />
      ) : (
        <>
          <section class={cx("card usage-card", !ready && "old")} aria-label={`Usage of the last ${view.span.words}`}>
            <Stats view={view} metric={metric} onPick={(show) => setParams({ show: show === "cost" ? null : show })} />
            <Stacks view={view} metric={metric} />
          </section>
          <div class="usage-split">
            <UsageTable view={view} />
            <Budgets />
          </div>
        </>
      )}
    </Page>
  );
}
