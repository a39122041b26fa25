/** The usage of one agent: whether a release made it better. */
import { useMemo, useState } from "preact/hooks";
import { isBack } from "../../base/releases";
import type { AgentState } from "../../base/data";
import { DAY, isolated, number, plural } from "../../base/text";
import { change, HOUR, onAxis, percent, price, startOf, stepName, sum, type Span, type UsageRow } from "../../base/usage";
import { useCalls, useMoves, useSpan, useUsage, within } from "../../base/usage-data";
import { bandsOf, byVersion, callCost, type Band } from "../../base/usage-versions";
import { cx, Empty, Skeleton, Told } from "../../parts/base";
import { Line, Numbers, Plot } from "../../parts/chart";
import { Reading } from "../../parts/feedback";
import { BeforeAfter } from "./before-after";
import { LastCalls } from "./calls";
import { RangePicker, rangeOf } from "./index";
import { markersOf } from "./stacks";
import { figures, Strip } from "./stats";
import { VersionsTable } from "./versions";

export function AgentUsage({ state }: { state: AgentState }) {
  const { agent } = state;
  const range = rangeOf();
  const span = useSpan(range);
  const own = { ...within(span), agent_id: agent.agent_id };
  const total = useUsage(own);
  const steps = useUsage({ ...own, by: span.unit });
  const versions = useUsage({ ...own, by: "version" });
  const all = useUsage(within(span));
  const before = useUsage({ ...within({ from: 2 * span.from - span.to, to: span.from }), agent_id: agent.agent_id });
  const calls = useCalls({ agent_id: agent.agent_id, limit: 10 });
  const { label, moves } = useMoves(agent.agent_id);
  const rows = useMemo(() => byVersion(versions.data ?? []), [versions.data]);
  const bands = useMemo(() => bandsOf(moves, state.history.data ?? [], span, agent.agent_id), [moves, state.history.data, span]);
  const failed = [total, steps, versions].find(({ error, data }) => error !== null && data === undefined);
  if (failed)
    return (
      <div class="pad-top">
        <Reading of={failed} what="The usage" tall />
      </div>
    );
  if (!total.data || !steps.data || !versions.data)
    return (
      <div class="pad-top">
        <Skeleton rows={8} tall />
      </div>
    );
  const sums = sum(total.data);
  const whole = Number(sum(all.data ?? []).cost_usd);
  const then = before.data && change(sums.calls, sum(before.data).calls);
  const picker = (
    <div class="row end">
      <RangePicker range={range} />
    </div>
  );
  if (!sums.calls)
    return (
      <div class="stack pad-top">
        {picker}
        <div class="card">
          <Empty icon="usage" title={`No call as ${isolated(agent.display_name)} in the last ${span.words}`}>
            <Told of="no usage" />
          </Empty>
        </div>
      </div>
    );
  const notes = {
    cost: whole > 0 ? `${percent(Number(sums.cost_usd) / whole, 0)} of the workspace` : null,
    calls: then ? `${then} on the ${span.words} before` : null,
  };
  return (
    <div class="stack pad-top agent-usage">
      {picker}
      <section class="card usage-card" aria-label={`Usage of the last ${span.words}`}>
        <Strip of={figures(sums).map((stat) => ({ ...stat, note: notes[stat.id as keyof typeof notes] ?? stat.note }))} />
      </section>
      <div class="usage-split">
        <CallCost span={span} steps={steps.data} bands={bands} rows={rows} label={label} moves={moves} />
        <BeforeAfter rows={rows} />
      </div>
      <VersionsTable rows={rows} bands={bands} label={moves.length ? label : undefined} />
      <LastCalls read={calls} agent={agent.agent_id} />
    </div>
  );
}

function CallCost({
  span,
  steps,
  bands,
  rows,
  label,
  moves,
}: {
  span: Span;
  steps: UsageRow[];
  bands: Band[];
  rows: ReturnType<typeof byVersion>;
  label: string | undefined;
  moves: ReturnType<typeof useMoves>["moves"];
}) {
  const [point, setPoint] = useState<number | null>(null);
  const [table, setTable] = useState(false);
  const found = new Map(steps.map((row) => [startOf(row), row]));
  const values = span.steps.map((at) => callCost(found.get(at)));
  const means = new Map(rows.map(({ version, row }) => [version, callCost(row)]));
  const names = span.steps.map((at) => stepName(at, span));
  const end = names.length - 1;
  const at = Math.min(point ?? end, end);
  const length = span.unit === "hour" ? HOUR : DAY;
  const shown = bands.filter(({ version }) => version !== null);
  const last = shown.at(-1);
  const [first, now] = [shown[0] && means.get(shown[0].version!), last && means.get(last.version!)];
  const title = `Cost of a call ${span.unit === "day" ? "a day, days in UTC" : "an hour"}`;
  const desc = last
    ? `v${last.version} costs ${now == null ? "nothing that is known" : price(now)} a call${first != null && shown.length > 1 && shown[0]!.version !== last.version ? `, v${shown[0]!.version} cost ${price(first)}` : ""}.`
    : "The mean of calls with a price.";
  const say = (value: number | null | undefined): string => (value == null ? "No call" : price(value));
  return (
    <section class="card">
      <header>
        <h2>Cost of a call</h2>
        <span class="hint row wrap end">
          <span>
            {names[at]}: <b>{say(values[at])}</b>
          </span>
          <span class="mean-key second">mean of the version</span>
        </span>
      </header>
      <div class="usage-chart">
        <Plot
          title={title}
          desc={desc}
          names={names}
          most={Math.max(...values.map((value) => value ?? 0), ...[...means.values()].map((value) => value ?? 0))}
          axis={(value) => onAxis(value, "cost")}
          markers={markersOf(moves, span)}
          point={at}
          onPoint={setPoint}
          onTable={() => setTable(!table)}
          said={`${names[at]}: ${say(values[at])}`}
          open
        >
          {(scale) => {
            const x = (time: number): number => scale.left + ((time - span.from) / length) * scale.step;
            const right = (band: Band): number => Math.min(scale.right, x(band.to));
            return (
              <>
                {shown.map((band, i) => {
                  const mean = means.get(band.version!);
                  const [from, to] = [x(band.from), right(band)];
                  return (
                    <g key={band.from}>
                      <rect
                        class={cx("band", i % 2 === 0 && "shaded")}
                        x={from}
                        width={Math.max(0, to - from)}
                        y={scale.top}
                        height={scale.bottom - scale.top}
                      />
                      {mean != null && (
                        <line class="mean" x1={from + 3} x2={Math.max(from + 3, to - 3)} y1={scale.y(mean)} y2={scale.y(mean)} />
                      )}
                    </g>
                  );
                })}
                <Line values={values} scale={scale} open />
                {shown.map((band) => {
                  const mean = means.get(band.version!);
                  const [from, to] = [x(band.from), right(band)];
                  return (
                    <g key={band.from}>
                      {to - from > 22 && (
                        <text class="name" x={from + 6} y={scale.top + 14}>
                          v{band.version}
                        </text>
                      )}
                      {mean != null && to - from > 60 && (
                        <text class="name" x={(from + to) / 2} y={scale.y(mean) - 10} text-anchor="middle">
                          {price(mean)}
                        </text>
                      )}
                    </g>
                  );
                })}
              </>
            );
          }}
        </Plot>
        <Numbers
          name={title}
          open={table}
          onOpen={setTable}
          head={[span.unit === "day" ? "Day (UTC)" : "Hour", "Calls", "Cost of a call"]}
          rows={names.map((name, i) => [name, number(found.get(span.steps[i]!)?.calls ?? 0), say(values[i])])}
        />
        {moves.length > 0 && (
          <p class="hint">
            Bands are the versions that <code>{label}</code> pointed at; it moved {plural(moves.length, "time")}
            {moves.some(isBack) && ", also back"}.
          </p>
        )}
      </div>
    </section>
  );
}
