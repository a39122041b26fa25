/** Rows of a table of which only those near the window are in the page. */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const FROM = 200;
const MARGIN = 16;
const NARROW = matchMedia("(max-width: 719px)");

interface Props<T> {
  items: T[];
  id: (item: T) => string;
  /** The height of a row in pixels on wide and narrow windows. */
  heights: [number, number];
  render: (item: T, index: number) => ComponentChildren;
}

/** Keys move between the names of rows; each row must hold one `[data-name]`. */
export function Rows<T>({ items, id, heights, render }: Props<T>) {
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
    addEventListener("scroll", measure, { passive: true });
    addEventListener("resize", measure);
    return () => {
      removeEventListener("scroll", measure);
      removeEventListener("resize", measure);
    };
  }, [windowed, items.length, height]);

  useEffect(() => {
    if (!wanted.current) return;
    const name = body.current?.querySelector<HTMLElement>(`[data-row="${CSS.escape(wanted.current)}"] [data-name]`);
    if (!name) return;
    wanted.current = null;
    name.focus();
    name.scrollIntoView({ block: "nearest" });
  });

  const move = (event: KeyboardEvent): void => {
    if (!(event.target as HTMLElement).matches("[data-name]") || event.metaKey || event.ctrlKey || event.altKey) return;
    const at = items.findIndex((item) => id(item) === focused);
    const page = Math.max(1, Math.floor(innerHeight / height) - 4);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: items.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    const to = steps[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault();
    const target = items[Math.max(0, Math.min(items.length - 1, to))]!;
    wanted.current = id(target);
    setFocused(id(target));
  };

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
      onKeyDown={move}
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
