/** The merge after a 412: base, theirs and mine of each field; no text is discarded. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { configOf, draftFaults, FIELDS, messageFault, shown, textOf, toConfig, type Draft } from "../base/config";
import { useHistory, useNames } from "../base/data";
import { middle } from "../base/diff";
import { pretty } from "../base/json-text";
import type { Segment } from "../base/merge-lines";
import { asText, isTags, merge, resolve, type Merged, type Part, type Side } from "../base/merge";
import { isolated, now, number, plural, short, span } from "../base/text";
import type { Agent } from "../base/types";
import { Badge, Button, cx, Icon, Told } from "../parts/base";
import { Marked, TextDiff } from "../parts/comparison";
import { useConfirming } from "../parts/dialog";
import { Area, Choices, Field, MessageField } from "../parts/fields";
import { Failure, useSending } from "../parts/feedback";
import { SaveBar } from "../parts/page";
import { CopyButton } from "../parts/secret";

interface Props {
  base: Agent;
  baseVersion: number | null;
  theirs: { agent: Agent; etag: string | null; version: number | null };
  draft: Draft;
  /** The message of the save, or null where there are none. */
  message: string;
  onMessage: (message: string) => void;
  sides: ReadonlyMap<string, Side>;
  edits: ReadonlyMap<string, string>;
  onDecide: (change: { sides?: ReadonlyMap<string, Side>; edits?: ReadonlyMap<string, string> }) => void;
  onBack: () => void;
  onSave: (draft: Draft, against: Agent, etag: string | null) => Promise<boolean>;
}

const SIDES: Record<Merged["side"], string> = {
  theirs: "Only theirs changed",
  mine: "Only yours changed",
  both: "Both made the same change",
  lines: "Merged line by line",
};

/** "2 changes of theirs and 1 of yours": what was taken of a text. */
function linesLine(segments: Segment[]): string {
  const of = (side: Segment["kind"]): number => segments.filter(({ kind }) => kind === side).length;
  return `${plural(of("theirs"), "change")} of theirs and ${number(of("mine"))} of yours, in different lines`;
}

export function MergeView(props: Props) {
  const { base, baseVersion, theirs, draft, message, onMessage, sides, edits, onDecide, onBack, onSave } = props;
  const { busy, error, send } = useSending("Not saved.");
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current!.focus(), []);
  const names = useNames();
  const history = useHistory(base.agent_id).data;
  const found = useMemo(() => merge(configOf(base), configOf(theirs.agent), draft), [base, theirs.agent, draft]);
  const result = useMemo(() => resolve(configOf(theirs.agent), found, sides, edits), [found, sides, edits]);
  const faults = [...Object.values(draftFaults(result, configOf(theirs.agent))), messageFault(message ?? "")].filter(Boolean);
  const decided = found.conflicts.filter(({ key }) => sides.has(key)).length;
  const ready = decided === found.conflicts.length && !faults.length;
  const version = theirs.version ?? history?.[0]?.version ?? null;
  const saved = history?.find((entry) => entry.version === version);
  const who = saved ? names(saved.actor) : "Another session";
  const age = now.value - Date.parse(theirs.agent.updated_at);
  const next = version ? `Save as v${version + 1}` : "Save";

  const choose = (part: Part, side: Side): void =>
    onDecide({
      sides: new Map(sides).set(part.key, side),
      edits: side !== "edit" || edits.has(part.key) ? edits : new Map(edits).set(part.key, asText(part, part.mine)),
    });
  const save = async (): Promise<void> => {
    await onSave(result, theirs.agent, theirs.etag);
  };
  useConfirming(() => ready && void send(save));
  return (
    <section aria-label="Resolve changes" class="merge">
      <div class="merge-head">
        <h2 ref={heading} tabIndex={-1}>
          {isolated(base.display_name)} changed while you were editing
        </h2>
        <p class="prose">
          {who} saved {version ? `v${version}` : "it"} {age < 60_000 ? "just now" : `${span(age)} ago`}.{" "}
          {baseVersion ? `You started from v${baseVersion}. ` : ""}
          Nothing of yours is lost:{" "}
          {found.conflicts.length ? "choose for each field, then save" : "no field was changed by both, so you can save"}
          {version ? ` as v${version + 1}` : ""}.
        </p>
      </div>
      {found.conflicts.map((part) => (
        <Conflict
          key={part.key}
          part={part}
          side={sides.get(part.key) ?? null}
          edited={edits.get(part.key) ?? ""}
          baseName={baseVersion ? `Base, v${baseVersion}` : "Base"}
          theirsName={[version ? `Theirs, v${version}` : "Theirs", saved && who].filter(Boolean).join(" · ")}
          onChoose={(side) => choose(part, side)}
          onEdit={(text) => onDecide({ edits: new Map(edits).set(part.key, text) })}
        />
      ))}
      {found.merged.length > 0 && (
        <div class="card">
          <header>
            <h2>Merged without a conflict</h2>
            <span class="dim small-text">{plural(found.merged.length, "field")}</span>
          </header>
          <dl class="merged">
            {found.merged.map((part) => (
              <div key={part.key}>
                <dt>{part.label}</dt>
                <dd>
                  {part.side === "lines" ? (
                    linesLine(found.texts.get(part.field)!)
                  ) : (
                    <>
                      {short(shown(part.base), 60)} <span class="hidden">to</span>
                      <Icon name="arrow" small /> {short(shown(part.side === "mine" ? part.mine : part.theirs), 60)}
                    </>
                  )}
                </dd>
                <dd class="dim">{SIDES[part.side]}</dd>
              </div>
            ))}
          </dl>
        </div>
      )}
      {found.texts.size > 0 && decided < found.conflicts.length && (
        <p class="hint">
          <Told of="undecided" />
        </p>
      )}
      {[...found.texts.keys()].map((field) => (
        <TextDiff
          key={field}
          title={`${FIELDS[field].label}, as it will be saved`}
          before={textOf(field, base[field])}
          after={result[field] as string}
          inline
        />
      ))}
      <MessageField why value={message} onText={onMessage} />
      <Failure what="Not saved." error={error} kept="Your text and your choices are still here." />
      <SaveBar
        what={found.conflicts.length ? `${decided} of ${plural(found.conflicts.length, "conflict")} decided` : "No conflicts"}
        more={faults[0] ?? <Told of="draft" />}
      >
        <Button kind="quiet" onClick={onBack}>
          Back to editing
        </Button>
        <CopyButton text={mineAsText(draft)} what="Copy my version" small={false} />
        <Button kind="primary" busy={busy} blocked={!ready} onClick={() => void send(save)}>
          {next}
        </Button>
      </SaveBar>
    </section>
  );
}

/** All fields of mine, as JSON, so that they can be put somewhere safe. */
export const mineAsText = (draft: Draft): string => pretty(toConfig(draft));

function Conflict({
  part,
  side,
  edited,
  baseName,
  theirsName,
  onChoose,
  onEdit,
}: {
  part: Part;
  side: Side | null;
  edited: string;
  baseName: string;
  theirsName: string;
  onChoose: (side: Side) => void;
  onEdit: (text: string) => void;
}) {
  const { kind, mono, rows } = FIELDS[part.field];
  const [whole, setWhole] = useState(false);
  const all = [part.base, part.theirs, part.mine].map((value) => asText(part, value));
  const parts = middle(all);
  const left = parts.above + parts.below;
  const [base, theirs, mine] = (whole ? all : parts.texts) as [string, string, string];
  const tags = isTags(part);
  return (
    <section class="conflict" aria-label={part.label}>
      <header>
        <h3>{part.label}</h3>
        <Badge tone="warn" icon="warn">
          Both changed it
        </Badge>
        <Choices
          hidden
          label={`Keep for ${part.label}`}
          value={side}
          onPick={onChoose}
          choices={[
            ["theirs", "Theirs"],
            ["mine", "Mine"],
            ...(part.segment === undefined ? [] : [["both", "Both"] as const]),
            ...(kind === "choice" ? [] : [["edit", "Edit"] as const]),
          ]}
        />
      </header>
      <div class="three">
        <Column name={baseName} mono={mono}>
          {base || <span class="dim">None</span>}
        </Column>
        <Column name={theirsName} chosen={side === "theirs" || side === "both"} mono={mono}>
          <Marked from={base} to={theirs} />
        </Column>
        <Column name="Mine, not saved" chosen={side === "mine" || side === "both"} mono={mono}>
          <Marked from={base} to={mine} />
        </Column>
      </div>
      {left > 0 && !whole && (
        <button type="button" class="fold" onClick={() => setWhole(true)}>
          {plural(left, "equal line")} around, show the whole text
        </button>
      )}
      {side === "edit" && (
        <div class="result">
          <Field label={`${part.label}, edited`} hint={tags ? <Told of="tag lines" /> : undefined}>
            {(field) => (
              <Area
                {...field}
                mono={mono}
                rows={rows || tags ? Math.min(16, Math.max(4, edited.split("\n").length + 1)) : 1}
                value={edited}
                onText={onEdit}
              />
            )}
          </Field>
        </div>
      )}
    </section>
  );
}

function Column({
  name,
  chosen,
  mono,
  children,
}: {
  name: string;
  chosen?: boolean;
  mono: boolean | undefined;
  children: preact.ComponentChildren;
}) {
  return (
    <div class={cx(chosen && "chosen")}>
      <h4>
        {chosen && <Icon name="check" small />}
        {name}
        {chosen && <span class="hidden">, chosen</span>}
      </h4>
      <div class={cx("value", mono && "mono")} role="group" aria-label={name}>
        {children}
      </div>
    </div>
  );
}
