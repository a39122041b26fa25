/** Counting and writing of texts, numbers and times. */
export { now, second } from "./clock";

/** The length in Unicode scalar values, as the server counts. */
export const count = (text: string): number => {
  let scalars = 0;
  for (const _ of text) scalars += 1;
  return scalars;
};

const numbers = new Intl.NumberFormat("en-GB");
export const number = (value: number): string => numbers.format(value);

/** "1 agent", "2 agents". */
export const plural = (value: number, one: string, many = `${one}s`): string => `${number(value)} ${value === 1 ? one : many}`;

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** "a", "a and b", "a, b and c". */
export const list = (parts: string[]): string =>
  parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;

/** A name in a sentence. What it does to the direction of the text ends with it. */
export const isolated = (name: string): string =>
  /[\u0590-\u08ff\u202a-\u202e\u2066-\u2069\ufb1d-\ufefc]/.test(name)
    ? `\u2068${name.replace(/[\u2066-\u2069]/g, "")}\u2069`
    : name;

const LONG = 28;
export const short = (text: string, length = LONG): string =>
  count(text) > length ? `${[...text].slice(0, length - 1).join("")}…` : text;

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const dayMonth = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const fullDate = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

export const time = (at: number): string => clock.format(at);

/** "18 Nov", with the year if it is another one. */
export const date = (at: number): string =>
  (new Date(at).getFullYear() === new Date().getFullYear() ? dayMonth : fullDate).format(at);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;

/** "12 s", "4 min", "2 h", "3 days". */
export function span(length: number): string {
  if (length < MINUTE) return `${Math.max(0, Math.floor(length / 1000))} s`;
  if (length < HOUR) return `${Math.floor(length / MINUTE)} min`;
  if (length < DAY) return `${Math.floor(length / HOUR)} h`;
  return plural(Math.floor(length / DAY), "day");
}

/** The time that is left, to the nearest day. */
export const until = (length: number): string => span(length >= DAY ? length + DAY / 2 : length);

/** "4 min ago" below 24 hours, else the date. */
export function ago(at: number, from: number): string {
  const age = from - at;
  if (age < 5_000) return "just now";
  return age < DAY ? `${span(age)} ago` : date(at);
}

/** "in 4 min" before it, then its age. */
export const ahead = (at: number, from: number): string => (at > from ? `in ${until(at - from)}` : ago(at, from));

/** "today at 14:07", "tomorrow at 14:07", "18 Nov at 14:07". */
export function moment(at: number): string {
  const midnight = new Date().setHours(0, 0, 0, 0);
  const days = Math.floor((new Date(at).setHours(0, 0, 0, 0) - midnight + HOUR) / DAY);
  const day = days === 0 ? "today" : days === 1 ? "tomorrow" : days === -1 ? "yesterday" : date(at);
  return `${day} at ${time(at)}`;
}

/** "2026-11-22 13:07:31.204 UTC". */
export const utc = (at: string | number): string => `${new Date(at).toISOString().replace("T", " ").replace("Z", "")} UTC`;
