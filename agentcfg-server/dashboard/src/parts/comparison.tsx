/** Comparison of two configurations: the fields that differ, then long texts line by line. */
import { Fragment, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { FIELDS, isEmpty, NAMES, numberRows, shown, textOf, type Config, type FieldName, type NumberRow } from "../base/config";
import { listening } from "../base/listening";
import { folded, rows, tally, words, type Piece, type Row } from "../base/diff";
import { setParams } from "../base/route";
import { plural } from "../base/text";
import { Avatar } from "./base";
import { Segments } from "./fields";
import { isListKey, useListKeys } from "./ticks";

interface FieldRow extends NumberRow {
  field: FieldName;
}

function fieldRows(before: Config, after: Config): FieldRow[] {
  return NAMES.flatMap((field): FieldRow[] => {
    const { kind, label, long } = FIELDS[field];
    const [from, to] = [before[field], after[field]];
    if (kind === "numbers") return numberRows(from, to).map((row) => ({ ...row, field }));
    return long || JSON.stringify(from || null) === JSON.stringify(to || null) ? [] : [{ label, from, to, field }];
  });
}

function Value({ row, side }: { row: FieldRow; side: "from" | "to" }) {
  const value = row[side];
  const Mark = side === "from" ? "del" : "ins";
  const { kind, mono } = FIELDS[row.field];
  if (isEmpty(value)) return <span class="dim">None</span>;
  if (Array.isArray(value)) {
    const other = new Set((row[side === "from" ? "to" : "from"] as string[] | null) ?? []);
    return (
      <span class="tags-line">
        {value.map((tag: string, i) =>
          other.has(tag) ? (
            <span key={i} class="tag">
              {tag}
            </span>
          ) : (
            <Mark key={i}>{tag}</Mark>
          ),
        )}
      </span>
    );
  }
  return (
    <>
      {kind === "color" && <Avatar id="" name=" " color={String(value)} size={20} />}
      <Mark class={mono && "mono"}>{shown(value)}</Mark>
    </>
  );
}

export function FieldTable({ rows: fields, from, to }: { rows: FieldRow[]; from: ComponentChildren; to: ComponentChildren }) {
  return (
    <div class="table-box">
      <table class="field-table">
        <thead>
          <tr>
            <th scope="col">Field</th>
            <th scope="col">{from}</th>
            <th scope="col">{to}</th>
          </tr>
        </thead>
        <tbody>
          {fields.map((row) => (
            <tr key={row.label}>
              <th scope="row">{row.label}</th>
              <td>
                <Value row={row} side="from" />
              </td>
              <td>
                <Value row={row} side="to" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

type End = "left" | "right";
const ENDS: End[] = ["left", "right"];

/** Whether a side of a row was removed or added, or has no line there; nothing where both sides are the same. */
const mark = (row: Row, end: End): string => (row.kind === "same" ? "" : row[end] ? (end === "left" ? "del" : "add") : "void");

/** The text of a line, with the words in it that changed. */
function Text({ row, end }: { row: Row; end: End }) {
  const line = row[end];
  if (!line) return null;
  const Tag = end === "left" ? "del" : "ins";
  return (
    <>
      {row.kind === "changed" && <span class="hidden">{end === "left" ? "removed: " : "added: "}</span>}
      {line.pieces.map((piece: Piece, i) => (piece.changed ? <Tag key={i}>{piece.text}</Tag> : piece.text))}
    </>
  );
}

/** A row: its two sides beside each other, or one below the other. */
function Pair({ row, inline }: { row: Row; inline: boolean }) {
  const changed = row.kind === "changed" || undefined;
  if (!inline)
    return (
      <div class="line pair" data-change={changed}>
        {ENDS.map((end) => (
          <Fragment key={end}>
            <span class={`no ${end} ${mark(row, end)}`} data-no={row[end]?.number} />
            <span class={`text ${mark(row, end)}`}>
              <Text row={row} end={end} />
            </span>
          </Fragment>
        ))}
      </div>
    );
  return (
    <>
      {ENDS.filter((end) => row[end] && (changed || end === "right")).map((end) => (
        <div key={end} class={`line ${mark(row, end)}`} data-change={changed}>
          {ENDS.map((other) => (
            <span key={other} class="no" data-no={changed && other !== end ? undefined : row[other]!.number} />
          ))}
          <span class="text">
            <Text row={row} end={end} />
          </span>
        </div>
      ))}
    </>
  );
}

/** N and P go to the next and the previous change of the page. */
listening("keydown", (event) => {
  if (!/^[np]$/.test(event.key) || !isListKey(event)) return;
  const above = [...document.querySelectorAll("[data-change]")].map((line) => line.getBoundingClientRect().top - innerHeight / 3);
  const top = event.key === "n" ? above.find((top) => top > 4) : above.findLast((top) => top < -4);
  if (top) scrollBy({ top });
});

export function TextDiff({ title, before, after, inline }: { title: string; before: string; after: string; inline: boolean }) {
  const all = useMemo(() => rows(before, after), [before, after]);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const { removed, added } = tally(all);
  const parts = useMemo(() => folded(all), [all]);
  return (
    <section
      class={inline ? "diff inline" : "diff"}
      tabIndex={0}
      aria-label={`${title}: ${plural(removed, "line")} removed, ${plural(added, "line")} added. Keys n and p go to the next and the previous change.`}
    >
      <header>
        <b>{title}</b>
        {removed > 0 && <span>{plural(removed, "line")} removed</span>}
        {added > 0 && <span>{plural(added, "line")} added</span>}
      </header>
      <div class="lines">
        {parts.map((part, i) =>
          part.kind !== "fold" ? (
            <Pair key={i} row={part} inline={inline} />
          ) : open.has(i) ? (
            <Fragment key={i}>
              {part.rows.map((row, k) => (
                <Pair key={`${i} ${k}`} row={row} inline={inline} />
              ))}
            </Fragment>
          ) : (
            <button key={i} type="button" class="fold" onClick={() => setOpen(new Set(open).add(i))}>
              {plural(part.rows.length, "equal line")}
            </button>
          ),
        )}
      </div>
    </section>
  );
}

/** Chooses how texts are compared, also by V; the address names a choice that is not the usual one. */
export function Views({ inline, usual }: { inline: boolean; usual: "side" | "inline" }) {
  const pick = (view: "side" | "inline"): void => setParams({ view: view === usual ? null : view });
  useListKeys(({ key }) => {
    if (key === "v") pick(inline ? "side" : "inline");
    return key === "v";
  });
  return (
    <div class="wide-only">
      <Segments
        label="View"
        value={inline ? "inline" : "side"}
        onPick={pick}
        choices={[
          ["side", "Side by side"],
          ["inline", "Inline"],
        ]}
      />
    </div>
  );
}

const narrow = matchMedia("(max-width: 719px)");

export function Comparison({
  before,
  after,
  from,
  to,
  inline,
  nothing,
}: {
  before: Config;
  after: Config;
  from: ComponentChildren;
  to: ComponentChildren;
  inline: boolean;
  nothing: string;
}) {
  const fields = fieldRows(before, after);
  const text = (config: Config, name: FieldName) => textOf(name, config[name]);
  const texts = NAMES.filter((name) => FIELDS[name].long && text(before, name) !== text(after, name));
  if (!fields.length && !texts.length) return <p class="prose">{nothing}</p>;
  return (
    <div class="stack">
      <FieldTable rows={fields} from={from} to={to} />
      {texts.map((name) => (
        <TextDiff
          key={name}
          title={FIELDS[name].label}
          before={text(before, name)}
          after={text(after, name)}
          inline={inline || narrow.matches}
        />
      ))}
    </div>
  );
}

/** A text with what was added to another one and removed from it marked. */
export function Marked({ from, to }: { from: string; to: string }) {
  if (!to) return <span class="dim">None</span>;
  const found = words(from, to);
  if (!found) return <ins>{to}</ins>;
  return (
    <>
      {found.map(({ text, added, removed }, i) =>
        removed ? (
          <Fragment key={i}>
            <del>{text}</del>
            {found[i + 1]?.added && " "}
          </Fragment>
        ) : added ? (
          <ins key={i}>{text}</ins>
        ) : (
          text
        ),
      )}
    </>
  );
}
