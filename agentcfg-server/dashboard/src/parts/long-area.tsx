/**
 * A box for texts of many lines: they are numbered, changed ones are marked in the margin, marks of Markdown have a colour,
 * texts are found and replaced, and it can fill the window.
 */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { blocks, lines } from "../base/diff";
import { number, plural } from "../base/text";
import { Button, cx } from "./base";
import { isConfirming } from "./dialog";
import { Area, Input, type AreaProps } from "./fields";

/** Variables, code and bold words. */
const MARKS = /(\{\{[^}]*\}\}|`[^`]+`|\*\*[^*]+\*\*)/;

/** How each line of a text differs from those of another one: it is new, it replaces one, or it is the same. */
const marksOf = (before: string, after: string): ("new" | "edited" | "")[] =>
  blocks(lines(before), lines(after)).flatMap(({ removed, added, same }) => [
    ...added.map((_, i) => (i < removed.length ? "edited" : "new")),
    ...same.map(() => "" as const),
  ]);

/** `stored` is the text that the lines are compared with. */
export function LongArea({ value, rows, stored, ...rest }: AreaProps & { stored: string }) {
  const marks = useMemo(() => marksOf(stored, value), [stored, value]);
  const [full, setFull] = useState(false);
  /** What is looked for; null while nothing is. */
  const [query, setQuery] = useState<string | null>(null);
  const [by, setBy] = useState("");
  const [at, setAt] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  const pattern = query ? new RegExp(`(${query.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")})`, "gi") : null;
  const found = pattern ? [...value.matchAll(pattern)] : [];
  const most = found.length;
  const chosen = found[at % most];
  const area = (): HTMLTextAreaElement => box.current!.querySelector("textarea")!;
  useEffect(() => box.current!.querySelector(".on")?.scrollIntoView({ block: "nearest" }), [query, chosen?.index]);
  useLayoutEffect(() => {
    if (query !== null) box.current!.querySelector("input")!.select();
  }, [query === null]);

  const look = (): void => setQuery(value.slice(area().selectionStart, area().selectionEnd).split("\n")[0]!);
  const step = (by: number): void => setAt(most && (at % most) + by + most);
  const close = (): void => {
    setQuery(null);
    area().focus();
    if (chosen) area().setSelectionRange(chosen.index, chosen.index + query!.length);
  };
  /** Types a text in place of another one, so that it can be undone. */
  const put = (from: number, to: number, text: string): void => {
    const before = document.activeElement as HTMLElement;
    area().focus({ preventScroll: true });
    area().setSelectionRange(from, to);
    document.execCommand(text ? "insertText" : "delete", false, text);
    before.focus();
  };
  const keys = (event: KeyboardEvent): void => {
    const { key } = event;
    const isInBar = event.target instanceof HTMLInputElement;
    // What is wrong stands below the box.
    if (isConfirming(event) && rest["aria-invalid"]) setFull(false);
    if (key === "f" && (event.ctrlKey || event.metaKey) && event.target === area()) look();
    else if (key === "Enter" && isInBar) step(event.shiftKey ? -1 : 1);
    else if (key === "Escape" && query !== null) close();
    else if (key === "Escape" && full) setFull(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const tokens = Math.ceil(new Blob([value]).size / 4);
  const edited = marks.filter(Boolean).length;
  let place = 0;
  return (
    <div class={cx("long-area", full && "full")} ref={box} style={{ "--rows": Number(rows) }} onKeyDown={keys}>
      {query !== null && (
        <div class="find-bar" role="search">
          <Input
            aria-label="Find"
            placeholder="Find"
            value={query}
            onText={(text) => {
              setQuery(text);
              setAt(0);
            }}
          />
          <span class="count" role="status">
            {most ? `${number((at % most) + 1)} of ${number(most)}` : query && "None"}
          </span>
          <Button kind="quiet" small icon="up" label="Previous" blocked={!most} onClick={() => step(-1)} />
          <Button kind="quiet" small icon="down" label="Next" blocked={!most} onClick={() => step(1)} />
          {!rest.readOnly && (
            <>
              <Input aria-label="Replace with" placeholder="Replace with" value={by} onText={setBy} />
              <Button
                small
                blocked={!most}
                onClick={() => {
                  put(chosen!.index, chosen!.index + query.length, by);
                  // Over what was just written, where it is what is looked for.
                  setAt((at % most) + (by.split(pattern!).length >> 1));
                }}
              >
                Replace
              </Button>
              <Button
                small
                blocked={!most}
                onClick={() =>
                  put(
                    0,
                    value.length,
                    value.replace(pattern!, () => by),
                  )
                }
              >
                Replace all
              </Button>
            </>
          )}
          <Button kind="quiet" small icon="close" label="Close" onClick={close} />
        </div>
      )}
      {/* The text is seen here: each line wraps as it does in the box over it. */}
      <div class="area-lines" dir="auto" aria-hidden="true">
        {value.split("\n").map((line, i) => (
          <div key={i} class={cx(/^#{1,6} /.test(line) && "heading", marks[i])}>
            {line.split(pattern ?? MARKS).map((part, k) =>
              k % 2 === 0 ? (
                part
              ) : pattern ? (
                <mark key={k} class={place++ === at % most ? "on" : undefined}>
                  {part}
                </mark>
              ) : (
                <i key={k}>{part}</i>
              ),
            )}
            {"\u200b"}
          </div>
        ))}
      </div>
      <Area {...rest} rows={rows} value={value} class="long" />
      <div class="row fill">
        <span class="count grow clip">
          {plural(marks.length, "line")}
          {/* A rule of thumb: a token is four bytes of English. */}
          {tokens > 0 && ` · about ${plural(tokens, "token")}`}
          {edited > 0 && ` · ${number(edited)} changed`}
        </span>
        {query === null && (
          <Button small onClick={look}>
            Find
          </Button>
        )}
        <Button small onClick={() => setFull(!full)}>
          {full ? "Leave full screen" : "Full screen"}
        </Button>
      </div>
    </div>
  );
}
