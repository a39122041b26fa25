/** Comparison of two configurations: the fields that differ, then the persona line by line. */
import { Fragment, type ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { changedParameters, FIELDS, NAMES, shown } from "../base/config";
import { folded, rows, tally, type Line, type Piece, type Row } from "../base/diff";
import { plural } from "../base/text";
import type { Config } from "../base/types";
import { Avatar } from "./base";

interface FieldRow {
  label: string;
  from: unknown;
  to: unknown;
  code: boolean;
}

const CODE = new Set(["model", "color"]);

export function fieldRows(from: Config, to: Config): FieldRow[] {
  const result: FieldRow[] = [];
  for (const field of FIELDS) {
    if (field === "persona_prompt") continue;
    if (field === "parameters") {
      for (const name of changedParameters(from.parameters, to.parameters)) {
        result.push({ label: name, from: from.parameters[name] ?? null, to: to.parameters[name] ?? null, code: false });
      }
    } else if (JSON.stringify(from[field] || null) !== JSON.stringify(to[field] || null)) {
      result.push({ label: NAMES[field], from: from[field], to: to[field], code: CODE.has(field) });
    }
  }
  return result;
}

function Value({ row, side }: { row: FieldRow; side: "from" | "to" }) {
  const value = row[side];
  const Mark = side === "from" ? "del" : "ins";
  const none = value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length);
  if (Array.isArray(value) && value.length) {
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
  return none ? (
    <span class="dim">None</span>
  ) : (
    <>
      {row.label === NAMES.color && <Avatar id="" name=" " color={String(value)} size={20} />}
      <Mark class={row.code ? "mono" : undefined}>{shown(value)}</Mark>
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

function Pieces({ line, tag: Tag }: { line: Line; tag: "ins" | "del" }) {
  return <>{line.pieces.map((piece: Piece, i) => (piece.changed ? <Tag key={i}>{piece.text}</Tag> : piece.text))}</>;
}

const same = (row: Row, side: "left" | "right"): string =>
  row.kind === "same" ? "" : row[side] ? (side === "left" ? "del" : "add") : "void";

function Pair({ row, inline }: { row: Row; inline: boolean }) {
  const { left, right } = row;
  if (inline) {
    if (row.kind === "same") {
      return (
        <div class="line">
          <span class="no" data-no={left!.number} />
          <span class="no" data-no={right!.number} />
          <span class="text">
            <Pieces line={left!} tag="ins" />
          </span>
        </div>
      );
    }
    return (
      <>
        {left && (
          <div class="line del" data-change>
            <span class="no" data-no={left.number} />
            <span class="no" />
            <span class="text">
              <span class="hidden">removed: </span>
              <Pieces line={left} tag="del" />
            </span>
          </div>
        )}
        {right && (
          <div class="line add" data-change>
            <span class="no" />
            <span class="no" data-no={right.number} />
            <span class="text">
              <span class="hidden">added: </span>
              <Pieces line={right} tag="ins" />
            </span>
          </div>
        )}
      </>
    );
  }
  return (
    <div class="line pair" {...(row.kind === "changed" ? { "data-change": true } : {})}>
      <span class={`no ${same(row, "left")}`} data-no={left?.number} />
      <span class={`text ${same(row, "left")}`}>
        {left && (
          <>
            {row.kind === "changed" && <span class="hidden">removed: </span>}
            <Pieces line={left} tag="del" />
          </>
        )}
      </span>
      <span class={`no right ${same(row, "right")}`} data-no={right?.number} />
      <span class={`text ${same(row, "right")}`}>
        {right && (
          <>
            {row.kind === "changed" && <span class="hidden">added: </span>}
            <Pieces line={right} tag="ins" />
          </>
        )}
      </span>
    </div>
  );
}

export function TextDiff({ title, before, after, inline }: { title: string; before: string; after: string; inline: boolean }) {
  const all = useMemo(() => rows(before, after), [before, after]);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const { removed, added } = tally(all);
  const parts = useMemo(() => folded(all), [all]);
  const step = (event: KeyboardEvent): void => {
    if (event.key !== "n" && event.key !== "p") return;
    const box = event.currentTarget as HTMLElement;
    const changes = [...box.querySelectorAll<HTMLElement>("[data-change]")];
    const middle = innerHeight / 3;
    const next =
      event.key === "n"
        ? changes.find((line) => line.getBoundingClientRect().top > middle + 4)
        : changes.findLast((line) => line.getBoundingClientRect().top < middle - 4);
    if (next) scrollBy({ top: next.getBoundingClientRect().top - middle });
  };
  return (
    <section
      class={inline ? "diff inline" : "diff"}
      tabIndex={0}
      aria-label={`${title}: ${plural(removed, "line")} removed, ${plural(added, "line")} added. Keys n and p go to the next and the previous change.`}
      onKeyDown={step}
    >
      <header>
        <b>{title}</b>
        <span>{plural(removed, "line")} removed</span>
        <span>{plural(added, "line")} added</span>
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
  const persona = (before.persona_prompt ?? "") !== (after.persona_prompt ?? "");
  if (!fields.length && !persona) return <p class="prose">{nothing}</p>;
  return (
    <div class="stack">
      {fields.length > 0 && <FieldTable rows={fields} from={from} to={to} />}
      {persona && (
        <TextDiff
          title={NAMES.persona_prompt}
          before={before.persona_prompt ?? ""}
          after={after.persona_prompt ?? ""}
          inline={inline || narrow.matches}
        />
      )}
    </div>
  );
}
