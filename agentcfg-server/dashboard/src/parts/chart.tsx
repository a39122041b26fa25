/** Charts: axes, bars, lines. Widths come from the page, text is never scaled. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ticks } from "../base/usage";
import { cx } from "./base";

/** The width of an element, followed while it changes. */
export function useWidth() {
  const place = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const measure = (): void => setWidth(Math.floor(place.current!.clientWidth));
    const observer = new ResizeObserver(measure);
    observer.observe(place.current!);
    measure();
    return () => observer.disconnect();
  }, []);
  return { place, width };
}

export interface Marker {
  at: number;
  text: string;
}

export interface Scale {
  /** The middle of a step, from the left. */
  x: (step: number) => number;
  y: (value: number) => number;
  /** The width of a step. */
  step: number;
  left: number;
  right: number;
  top: number;
  bottom: number;
}

interface PlotProps {
  title: string;
  /** What there is to see, in a sentence. */
  desc: string;
  /** The names of the steps; an empty one has none. */
  names: string[];
  most: number;
  axis: (value: number) => string;
  height?: number;
  /** Its values are counts. */
  whole?: boolean;
  /** The most lines of the axis. */
  lines?: number;
  /** Where releases were, as a number of steps from the left. */
  markers?: Marker[];
  point?: number | null;
  onPoint?: (step: number) => void;
  onUp?: (by: 1 | -1) => void;
  onTable?: () => void;
  /** What is read out of the point. */
  said?: string | undefined;
  /** The last step is not over. */
  open?: boolean;
  children: (scale: Scale) => ComponentChildren;
}

const GAP = 64;

/** What is read out, at most twice a second. */
function useSaid(text: string | undefined): string {
  const [said, setSaid] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSaid(text ?? ""), 500);
    return () => clearTimeout(timer);
  }, [text]);
  return said;
}

export function Plot(props: PlotProps) {
  const { title, desc, names, most, axis, markers = [], point, onPoint, children } = props;
  const { place, width } = useWidth();
  const id = useId();
  const [used, setUsed] = useState(false);
  const said = useSaid(used ? props.said : undefined);
  const height = props.height ?? (width < 480 ? 220 : 288);
  const values = ticks(most, props.lines ?? (height < 200 ? 2 : 5), props.whole);
  const left = 8 + Math.max(...values.map((value) => axis(value).length)) * 7;
  const scale: Scale = {
    left,
    right: width - 2,
    top: 12,
    bottom: height - 28,
    step: Math.max(0, width - 2 - left) / names.length,
    x: (step) => left + (step + 0.5) * scale.step,
    y: (value) => scale.bottom - (value / values.at(-1)!) * (scale.bottom - scale.top),
  };
  const end = names.length - 1;
  const every = names.includes("") ? 1 : Math.max(1, Math.ceil(GAP / (scale.step || 1)));
  const named = names.map((name, i) => name && (i === end ? props.open : i % every === 0 && (!props.open || end - i >= every)));
  const move = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = point ?? end;
    if (event.key === "ArrowLeft") onPoint!(Math.max(0, at - 1));
    else if (event.key === "ArrowRight") onPoint!(Math.min(end, at + 1));
    else if (event.key === "Home") onPoint!(0);
    else if (event.key === "End") onPoint!(end);
    else if (event.key === "ArrowUp" && props.onUp) props.onUp(1);
    else if (event.key === "ArrowDown" && props.onUp) props.onUp(-1);
    else if (event.key.toLowerCase() === "t" && props.onTable) props.onTable();
    else return;
    setUsed(true);
    event.preventDefault();
  };
  const under = (event: PointerEvent): void => {
    const step = Math.floor((event.offsetX - left) / scale.step);
    if (step >= 0 && step <= end) onPoint!(step);
  };
  return (
    <div
      class="plot"
      ref={place}
      {...(onPoint
        ? { tabIndex: 0, role: "group", "aria-label": `${title}. Left and right move the point.`, onKeyDown: move }
        : {})}
    >
      {width > 0 && (
        <svg
          class="chart"
          width={width}
          height={height}
          role="img"
          aria-labelledby={`${id}t`}
          aria-describedby={`${id}d`}
          {...(onPoint ? { onPointerMove: under, onPointerDown: under } : {})}
        >
          <title id={`${id}t`}>{title}</title>
          <desc id={`${id}d`}>{desc}</desc>
          {values.map((value, i) => (
            <g key={value}>
              <line class={i ? undefined : "zero"} x1={left} x2={scale.right} y1={scale.y(value)} y2={scale.y(value)} />
              <text x={left - 8} y={scale.y(value) + 4} text-anchor="end">
                {axis(value)}
              </text>
            </g>
          ))}
          {markers.map(({ at }) => {
            const x = Math.min(scale.right, left + at * scale.step);
            return (
              <g key={at} class="marker">
                <line x1={x} x2={x} y1={scale.top} y2={scale.bottom} />
                <path d={`M${x - 4} ${scale.bottom + 8}l4-6 4 6z`} />
              </g>
            );
          })}
          {point != null && (
            <rect
              class="under"
              x={left + point * scale.step}
              width={scale.step}
              y={scale.top}
              height={scale.bottom - scale.top}
            />
          )}
          {children(scale)}
          {names.map(
            (name, i) =>
              named[i] && (
                <text
                  key={i}
                  class={props.open && i === end ? "now" : undefined}
                  x={
                    i === end && props.open
                      ? Math.min(scale.x(i) + name.length * 3.5, scale.right)
                      : Math.max(scale.x(i), left + 8)
                  }
                  y={height - 6}
                  text-anchor={i === end && props.open ? "end" : "middle"}
                >
                  {name}
                </text>
              ),
          )}
        </svg>
      )}
      {onPoint && (
        <p class="hidden" role="status">
          {said}
        </p>
      )}
    </div>
  );
}

export interface Stack {
  id: string | null;
  values: number[];
}

/** How a series is filled: the rest is hatched. */
export const fillOf = (stack: Stack, i: number): { class: string; fill?: string } =>
  stack.id === "" ? { class: "rest", fill: "url(#hatch)" } : { class: `s${i + 1}` };

/** A stack for each step, the first series at the bottom. */
export function Bars({ of, scale, open, picked }: { of: Stack[]; scale: Scale; open?: boolean; picked?: number | null }) {
  const width = Math.max(1, Math.min(48, scale.step * 0.74));
  const steps = of[0]?.values.length ?? 0;
  return (
    <>
      {Array.from({ length: steps }, (_, step) => {
        let below = 0;
        return (
          <g key={step} class={cx(open && step === steps - 1 && "part")}>
            {of.map((stack, i) => {
              const value = stack.values[step]!;
              const [bottom, top] = [scale.y(below), scale.y((below += value))];
              // A gap of the surface divides the parts, where there is room for it.
              const height = bottom - top - (i > 0 && bottom - top > 3 ? 1.5 : 0);
              return (
                height > 0.2 && (
                  <rect
                    key={stack.id}
                    {...fillOf(stack, i)}
                    x={scale.x(step) - width / 2}
                    y={top}
                    width={width}
                    height={height}
                    opacity={picked == null || picked === i ? undefined : 0.35}
                  />
                )
              );
            })}
          </g>
        );
      })}
    </>
  );
}

/** A line through the steps that have a value; the way to a step that is not over is dotted. */
export function Line({ values, scale, open }: { values: (number | null)[]; scale: Scale; open?: boolean }) {
  const points = values.flatMap((value, i) => (value === null ? [] : [{ i, x: scale.x(i), y: scale.y(value) }]));
  const path = (from: typeof points): string =>
    from.map(({ x, y }, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const now = open && points.at(-1)?.i === values.length - 1;
  return (
    <>
      <path class="line-path" d={path(now ? points.slice(0, -1) : points)} />
      {now && <path class="line-path open" d={path(points.slice(-2))} />}
      {points.map(({ i, x, y }) => (
        <circle
          key={i}
          class={cx("line-point", now && i === values.length - 1 && "open")}
          cx={x}
          cy={y}
          r={now && i === values.length - 1 ? 4 : 2.5}
        />
      ))}
    </>
  );
}

const [WIDE, HIGH] = [112, 24];

/** A small line without axes; its numbers stand beside it. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(...values) || 1;
  const at = values.map(
    (value, i) => [(i / Math.max(1, values.length - 1)) * (WIDE - 4) + 2, HIGH - 3 - (value / most) * (HIGH - 6)] as const,
  );
  const line = at.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
  const [x, y] = at.at(-1)!;
  return (
    <svg class="spark" width={WIDE} height={HIGH} role="img" aria-label={label}>
      <path class="area" d={`${line}V${HIGH}H2z`} />
      <path d={line} />
      <circle cx={x} cy={y} r="2" />
    </svg>
  );
}

/** The swatch of a series, in a key. */
export function Swatch({ stack, i }: { stack: Stack; i: number }) {
  return (
    <svg class="swatch" width="12" height="12" aria-hidden="true">
      <rect {...fillOf(stack, i)} width="12" height="12" rx="2" />
    </svg>
  );
}

/** The numbers of a chart, as a table that can be opened. */
export function Numbers({
  name,
  head,
  rows,
  open,
  onOpen,
}: {
  name: string;
  head: string[];
  rows: string[][];
  open: boolean;
  onOpen: (open: boolean) => void;
}) {
  return (
    <details class="numbers" open={open} onToggle={(event) => onOpen(event.currentTarget.open)}>
      <summary>Show the numbers as a table</summary>
      {open && (
        <div class="numbers-box" tabIndex={0} role="group" aria-label={name}>
          <table>
            <caption class="hidden">{name}</caption>
            <thead>
              <tr>
                {head.map((text, i) => (
                  <th key={i} scope="col" class={i ? "right" : undefined}>
                    {text}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row[0]}>
                  {row.map((text, i) => (
                    <td key={i} class={i ? "right" : undefined}>
                      {text}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
