/** Rows of a list that are ticked: one by one, a range with Shift, or all. */
import { useRef, useState } from "preact/hooks";

export interface Ticks {
  ticked: ReadonlySet<string>;
  tick: (ids: string[], on: boolean) => void;
  /** Ticks a row, or all from the one before to it. */
  tickRow: (id: string, range: boolean) => void;
  /** Ticks the row of the key X; whether it was this key. */
  onKey: (event: KeyboardEvent) => boolean;
}

/** `ids` are the rows in their order; `may` says which of them can be ticked. */
export function useTicks(ids: string[], may: (id: string) => boolean): Ticks {
  const [ticked, setTicked] = useState<ReadonlySet<string>>(new Set());
  const anchor = useRef<string | null>(null);
  const tick = (ids: string[], on: boolean): void => {
    const next = new Set(ticked);
    for (const id of ids)
      if (on && may(id)) next.add(id);
      else next.delete(id);
    setTicked(next);
  };
  const tickRow = (id: string, range: boolean): void => {
    const end = ids.indexOf(id);
    const start = range && anchor.current ? ids.indexOf(anchor.current) : end;
    tick(ids.slice(Math.min(start < 0 ? end : start, end), Math.max(start, end) + 1), !ticked.has(id));
    anchor.current = id;
  };
  const onKey = (event: KeyboardEvent): boolean => {
    const row = (event.target as Element).closest<HTMLElement>("tr[data-row]")?.dataset["row"];
    if (event.key.toLowerCase() !== "x" || !row) return false;
    tickRow(row, event.shiftKey);
    return true;
  };
  return { ticked, tick, tickRow, onKey };
}

/** Whether a key is one of a list, and not of a field or of the browser. */
export const isListKey = (event: KeyboardEvent): boolean =>
  !(
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    (event.target as Element).closest("input:not([type=checkbox]), textarea, select, dialog")
  );

export function TickBox({
  name,
  on,
  disabled,
  onTick,
}: {
  name: string;
  on: boolean;
  disabled?: boolean;
  onTick: (range: boolean, on: boolean) => void;
}) {
  const range = useRef(false);
  return (
    <input
      type="checkbox"
      aria-label={`Tick ${name}`}
      checked={on}
      disabled={disabled}
      onClick={(event) => (range.current = event.shiftKey)}
      onChange={(event) => onTick(range.current, event.currentTarget.checked)}
    />
  );
}
