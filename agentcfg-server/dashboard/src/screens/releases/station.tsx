/** A version as a station, the rail to the next one, and what lies between them in words. */
import { useGap } from "../../base/gaps";
import type { Gap } from "../../base/releases";
import { plural } from "../../base/text";
import type { Agent } from "../../base/types";
import { cx, Icon } from "../../parts/base";

export type Tone = "current" | "behind" | undefined;

export function Station({ version, tone }: { version: number | null | undefined; tone?: Tone }) {
  return version === null || version === undefined ? (
    <span class="station unset">
      <span aria-hidden="true">–</span>
      <span class="hidden">Not set</span>
    </span>
  ) : (
    <span class={cx("station", tone)}>v{version}</span>
  );
}

const STOPS = 9;

/** The line between two stations; each version between them is a stop on it. */
export function Rail({ from, to }: { from: number | undefined; to: number | undefined }) {
  const apart = from === undefined || to === undefined ? 0 : Math.abs(from - to);
  const stops = Math.min(STOPS, apart - 1);
  return (
    <svg class="rail" aria-hidden="true">
      <line x1="0" x2="100%" y1="12" y2="12" class={from === undefined || to === undefined ? "dash" : apart ? "on" : undefined} />
      {Array.from({ length: Math.max(0, stops) }, (_, i) => (
        <circle key={i} cx={`${(100 * (i + 1)) / (stops + 1)}%`} cy="12" r="3.5" />
      ))}
    </svg>
  );
}

/** "12 lines"; where the persona is the same, "2 fields". */
export const gapText = ({ lines, fields }: Gap): string =>
  lines > 0 ? plural(lines, "line") : fields.length > 0 ? plural(fields.length, "field") : "same content";

/** What lies between two versions, in words. */
export function Between({ agent, from, to }: { agent: Agent; from: number | null; to: number }) {
  const gap = useGap(agent, from, to);
  if (from === null) return <>New</>;
  return <>{gap ? gapText(gap) : <span class="dim">…</span>}</>;
}

/** From one version to another. */
export function FromTo({ from, to }: { from: number | null; to: number | null }) {
  const back = from !== null && (to === null || to < from);
  return (
    <span class="from-to">
      <Station version={from} tone={back ? undefined : "behind"} />
      <Icon name="arrow" small />
      <span class="hidden">to</span>
      <Station version={to} />
    </span>
  );
}
