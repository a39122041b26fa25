/** Rows of a list that are ticked: one by one, a range with Shift, or all. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { listening } from "../base/listening";
import { letters } from "../base/shortcuts";

export interface Ticks {
  ticked: ReadonlySet<string>;
  tick: (ids: string[], on: boolean) => void;
  /** Ticks a row, or all from the one before to it. */
  tickRow: (id: string, range: boolean) => void;
}

/** `ids` are the rows in their order; `may` says which of them can be ticked. X ticks the row that has the focus. */
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
  useListKeys((event) => {
    const row = (event.target as Element).closest<HTMLElement>("tr[data-row]")?.dataset["row"];
    if (event.key.toLowerCase() !== "x" || !row) return false;
    tickRow(row, event.shiftKey);
    return true;
  });
  return { ticked, tick, tickRow };
}

/** Whether a key is one of the page, and not of a field or of the browser. */
export const isListKey = (event: KeyboardEvent): boolean =>
  !(
    event.ctrlKey ||
    event.metaKey ||
    event.altKey ||
    (event.key.length === 1 && letters.peek()) ||
    (event.target as Element).closest("input:not([type=checkbox]), textarea, select, dialog, [role=menu]")
  );

/** Keys of the page, wherever the focus is; `run` says whether it was one of them. */
export function useListKeys(run: (event: KeyboardEvent) => boolean): void {
  useLayoutEffect(() => listening("keydown", (event) => isListKey(event) && run(event) && event.preventDefault()));
}

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
