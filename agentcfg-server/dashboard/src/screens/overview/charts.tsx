/** The parts of the overview that draw: cost today, changes a day, the states of agents, the last releases. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../../base/api";
import { statesAt } from "../../base/attention";
import { useBudgetName } from "../../base/budget-names";
import { useAgents, useAgentsById, useAudit, useNames, useStatuses } from "../../base/data";
import { fullHours } from "../../base/lanes";
import { isBack } from "../../base/releases";
import { href } from "../../base/route";
import { workspace } from "../../base/session";
import { DAY, now, number, plural, time } from "../../base/text";
import type { AuditEntry } from "../../base/types";
import { HOUR, money, near, onAxis, outlook, startOf, utcDay } from "../../base/usage";
import { useBudgets, useMoves, useUsage, useWeekdays, within } from "../../base/usage-data";
import { ActorMark, Avatar, Empty, LabelBadge, Skeleton, Time, Told } from "../../parts/base";
import { BudgetBar, BudgetHead } from "../../parts/budget";
import { Bars, Plot } from "../../parts/chart";
import { Failure, Reading } from "../../parts/feedback";
import { useStatusHistory } from "./attention";
import { Last } from "./last";

const midnightOf = (at: number): number => Math.floor(at / DAY) * DAY;
const WEEK = 7;

/** What was spent since midnight in UTC, and where the day will end by the hours of the week before. */
export function CostToday() {
  const midnight = midnightOf(now.value);
  const hours = useUsage({ ...within({ from: midnight - WEEK * DAY, to: midnight + DAY }), by: "hour" });
  const budgets = useBudgets().data ?? [];
  const weights = useWeekdays(budgets.length > 0);
  const nameOf = useBudgetName();
  const [point, setPoint] = useState<number | null>(null);
  const today = Array<number>(24).fill(0);
  const usual = Array<number>(24).fill(0);
  for (const row of hours.data ?? []) {
    const at = startOf(row);
    (at >= midnight ? today : usual)[new Date(at).getUTCHours()]! += Number(row.cost_usd);
  }
  const add = (values: number[]): number => values.reduce((sum, value) => sum + value, 0);
  const spent = add(today);
  const hour = Math.floor((now.value - midnight) / HOUR);
  const part = (now.value - midnight) / HOUR - hour;
  const share = add(usual) > 0 ? (add(usual.slice(0, hour)) + usual[hour]! * part) / add(usual) : 0;
  const most = budgets
    .map((budget) => ({ budget, look: outlook(budget, now.value, weights) }))
    .sort((a, b) => b.look.used - a.look.used)[0];
  const name = (step: number): string => `${String(step).padStart(2, "0")}:00`;
  return (
    <section class="card">
      <header>
        <h2>Cost today</h2>
        <a class="link" href={href("usage", { range: "24h" })}>
          Usage
        </a>
      </header>
      {!hours.data ? (
        <div class="card-body">
          <Reading of={hours} what="The usage" rows={4} tall />
        </div>
      ) : (
        <div class="card-body">
          <p class="figure">
            <b>{money(spent)}</b>{" "}
            <span class="dim">
              {point !== null
                ? `${name(point)}: ${money(today[point]!)}`
                : spent === 0
                  ? "no call yet"
                  : share > 0.02
                    ? `about ${near(spent / share)} by midnight UTC`
                    : "since midnight UTC"}
            </span>
          </p>
          {spent > 0 && (
            <Plot
              title="Cost by hour since midnight UTC"
              desc={`${money(spent)} in all.`}
              names={today.map((_, i) => (i % 6 ? "" : name(i)))}
              most={Math.max(...today)}
              axis={(value) => onAxis(value, "cost")}
              height={136}
              point={point}
              onPoint={setPoint}
              said={point === null ? undefined : `${name(point)} UTC: ${money(today[point]!)}`}
            >
              {(scale) => <Bars of={[{ id: "cost", values: today }]} scale={scale} />}
            </Plot>
          )}
        </div>
      )}
      {most && (
        <div class="budget">
          <BudgetHead name={nameOf(most.budget)} budget={most.budget} look={most.look} />
          <BudgetBar name={nameOf(most.budget)} look={most.look} />
        </div>
      )}
    </section>
  );
}

const DAYS = 14;
const AT_ONCE = 4;
/** The newest revision before a midnight that has passed never changes. */
const revisions = new Map<string, number>();

/** The newest revisions before some moments: revisions have no gaps, so that their difference is the number of changes. */
async function revisionsAt(workspace_id: string, moments: number[]): Promise<number[]> {
  const found: number[] = [];
  const read = async (at: number, i: number): Promise<void> => {
    const key = `${workspace_id} ${at}`;
    if (!revisions.has(key)) {
      const query = { workspace_id, until: new Date(at).toISOString(), limit: 1, view: "summary" };
      const { data } = await call<AuditEntry[]>("GET", "api/audit-log", { query });
      revisions.set(key, data[0]?.revision ?? 0);
    }
    found[i] = revisions.get(key)!;
  };
  for (let i = 0; i < moments.length; i += AT_ONCE)
    await Promise.all(moments.slice(i, i + AT_ONCE).map((at, j) => read(at, i + j)));
  return found;
}

export function ChangesADay() {
  const midnight = midnightOf(now.value);
  const audit = useAudit(8);
  const id = workspace.value!.id;
  const [before, setBefore] = useState<number[] | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [tries, setTries] = useState(0);
  const [point, setPoint] = useState<number | null>(null);
  const moments = Array.from({ length: DAYS }, (_, i) => midnight - (DAYS - 1 - i) * DAY);
  useEffect(() => {
    let here = true;
    setError(null);
    revisionsAt(id, moments).then(
      (found) => here && setBefore(found),
      (failed) => here && setError(failed),
    );
    return () => void (here = false);
  }, [id, midnight, tries]);
  const newest = audit.data && (audit.data[0]?.revision ?? 0);
  const days = before && newest !== undefined ? before.map((at, i) => Math.max(0, (before[i + 1] ?? newest) - at)) : null;
  const names = moments.map((at, i) => (i === DAYS - 1 ? "Today" : utcDay(at)));
  const at = point ?? DAYS - 1;
  return (
    <section class="card">
      <header>
        <h2>Changes a day</h2>
        <a class="link" href={href("audit-log")}>
          Audit log
        </a>
      </header>
      <div class="card-body">
        {error !== null ? (
          <Failure what="The changes could not be read." error={error} retry={() => setTries(tries + 1)} />
        ) : !days ? (
          <Skeleton rows={4} tall />
        ) : (
          <>
            <p class="figure">
              <b>{number(days[at]!)}</b>{" "}
              <span class="dim">
                {at === DAYS - 1 ? "today" : `on ${names[at]}`}, {number(days.reduce((sum, value) => sum + value, 0))} in {DAYS}{" "}
                days
              </span>
            </p>
            <Plot
              title="Changes a day, days in UTC"
              desc={`${plural(days.at(-1)!, "change")} today.`}
              names={names}
              most={Math.max(...days, 4)}
              axis={number}
              whole
              height={136}
              point={point}
              onPoint={setPoint}
              said={`${names[at]}: ${plural(days[at]!, "change")}`}
              open
            >
              {(scale) => <Bars of={[{ id: "changes", values: days }]} scale={scale} open />}
            </Plot>
          </>
        )}
      </div>
    </section>
  );
}

const SAMPLES = 96;

/** How many agents worked, were idle and were offline. */
export function TheDay() {
  const statuses = useStatuses();
  const history = useStatusHistory();
  const agents = useAgents().data;
  const [point, setPoint] = useState<number | null>(null);
  const end = Math.floor(now.value / 60_000) * 60_000;
  const begin = Math.max(end - DAY, Date.parse(history.headers?.get("History-Since") ?? "") || end - DAY);
  const moments = useMemo(
    () => Array.from({ length: SAMPLES }, (_, i) => begin + ((i + 1) * (end - begin)) / SAMPLES),
    [begin, end],
  );
  const names = moments.map(() => "");
  for (const at of fullHours(begin, end)) names[Math.floor(((at - begin) / (end - begin)) * SAMPLES)] = time(at);
  const known = new Set(agents?.map(({ agent_id }) => agent_id));
  const states = useMemo(
    () =>
      statesAt(
        (history.data ?? []).filter(({ agent_id }) => known.has(agent_id)),
        moments,
      ),
    [history.data, moments, agents],
  );
  const all = statuses.data;
  const of = (status: string): number => all?.filter((entry) => entry.status === status).length ?? 0;
  const total = all?.length ?? 0;
  /** What stands on each other, from the bottom up; of now where no moment is asked for. */
  const stack = (at: number | null): [name: string, count: number][] => {
    const [working, idle, unknown] =
      at === null ? [of("working"), of("idle"), 0] : [states.working[at]!, states.idle[at]!, states.unknown[at]!];
    return [
      ["working", working],
      ["idle", idle],
      ["offline", Math.max(0, total - working - idle - unknown)],
      ["unknown", unknown],
    ];
  };
  const shown = stack(point).filter(([name, count]) => count || name !== "unknown");
  const drawn = (history.data?.length ?? 0) > 0 && end - begin > HOUR / 2;
  const area = (scale: { x: (step: number) => number; y: (value: number) => number; step: number }, values: number[]): string =>
    values
      .map((value, i) => `${i ? "V" : `M${scale.x(0) - scale.step / 2} `}${scale.y(value)}H${scale.x(i) + scale.step / 2}`)
      .join("");
  return (
    <section class="card">
      <header>
        <h2>{end - begin < DAY - HOUR && drawn ? `Since ${time(begin)}` : drawn ? "Last 24 hours" : "Right now"}</h2>
        <a class="link" href={href("status")}>
          Status
        </a>
      </header>
      <div class="card-body">
        {!all ? (
          <Reading of={statuses} what="The status" rows={4} tall />
        ) : (
          <>
            <p class="figure lane-key dim">
              {shown.map(([name, count], i) => (
                <span key={name} class={name}>
                  {i ? number(count) : <b>{number(count)}</b>} {name}
                </span>
              ))}
              {point !== null && time(moments[point]!)}
            </p>
            {drawn && (
              <Plot
                title="Agents that worked and were idle"
                desc={`Now ${of("working")} work and ${of("idle")} are idle, of ${total}.`}
                names={names}
                most={total}
                axis={number}
                whole
                height={212}
                lines={4}
                point={point}
                onPoint={setPoint}
                said={
                  point === null
                    ? undefined
                    : `${time(moments[point]!)}: ${shown.map(([name, count]) => `${count} ${name}`).join(", ")}`
                }
              >
                {(scale) => {
                  const close = `V${scale.bottom}H${scale.left}z`;
                  const both = area(
                    scale,
                    states.working.map((value, i) => value + states.idle[i]!),
                  );
                  const top = area(
                    scale,
                    states.working.map((_, i) => total - states.unknown[i]!),
                  );
                  return (
                    <>
                      {states.unknown[0]! > 0 && <path fill="url(#hatch)" d={`${top}V${scale.top}H${scale.left}z`} />}
                      <path class="idle-area" d={both + close} />
                      <path class="idle-edge" d={both} />
                      <path class="working-area" d={area(scale, states.working) + close} />
                    </>
                  );
                }}
              </Plot>
            )}
          </>
        )}
      </div>
    </section>
  );
}

const RELEASES = 4;
const FACES = 4;

export function LastReleases() {
  const { label, moves, read } = useMoves();
  const names = useNames();
  const byId = useAgentsById();
  return (
    <Last
      title="Last releases"
      what="The last releases"
      link="History"
      to={href("releases", { tab: "history" })}
      of={read}
      items={moves.slice(0, RELEASES)}
      none={
        <Empty icon="label" title="Nothing was released yet">
          <Told of="none released" />
        </Empty>
      }
      line={(move) => (
        <li key={move.revision}>
          <ActorMark actor={move.actor} name={names(move.actor)} />
          <div class="grow">
            <a class="block" href={href("releases", { tab: "history", label, revision: move.revision })}>
              <b>{names(move.actor)}</b> {isBack(move) ? "moved back" : "moved"} <LabelBadge label={move.label} /> on{" "}
              {plural(move.moves.length, "agent")}
            </a>
            {move.message && <p class="hint clip">{move.message}</p>}
          </div>
          <span class="row second faces">
            {move.moves
              .flatMap(({ agent_id }) => byId.get(agent_id) ?? [])
              .slice(0, FACES)
              .map((agent) => (
                <Avatar key={agent.id} of={agent} size={20} />
              ))}
            {move.moves.length > FACES && <span class="hint">+{move.moves.length - FACES}</span>}
          </span>
          <span class="hint">
            <Time at={move.created_at} />
          </span>
        </li>
      )}
    />
  );
}
