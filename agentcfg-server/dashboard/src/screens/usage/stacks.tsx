/** The chart of usage, its key, and the numbers behind it. */
import { useMemo, useState } from "preact/hooks";
import { isBack, type Release } from "../../base/releases";
import { setParams } from "../../base/route";
import { can } from "../../base/session";
import { moment, plural, time } from "../../base/text";
import {
  HOUR,
  onAxis,
  seriesOf,
  startOf,
  stepName,
  unpriced,
  utcDay,
  valueOf,
  written,
  type By,
  type Metric,
  type Series,
  type Span,
} from "../../base/usage";
import { DAY } from "../../base/text";
import { useCalled, useMoves } from "../../base/usage-data";
import { cx } from "../../parts/base";
import { Bars, Line, Numbers, Plot, Swatch, type Marker } from "../../parts/chart";
import { Segments } from "../../parts/fields";
import type { View } from "./view";

const METRICS: Record<Metric, string> = {
  cost: "Cost",
  calls: "Calls",
  tokens: "Tokens",
  errors: "Errors",
  p95: "Time of 95 % of calls",
};
const BY: Record<By, string> = { agent: "Agent", model: "Model", key: "Key", version: "Version" };
const MARKED = 12;

/** Where releases were on the axis; of many one for each step. */
export function markersOf(moves: readonly Release[], { from, to, unit }: Span): Marker[] {
  const step = unit === "hour" ? HOUR : DAY;
  const inside = moves
    .map((move) => ({ move, at: (Date.parse(move.created_at) - from) / step }))
    .filter(({ at }) => at >= 0 && at * step < to - from)
    .reverse();
  const kept =
    inside.length > MARKED ? inside.filter(({ at }, i) => Math.floor(at) !== Math.floor(inside[i - 1]?.at ?? -1)) : inside;
  return kept.map(({ move, at }) => ({ at, text: moveText(move) }));
}

export const moveText = (move: Release): string =>
  `${move.label} ${isBack(move) ? "moved back" : "moved"} on ${plural(move.moves.length, "agent")}${move.message ? `, “${move.message}”` : ""}`;

export function Stacks({ view, metric }: { view: View; metric: Metric }) {
  const { span, by } = view;
  const { label, moves } = useMoves();
  const called = useCalled(by);
  const [point, setPoint] = useState<number | null>(null);
  const [picked, setPicked] = useState<number | null>(null);
  const [table, setTable] = useState(false);
  const line = metric === "p95";
  const series = useMemo(() => (line ? [] : seriesOf(view.steps, by, metric, span)), [view.steps, by, metric]);
  const whole = useMemo(() => {
    const rows = new Map(view.whole.map((row) => [startOf(row), row]));
    return span.steps.map((at) => rows.get(at));
  }, [view.whole]);
  const sums = whole.map((row) => (row ? valueOf(row, metric) : 0));
  const end = span.steps.length - 1;
  const at = Math.min(point ?? end, end);
  const names = span.steps.map((step) => stepName(step, span));
  const markers = useMemo(() => markersOf(moves, span), [moves, span]);
  const here = markers.filter((marker) => Math.floor(marker.at) === at);
  const high = sums.indexOf(Math.max(...sums));
  const first = series.find(({ id }) => id !== "");
  const all = valueOf(view.total, metric);
  const title = `${METRICS[metric]} ${span.unit === "day" ? "a day" : "an hour"}${line ? "" : ` by ${by}`}, ${
    span.unit === "day" ? `${utcDay(span.from)} to ${utcDay(span.steps[end]!)}, days in UTC` : `since ${moment(span.from)}`
  }`;
  const desc = [
    `${written(all, metric)} in all.`,
    first && `${called(first.id)} has most, ${written(first.total, metric)}.`,
    sums[high]! > 0 && `The highest is ${names[high]} with ${written(sums[high]!, metric)}.`,
    markers.length > 0 && `${label} was released ${plural(moves.length, "time")}.`,
  ]
    .filter(Boolean)
    .join(" ");
  const chosen = picked === null ? undefined : series[picked];
  const said = `${names[at]}: ${chosen ? `${called(chosen.id, chosen.others)} ${written(chosen.values[at]!, metric)}` : written(sums[at]!, metric)}`;
  const open = true;
  return (
    <div class="usage-chart">
      <div class="tools">
        <Segments<By>
          label="By"
          value={by}
          onPick={(value) => setParams({ by: value === "agent" ? null : value })}
          choices={(Object.keys(BY) as By[])
            .filter((value) => value !== "key" || can("audit_log:read"))
            .map((value) => [value, BY[value]])}
        />
        <span class="grow" />
        {markers.length > 0 && <span class="hint mark-key">{label} moved</span>}
      </div>
      <div class={cx("with-key", line && "alone")}>
        <Plot
          title={title}
          desc={desc}
          names={names}
          most={Math.max(...sums)}
          axis={(value) => onAxis(value, metric)}
          whole={metric !== "cost"}
          markers={markers}
          point={at}
          onPoint={setPoint}
          onUp={(by) => series.length && setPicked((old) => ((old ?? (by > 0 ? -1 : 0)) + by + series.length) % series.length)}
          onTable={() => setTable(!table)}
          said={said}
          open={open}
        >
          {(scale) =>
            line ? (
              <Line values={whole.map((row) => row?.p95_ms ?? null)} scale={scale} open={open} />
            ) : (
              <Bars of={series} scale={scale} open={open} picked={picked} />
            )
          }
        </Plot>
        <Key
          series={series}
          called={called}
          metric={metric}
          point={{ name: names[at]!, at, sum: sums[at]! }}
          words={span.words}
          all={all}
          picked={picked}
          releases={here}
          span={span}
        />
      </div>
      {unpriced(view.total) && metric === "cost" && <p class="hint">{unpriced(view.total)}</p>}
      <Numbers
        name={title}
        open={table}
        onOpen={setTable}
        head={[
          span.unit === "day" ? "Day (UTC)" : "Hour",
          ...series.map(({ id, others }) => called(id, others)),
          line ? METRICS[metric] : "All",
        ]}
        rows={names.map((name, i) => [
          name,
          ...series.map(({ values }) => written(values[i]!, metric)),
          written(sums[i]!, metric),
        ])}
      />
    </div>
  );
}

/** The order of the stack, with the values of a point and of the whole range. */
function Key({
  series,
  called,
  metric,
  point,
  words,
  all,
  picked,
  releases,
  span,
}: {
  series: Series[];
  called: ReturnType<typeof useCalled>;
  metric: Metric;
  point: { name: string; at: number; sum: number };
  words: string;
  all: number;
  picked: number | null;
  releases: Marker[];
  span: Span;
}) {
  return (
    <div class="key">
      <table>
        <caption class="hidden">{`${METRICS[metric]}, ${point.name} and all ${words}`}</caption>
        <thead>
          <tr>
            <th scope="col">{series.length ? "From top to bottom" : METRICS[metric]}</th>
            <th scope="col" class="right at">
              {point.name}
            </th>
            <th scope="col" class="right">
              {words}
            </th>
          </tr>
        </thead>
        <tbody>
          {[...series].reverse().map((one) => {
            const i = series.indexOf(one);
            return (
              <tr key={one.id} class={cx(picked === i && "picked")}>
                <th scope="row">
                  <span class="row">
                    <Swatch stack={one} i={i} />
                    <span class="clip">{called(one.id, one.others)}</span>
                  </span>
                </th>
                <td class="right strong">{written(one.values[point.at]!, metric)}</td>
                <td class="right">{written(one.total, metric)}</td>
              </tr>
            );
          })}
          <tr class="all">
            <th scope="row">All</th>
            <td class="right strong">{written(point.sum, metric)}</td>
            <td class="right">{metric === "p95" && !all ? "–" : written(all, metric)}</td>
          </tr>
        </tbody>
      </table>
      {releases.slice(0, 3).map(({ at, text }) => (
        <p key={at} class="hint">
          <b>{time(span.from + at * (span.unit === "hour" ? HOUR : DAY))}</b> {text}
        </p>
      ))}
    </div>
  );
}
