/** The strip of figures: the pressed one is drawn. */
import type { ComponentChildren } from "preact";
import { brief, change, costOf, percent, took, type Metric, type UsageRow } from "../../base/usage";
import { number, plural } from "../../base/text";
import type { View } from "./view";

export interface Stat {
  id: Metric;
  label: string;
  value: ComponentChildren;
  note: ComponentChildren;
}

/** "58 % of input from cache" */
const cached = ({ input_tokens, cached_input_tokens }: UsageRow): string | null =>
  cached_input_tokens > 0 ? `${percent(cached_input_tokens / input_tokens, 0)} of input from cache` : null;

export const shareOfErrors = ({ errors, calls }: UsageRow): number => (calls ? errors / calls : 0);

/** The figures of some calls, without the notes that compare them. */
export function figures(total: UsageRow): Stat[] {
  const { calls, errors } = total;
  return [
    { id: "cost", label: "Cost", value: costOf(total), note: null },
    { id: "calls", label: "Calls", value: calls < 1e7 ? number(calls) : brief(calls), note: null },
    {
      id: "tokens",
      label: "Tokens",
      value: (
        <>
          {brief(total.input_tokens)} <small>in</small> {brief(total.output_tokens)} <small>out</small>
        </>
      ),
      note: cached(total),
    },
    {
      id: "errors",
      label: "Errors",
      value: calls ? percent(errors / calls) : "0",
      note: errors > 0 && plural(errors, "call"),
    },
    {
      id: "p95",
      label: "p95",
      value: total.p95_ms === null ? "–" : took(total.p95_ms),
      note: calls > 0 && `first byte ${took(total.first_byte_ms / calls)}`,
    },
  ];
}

export function Stats({ view, metric, onPick }: { view: View; metric: Metric; onPick: (metric: Metric) => void }) {
  const { total, before, span } = view;
  const of = (now: number, then: number, more = "") => {
    const text = before && change(now, then);
    return (
      text && (
        <>
          <b>{text}</b>
          {more}
        </>
      )
    );
  };
  const apart = before && before.calls > 0 ? (shareOfErrors(total) - shareOfErrors(before)) * 100 : 0;
  const notes: Partial<Record<Metric, ComponentChildren>> = {
    cost: before && of(Number(total.cost_usd), Number(before.cost_usd), ` on the ${span.words} before`),
    calls: before && of(total.calls, before.calls),
    errors: (
      <>
        {plural(total.errors, "call")}
        {Math.abs(apart) >= 0.005 && (
          <>
            , <b>{`${apart > 0 ? "+" : "−"}${Math.abs(apart).toFixed(2)} points`}</b>
          </>
        )}
      </>
    ),
  };
  return (
    <Strip of={figures(total).map((stat) => ({ ...stat, note: notes[stat.id] || stat.note }))} metric={metric} onPick={onPick} />
  );
}

/** Without something to pick it only shows. */
export function Strip({ of, metric, onPick }: { of: Stat[]; metric?: Metric; onPick?: (metric: Metric) => void }) {
  return (
    <div class="stats" role="group" aria-label={onPick ? "What the chart shows" : "Figures"}>
      {of.map(({ id, label, value, note }) => {
        const content = (
          <>
            <span class="stat-name">{label}</span>
            <span class="stat-value">{value}</span>
            <span class="hint">{note || " "}</span>
          </>
        );
        return onPick ? (
          <button key={id} type="button" aria-pressed={id === metric} onClick={() => onPick(id)}>
            {content}
          </button>
        ) : (
          <div key={id}>{content}</div>
        );
      })}
    </div>
  );
}
