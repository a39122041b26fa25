/** What model calls used and cost: sums, series over time, and how figures are written. */
import { date, DAY, number, plural, time } from "./text";

/** The figures of a row of `GET /api/usage`, by what was asked for. */
export interface UsageRow {
  hour?: string;
  day?: string;
  agent?: string | null;
  version?: number | null;
  model?: string | null;
  key?: string | null;
  other?: boolean;
  calls: number;
  errors: number;
  input_tokens: number;
  cached_input_tokens: number;
  output_tokens: number;
  cost_usd: string;
  unpriced_calls: number;
  duration_ms: number;
  first_byte_ms: number;
  p95_ms: number | null;
}

export type Metric = "cost" | "calls" | "tokens" | "errors" | "p95";
export type By = "agent" | "model" | "key" | "version";
export type Range = "24h" | "7d" | "30d";

export const HOUR = 3_600_000;
const LENGTHS: Record<Range, [hours: number, words: string]> = {
  "24h": [24, "24 hours"],
  "7d": [7 * 24, "7 days"],
  "30d": [30 * 24, "30 days"],
};

export interface Span {
  from: number;
  to: number;
  /** What a bar stands for. */
  unit: "hour" | "day";
  words: string;
  /** The beginnings of the bars. */
  steps: number[];
}

/** The hours or days of a range that ends with the running hour; days begin at midnight in UTC. */
export function spanOf(range: Range, now: number): Span {
  const [hours, words] = LENGTHS[range];
  const to = Math.floor(now / HOUR) * HOUR + HOUR;
  const unit = hours === 24 ? "hour" : "day";
  const step = unit === "hour" ? HOUR : DAY;
  const from = unit === "hour" ? to - DAY : Math.floor((to - 1) / DAY) * DAY - hours * HOUR + DAY;
  const steps: number[] = [];
  for (let at = from; at < to; at += step) steps.push(at);
  return { from, to, unit, words, steps };
}

export const iso = (at: number): string => new Date(at).toISOString();
/** When the bar of a row begins. */
export const startOf = (row: UsageRow): number => Date.parse(row.hour ?? row.day ?? "");

const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
/** "24 Oct", of a day in UTC. */
export const utcDay = (at: number): string => DAYS.format(at);
/** The name of a bar: hours are local, days in UTC. */
export const stepName = (at: number, { unit, steps }: Span): string =>
  unit === "hour" ? time(at) : at === steps.at(-1) ? "Today" : utcDay(at);

export const valueOf = (row: UsageRow, metric: Metric): number =>
  metric === "cost"
    ? Number(row.cost_usd)
    : metric === "calls"
      ? row.calls
      : metric === "errors"
        ? row.errors
        : metric === "tokens"
          ? row.input_tokens + row.output_tokens
          : (row.p95_ms ?? 0);

const NOTHING: UsageRow = {
  calls: 0,
  errors: 0,
  input_tokens: 0,
  cached_input_tokens: 0,
  output_tokens: 0,
  cost_usd: "0",
  unpriced_calls: 0,
  duration_ms: 0,
  first_byte_ms: 0,
  p95_ms: null,
};

/** Rows added up. A percentile cannot be added up: it is that of a single row, or unknown. */
export function sum(rows: readonly UsageRow[]): UsageRow {
  const all = { ...NOTHING, p95_ms: rows.length === 1 ? rows[0]!.p95_ms : null };
  let cost = 0;
  for (const row of rows) {
    cost += Number(row.cost_usd);
    for (const name of [
      "calls",
      "errors",
      "input_tokens",
      "cached_input_tokens",
      "output_tokens",
      "unpriced_calls",
      "duration_ms",
      "first_byte_ms",
    ] as const)
      all[name] += row[name];
  }
  return { ...all, cost_usd: String(cost) };
}

/** What rows are told apart by: null is that of calls without one, "" that of the rest. */
export function keyOf(row: UsageRow, by: By): string | null {
  if (row.other) return "";
  if (by === "version") return row.agent == null ? null : `${row.agent}:${row.version ?? ""}`;
  return row[by] ?? null;
}

export interface Series {
  /** What the values are of; "" is the rest. */
  id: string | null;
  values: number[];
  total: number;
  /** Of the rest: how many are in it, where that is known. */
  others?: number;
}

const SHOWN = 5;

/** A series for each value of the grouping. */
export function allSeries(rows: readonly UsageRow[], by: By, metric: Metric, { steps }: Span): Map<string | null, Series> {
  const places = new Map(steps.map((at, i) => [at, i]));
  const all = new Map<string | null, Series>();
  for (const row of rows) {
    const id = keyOf(row, by);
    const place = places.get(startOf(row));
    if (place === undefined) continue;
    let series = all.get(id);
    if (!series) all.set(id, (series = { id, values: steps.map(() => 0), total: 0 }));
    const value = valueOf(row, metric);
    series.values[place]! += value;
    series.total += value;
  }
  return all;
}

/** The series of a stack, the largest first and the rest last. */
export function seriesOf(rows: readonly UsageRow[], by: By, metric: Metric, span: Span): Series[] {
  const all = allSeries(rows, by, metric, span);
  const sorted = [...all.values()].filter(({ id, total }) => id !== "" && total > 0).sort((a, b) => b.total - a.total);
  const unknown = all.get("");
  const rest = [...sorted.slice(SHOWN), ...(unknown?.total ? [unknown] : [])];
  if (!rest.length) return sorted;
  return [
    ...sorted.slice(0, SHOWN),
    {
      id: "",
      values: span.steps.map((_, i) => rest.reduce((value, { values }) => value + values[i]!, 0)),
      total: rest.reduce((value, { total }) => value + total, 0),
      ...(unknown?.total ? {} : { others: rest.length }),
    },
  ];
}

/** Round values from zero to above the largest, for an axis; of what is counted they are `whole` numbers. */
export function ticks(most: number, wanted = 5, whole = false): number[] {
  if (!(most > 0)) return [0, 1];
  const rough = most / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const isStep = (of: number): boolean => of >= rough * 0.999 && (!whole || Number.isInteger(of));
  const step = [1, 2, 2.5, 5, 10].map((of) => of * power).find(isStep) ?? 1;
  const count = Math.ceil(most / step - 1e-9);
  return Array.from({ length: count + 1 }, (_, i) => i * step);
}

const dollars = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" });
/** "1.18 ¢" */
const cents = (value: number): string => {
  const of = value * 100;
  return `${of >= 10 ? of.toFixed(1) : of >= 0.1 || of === 0 ? of.toFixed(2) : of.toPrecision(1)} ¢`;
};
/** A sum: "$412.86"; what is less than a cent in parts of it. */
export const money = (value: number): string => (value === 0 || value >= 0.01 ? dollars.format(value) : cents(value));
/** What calls cost, where one of them has a price. */
export const costOf = ({ calls, unpriced_calls, cost_usd }: UsageRow): string =>
  calls && unpriced_calls >= calls ? "–" : money(Number(cost_usd));
/** A sum that is not known exactly. */
export const near = (value: number): string => (value < 10 ? money(value) : `$${number(Math.round(value))}`);
/** The cost of a call: below a dollar in cents. */
export const price = (value: number): string => (value >= 1 ? dollars.format(value) : cents(value));

/** "1,935", "38.2 k", "8.2 M". */
export function brief(value: number, write = (short: number): string | number => short.toFixed(1)): string {
  if (value < 10_000) return number(Math.round(value));
  const [of, unit] = value < 999_500 ? [1e3, "k"] : value < 999_500_000 ? [1e6, "M"] : [1e9, "G"];
  const short = value / of;
  return `${short >= 100 ? Math.round(short) : write(short)} ${unit}`;
}

/** "0.28 %" */
export const percent = (share: number, digits = 2): string => `${(share * 100).toFixed(digits)} %`;
/** "850 ms", "6.4 s", "2 min" */
export const took = (ms: number): string =>
  ms < 1000 ? `${Math.round(ms)} ms` : ms < 120_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.round(ms / 60_000)} min`;

/** "+8 %", "−37 %"; nothing where there was nothing before. */
export function change(now: number, before: number): string | null {
  if (!(before > 0)) return null;
  const of = Math.round((now / before - 1) * 100);
  return of === 0 ? "±0 %" : of > 999 ? `${brief(Math.round(now / before))} times` : `${of > 0 ? "+" : "−"}${Math.abs(of)} %`;
}

export const written = (value: number, metric: Metric): string =>
  metric === "cost" ? money(value) : metric === "p95" ? took(value) : brief(value);

/** On an axis, exactly as much as it is: no two lines have one text. */
export function onAxis(value: number, metric: Metric): string {
  if (metric === "cost")
    return !value || value >= 1
      ? Number.isInteger(value)
        ? `$${number(value)}`
        : money(value)
      : `${Number((value * 100).toPrecision(3))} ¢`;
  if (metric === "p95") return value && value < 1000 ? `${value} ms` : `${value / 1000} s`;
  return brief(value, (short) => Number(short.toFixed(2)));
}

/** How many calls had no price: their cost is not in the sum. */
export function unpriced({ calls, unpriced_calls: without }: UsageRow): string | null {
  if (!without) return null;
  const who =
    without === calls
      ? "The calls have"
      : `${without * 100 < calls ? plural(without, "call") : `${percent(without / calls, 0)} of the calls`} ${without === 1 ? "has" : "have"}`;
  return `${who} no price: ${without === 1 ? "its" : "their"} cost is not known.`;
}

export interface Budget {
  id: string;
  scope: "workspace" | "agent" | "key" | "user";
  scope_id: string | null;
  period: "day" | "month" | "total";
  limit_usd: string;
  action: "refuse" | "warn";
  spent_usd: string;
  reserved_usd: string;
  unsettled_usd: string;
  resets_at: string | null;
}

export const PERIODS: Record<Budget["period"], string> = { day: "today", month: "this month", total: "in all" };

export interface Outlook {
  spent: number;
  /** Reserved for calls that run, and what is not settled. */
  reserved: number;
  limit: number;
  /** The share of the limit that is used. */
  used: number;
  /** What will be spent at the end of the period, where that can be told. */
  end: number | null;
  /** When the limit is reached, where it will be. */
  over: number | null;
  tone: "bad" | "warn" | "ok";
}

const WARNED = 0.8;
/** Of less than this share of a period no end is foretold. */
const LEAST = 0.04;

/** Where a budget is going. `weights` says how much of a week's cost falls on each day of it, Sunday first. */
export function outlook(budget: Budget, now: number, weights: readonly number[] = []): Outlook {
  const [spent, limit] = [Number(budget.spent_usd), Number(budget.limit_usd)];
  const reserved = Number(budget.reserved_usd) + Number(budget.unsettled_usd);
  const used = limit > 0 ? (spent + reserved) / limit : 1;
  let end: number | null = null;
  let over: number | null = null;
  const to = budget.resets_at ? Date.parse(budget.resets_at) : NaN;
  const from = budget.period === "day" ? to - DAY : new Date(to).setUTCMonth(new Date(to).getUTCMonth() - 1);
  if (budget.period !== "total" && now < to && now >= from) {
    const weight = (at: number): number => (weights.some(Boolean) ? Math.max(weights[new Date(at).getUTCDay()]!, 0.01) : 1);
    const parts: { at: number; of: number }[] = [];
    for (let at = from; at < to; at += HOUR) parts.push({ at, of: weight(at) });
    const all = parts.reduce((value, { of }) => value + of, 0);
    const gone = parts.reduce((value, { at, of }) => value + of * Math.min(1, Math.max(0, (now - at) / HOUR)), 0) / all;
    if (gone >= LEAST && spent > 0) {
      end = spent / gone;
      let at = 0;
      if (end > limit) over = parts.find(({ of }) => (at += (of / all) * end!) >= limit)?.at ?? null;
    }
  }
  const tone = used >= 1 ? "bad" : used >= WARNED || (end ?? 0) > limit ? "warn" : "ok";
  return { spent, reserved, limit, used, end, over: used >= 1 ? null : over && Math.max(over, now), tone };
}

/** How much of the cost of a week falls on each day of it, by whole days. */
export function weekdays(rows: readonly UsageRow[], now: number): number[] {
  const weights = [0, 0, 0, 0, 0, 0, 0];
  for (const row of rows) if (startOf(row) < now - DAY) weights[new Date(startOf(row)).getUTCDay()]! += Number(row.cost_usd);
  const all = weights.reduce((value, of) => value + of, 0);
  return all > 0 ? weights.map((of) => of / all) : [];
}

/** What is said below the bar of a budget. */
export function outlookLine(budget: Budget, { used, end, over, limit }: Outlook): string {
  const warns = budget.action === "warn";
  const when = (at: number): string => (budget.period === "day" ? time(at) : date(at));
  if (used >= 1)
    return warns
      ? "Over its limit; it refuses nothing"
      : `Refuses calls${budget.resets_at ? ` until ${when(Date.parse(budget.resets_at))}` : ""}`;
  if (end !== null && end > limit && over !== null)
    return warns ? `Ends near ${near(end)}, over from ${when(over)}` : `Refuses calls from about ${when(over)}`;
  if (end !== null) return `Ends near ${near(end)}`;
  return warns ? "Warns, refuses nothing" : `Refuses calls beyond ${money(limit)}`;
}
