/** The table of usage: a row for each value of the grouping. */
import { useMemo } from "preact/hooks";
import { rowHeights } from "../../base/look";
import { useAgentsById } from "../../base/data";
import { href, route, setParams } from "../../base/route";
import { number } from "../../base/text";
import { allSeries, brief, costOf, keyOf, money, percent, price, type By, type UsageRow } from "../../base/usage";
import { callCost, FEW } from "../../base/usage-versions";
import { useCalled } from "../../base/usage-data";
import { Avatar, cx, Empty } from "../../parts/base";
import { Sparkline } from "../../parts/chart";
import { followRow, Rows, SortHead } from "../../parts/rows";
import { shareOfErrors } from "./stats";
import type { View } from "./view";

type Order = "cost" | "calls" | "errors" | "call";
const perCall = (row: UsageRow): number => callCost(row) ?? 0;
const VALUES: Record<Order, (row: UsageRow) => number> = {
  cost: (row) => Number(row.cost_usd),
  calls: (row) => row.calls,
  errors: shareOfErrors,
  call: perCall,
};
const HEADS: Record<By, string> = { agent: "Agent", model: "Model", key: "Key", version: "Version" };
/** More errors than this are marked. */
const MANY_ERRORS = 0.01;

export function UsageTable({ view }: { view: View }) {
  const { by, span } = view;
  const called = useCalled(by);
  const byId = useAgentsById();
  const order = (route.value.params.get("order") ?? "cost") as Order;
  const rows = useMemo(
    () => view.sums.toSorted((a, b) => VALUES[order](b) - VALUES[order](a) || b.calls - a.calls),
    [view.sums, order],
  );
  /** The costs of each step, of those that have a row for each. */
  const costs = useMemo(() => allSeries(view.steps, by, "cost", span), [view.steps]);
  const head = (name: Order, text: string, extra?: string) => (
    <SortHead
      class={cx("right", `c-${name}`, extra)}
      falling={order === name || null}
      onSort={() => setParams({ order: name === "cost" ? null : name })}
    >
      {text}
    </SortHead>
  );
  if (!rows.length)
    return (
      <div class="card">
        <Empty icon="usage" title={`No model call in the last ${span.words}`} />
      </div>
    );
  return (
    <div class="stack">
      <div class="table-box">
        <table class="usage-table">
          <caption class="hidden">{`Usage by ${by}`}</caption>
          <thead>
            <tr>
              <th scope="col" class="c-name">
                {HEADS[by]}
              </th>
              <th scope="col" class="c-spark third">
                Cost {span.unit === "day" ? "a day" : "an hour"}
              </th>
              {head("calls", "Calls", "second")}
              {head("errors", "Errors", "large")}
              <th scope="col" class="right c-tokens large">
                Tokens in / out
              </th>
              {head("call", "A call", "second")}
              {head("cost", "Cost")}
            </tr>
          </thead>
          <Rows
            items={rows}
            id={(row) => `${keyOf(row, by)}`}
            heights={rowHeights(48)}
            render={(row) => {
              const id = keyOf(row, by);
              const agent = by === "agent" || by === "version" ? byId.get(row.agent ?? "") : undefined;
              const name = called(id);
              const line = costs.get(id)?.values;
              return (
                <tr
                  key={`${id}`}
                  data-row={`${id}`}
                  class={cx(agent && "follow", row.calls < FEW && "few")}
                  onClick={agent && followRow}
                >
                  <td>
                    <span class="agent-cell">
                      {agent && <Avatar of={agent} />}
                      {agent ? (
                        <a class="strong clip" dir="auto" data-name href={href("agent", { id: agent.agent_id, tab: "usage" })}>
                          {name}
                        </a>
                      ) : (
                        <span class="strong clip" dir="auto" data-name tabIndex={-1}>
                          {name}
                        </span>
                      )}
                    </span>
                  </td>
                  <td class="third c-spark">
                    {line && (
                      <Sparkline
                        values={line}
                        label={`${name}: at most ${money(Math.max(...line))} ${span.unit === "day" ? "a day" : "an hour"}`}
                      />
                    )}
                  </td>
                  <td class="right second">{number(row.calls)}</td>
                  <td class={cx("right large", shareOfErrors(row) > MANY_ERRORS && row.calls >= FEW && "bad-text")}>
                    {percent(shareOfErrors(row))}
                  </td>
                  <td class="right large">
                    {brief(row.input_tokens)} / {brief(row.output_tokens)}
                  </td>
                  <td class="right second">{row.unpriced_calls >= row.calls ? "–" : price(perCall(row))}</td>
                  <td class="right strong">{costOf(row)}</td>
                </tr>
              );
            }}
          />
        </table>
      </div>
    </div>
  );
}
