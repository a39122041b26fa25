/** Tables: their heads, rows that open, and rows of which only those near the window are in the page. */
import { signal } from "../base/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { listening } from "../base/listening";
import { cx, Icon } from "./base";
import { useListKeys } from "./ticks";

/** The name of a column, its classes, and whether the name is for screen readers alone. */
type Column = readonly [name: string, classes?: string, hidden?: boolean];

export function Table({
  name,
  kind,
  columns,
  count,
  children,
}: {
  name: string;
  kind?: string;
  columns: (Column | false)[];
  /** How many rows there are, where they are in a body of their own. */
  count?: number;
  children: ComponentChildren;
}) {
  const isWhole = count === undefined;
  return (
    <div class="table-box">
      <table class={kind} aria-rowcount={isWhole ? undefined : count + 1}>
        <caption class="hidden">{name}</caption>
        <thead>
          <tr>
            {columns.map(
              (column) =>
                column && (
                  <th key={column[0]} scope="col" class={column[1]}>
                    {column[2] ? <span class="hidden">{column[0]}</span> : column[0]}
                  </th>
                ),
            )}
          </tr>
        </thead>
        {isWhole ? <tbody>{children}</tbody> : children}
      </table>
    </div>
  );
}

/** The head of a column that rows are sorted by; `falling` is the direction of those that are sorted by it now. */
export function SortHead({
  class: extra,
  falling,
  before,
  onSort,
  children,
}: {
  class: string;
  falling: boolean | null;
  /** In front of the name. */
  before?: ComponentChildren;
  onSort: () => void;
  children: ComponentChildren;
}) {
  return (
    <th scope="col" class={extra} aria-sort={falling === null ? undefined : falling ? "descending" : "ascending"}>
      {before}
      <button type="button" class="sort" onClick={onSort}>
        {children}
        {falling !== null && <Icon name={falling ? "down" : "up"} small />}
      </button>
    </th>
  );
}

/** How wide the window is, by the columns that it shows: all, those of medium windows, those of narrow ones. */
const measured = (): 0 | 1 | 2 => (innerWidth < 720 ? 2 : innerWidth < 1024 ? 1 : 0);
const size = signal(measured());
addEventListener("resize", () => (size.value = measured()));

/** A row that opens another one with its details. */
export function OpeningRow({
  open,
  toggle,
  first,
  children,
  details,
  columns,
}: {
  open: boolean;
  toggle: () => void;
  /** The content of the first cell, which is a button. */
  first: ComponentChildren;
  /** The further cells. */
  children: ComponentChildren;
  details: () => ComponentChildren;
  /** How many columns there are on wide, medium and narrow windows: a cell that spans more would make new ones. */
  columns: [number, number, number];
}) {
  return (
    <>
      <tr
        class={cx("follow", open && "open")}
        onClick={(event) => {
          if (!(event.target as Element).closest("button, a") && !getSelection()?.toString()) toggle();
        }}
      >
        <td>
          <button type="button" class="expand" aria-expanded={open} onClick={toggle}>
            <Icon name={open ? "down" : "right"} small />
            {first}
          </button>
        </td>
        {children}
      </tr>
      {open && (
        <tr class="detail">
          <td colSpan={columns[size.value]}>{details()}</td>
        </tr>
      )}
    </>
  );
}

const FROM = 200;
const MARGIN = 16;
const NARROW = matchMedia("(max-width: 719px)");

interface Props<T> {
  items: T[];
  id: (item: T) => string;
  /** The height of a row in pixels on wide and narrow windows. */
  heights: [number, number];
  render: (item: T, index: number) => ComponentChildren;
  /** Whether the keys pass over a row, such as the head of a group. */
  passes?: (item: T) => boolean;
}

/** Keys move between the names of rows, J and K also from elsewhere; each row must hold one `[data-name]`. */
export function Rows<T>({ items, id, heights, render, passes }: Props<T>) {
  const body = useRef<HTMLTableSectionElement>(null);
  const windowed = items.length > FROM;
  const [range, setRange] = useState<[number, number]>([0, 60]);
  const [focused, setFocused] = useState<string | null>(null);
  const wanted = useRef<string | null>(null);
  const height = NARROW.matches ? heights[1] : heights[0];

  useLayoutEffect(() => {
    if (!windowed) return;
    const measure = (): void => {
      const top = body.current!.getBoundingClientRect().top;
      const first = Math.max(0, Math.floor(-top / height) - MARGIN);
      const last = Math.min(items.length, Math.ceil((innerHeight - top) / height) + MARGIN);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    };
    measure();
    const ends = [listening("scroll", measure, { passive: true }), listening("resize", measure)];
    return () => ends.forEach((end) => end());
  }, [windowed, items.length, height]);

  // Before the next key, which may be about this row.
  useLayoutEffect(() => {
    if (!wanted.current) return;
    const name = body.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(wanted.current)}"] [data-name]`);
    if (!name) return;
    wanted.current = null;
    name.focus();
    name.scrollIntoView({ block: "nearest" });
  });

  useListKeys(({ key, target }) => {
    if (!/^[jk]$/.test(key) && !(target as Element).matches("[data-name]")) return false;
    const at = items.findIndex((item) => id(item) === focused);
    const page = Math.max(1, Math.floor(innerHeight / height) - 4);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      j: at + 1,
      k: at - 1,
      Home: 0,
      End: items.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    const to = steps[key];
    if (to === undefined) return false;
    const place = Math.max(0, Math.min(items.length - 1, to));
    // Over heads of groups in the direction of the key; the first row of all has such a head before it.
    const onward = to < at && to > 0 ? items.slice(0, place + 1).reverse() : items.slice(place);
    const row = onward.find((item) => !passes?.(item));
    if (!row) return false;
    wanted.current = id(row);
    setFocused(id(row));
    return true;
  });

  const shown: number[] = [];
  if (windowed) {
    const kept = focused === null ? -1 : items.findIndex((item) => id(item) === focused);
    const [from, to] = [Math.min(range[0], items.length), Math.min(range[1], items.length)];
    if (kept >= 0 && kept < from) shown.push(kept);
    for (let i = from; i < to; i += 1) shown.push(i);
    if (kept >= to) shown.push(kept);
  } else for (let i = 0; i < items.length; i += 1) shown.push(i);

  const rows: ComponentChildren[] = [];
  let end = 0;
  const space = (until: number): void => {
    if (until > end)
      rows.push(
        <tr key={`space ${rows.length}`} class="space" aria-hidden="true">
          <td style={{ height: `${(until - end) * height}px` }} />
        </tr>,
      );
  };
  for (const index of shown) {
    space(index);
    rows.push(render(items[index]!, index));
    end = index + 1;
  }
  space(items.length);

  return (
    <tbody
      ref={body}
      onFocusIn={(event) => setFocused((event.target as HTMLElement).closest("tr")?.dataset["row"] ?? null)}
      onFocusOut={(event) => body.current?.contains(event.relatedTarget as Node) || wanted.current || setFocused(null)}
    >
      {rows}
    </tbody>
  );
}

/** A click anywhere in a row follows the link of its name. */
export function followRow(event: MouseEvent): void {
  if ((event.target as Element).closest("a, button, input, select, label, summary")) return;
  if (getSelection()?.toString()) return;
  (event.currentTarget as Element).querySelector<HTMLElement>("[data-name]")?.click();
}
