/** The configuration of an agent: editing, review, saving, and the merge after a 412. */
import { useMemo, useRef, useState } from "preact/hooks";
import { call, isStatus } from "../base/api";
import { invalidate, update } from "../base/cache";
import {
  changedFields,
  configOf,
  draftFaults,
  FIELDS,
  messageFault,
  numberRows,
  toBody,
  toConfig,
  toDraft,
  type Config,
  type Draft,
  type FieldName,
} from "../base/config";
import { type AgentState, agentQuery } from "../base/data";
import { drafts, keep, type Kept } from "../base/drafts";
import { closePart, go, href, openPart, route } from "../base/route";
import { can } from "../base/session";
import { capital, isolated, moment, plural } from "../base/text";
import type { Agent } from "../base/types";
import { Button, LinkButton, Told } from "../parts/base";
import { Comparison } from "../parts/comparison";
import { FormDialog, useConfirming } from "../parts/dialog";
import { attempt, Banner, toast } from "../parts/feedback";
import { focusFault, MessageField, useTouched } from "../parts/fields";
import { SaveBar } from "../parts/page";
import { CopyButton } from "../parts/secret";
import { Fields } from "./form";
import { mineAsText, MergeView } from "./merge";

/** The names of changes for a person, parameters one by one. */
function changeNames(base: Config, draft: Draft): string[] {
  const mine = toConfig(draft);
  return changedFields(base, draft).flatMap((field) => {
    const { kind, label } = FIELDS[field];
    const names = kind === "numbers" ? numberRows(base[field], mine[field]).map((row) => row.label) : [];
    return names.length ? names.map((name) => name || "a parameter without a name") : [label];
  });
}

const differs = (one: Agent, other: Agent): boolean => changedFields(configOf(one), toDraft(configOf(other))).length > 0;

export async function latest(agent: Agent): Promise<{ agent: Agent | undefined; etag: string | null; version: number | null }> {
  const answer = await call<Agent[]>("GET", "api/agents/configs", {
    query: { ...agentQuery(agent), state: "all" },
  });
  return { agent: answer.data[0], etag: answer.etag, version: answer.version };
}

/** A field that the server has refused, with the value that it had. */
interface Refusal {
  name: FieldName;
  value: unknown;
  why: string;
}

/** Which field a message of the server begins with, and the message with its name on screen. */
function refusalOf(message: string, draft: Draft): Refusal | null {
  const [, name, rest] = /^(\w+)(.*)$/s.exec(message) ?? [];
  const field = FIELDS[name as FieldName];
  return field ? { name: name as FieldName, value: draft[name as FieldName], why: `${field.label}${rest}.` } : null;
}

/** How long the focus needs to come to rest on a tab that was opened. */
const SETTLED = 100;

/** `part` is the tab: all tabs edit one draft. */
export function Editor({ state, part }: { state: AgentState; part: "configuration" | "definition" }) {
  const { agent } = state;
  const kept = drafts.value.get(agent.id);
  const base = kept?.base ?? agent;
  // What is typed stays as it is where its content is the stored one, such as "050" on the way to "0.50".
  const [typed, setTyped] = useState<Draft | null>(null);
  const draft = kept?.draft ?? (typed && !changedFields(configOf(agent), typed)[0] ? typed : toDraft(configOf(agent)));
  const readOnly = !can("agents:configure") || !agent.is_active;
  const { touch, touched, touchAll } = useTouched();
  const [reviewing, setReviewing] = useState(false);
  const message = kept?.message ?? "";
  const form = useRef<HTMLDivElement>(null);
  const theirs = route.value.params.get("merge") === null ? null : kept?.theirs;

  const fields = changedFields(configOf(base), draft);
  const names = useMemo(() => changeNames(configOf(base), draft), [base, draft]);
  const [refused, setRefused] = useState<Refusal | null>(null);
  const faults = draftFaults(draft, configOf(base));
  if (refused && draft[refused.name] === refused.value) faults[refused.name] ??= refused.why;
  const dirty = fields.length > 0;
  // What a deletion or a restoration moves is not the content.
  const behind = dirty && !readOnly && kept !== undefined && differs(kept.base, agent);

  const change = (next: Draft): void => {
    const start = kept ?? { base: agent, etag: state.etag, version: state.version, draft };
    // A draft that is as the stored one again is none.
    const clean = changedFields(configOf(start.base), next).length === 0;
    keep(agent.id, clean ? null : { ...start, draft: next, restored: undefined });
    setTyped(next);
  };

  /** Changes what is kept with the draft. */
  const hold = (change: Partial<Kept>): void => {
    const now = drafts.peek().get(agent.id);
    if (now) keep(agent.id, { ...now, ...change });
  };

  const throwAway = (): void => {
    keep(agent.id, null);
    toast("Your changes are discarded.", kept && { label: "Undo", run: () => keep(agent.id, kept) });
  };

  /** Opens the merge with what is stored now. */
  const compare = (): Promise<void> =>
    attempt("The stored version could not be read.", async () => {
      const newest = await latest(agent);
      if (!newest.agent) return;
      hold({ theirs: { ...newest, agent: newest.agent } });
      openPart("merge");
    });

  /** Puts the focus on a field with a fault, on the other tab where it is there. */
  const showFault = (names: FieldName[]): void => {
    touchAll();
    const here = names.some((name) => (FIELDS[name].section === "definition") === (part === "definition"));
    if (!here) go(href("agent", { id: agent.agent_id, tab: part === "definition" ? null : "definition" }));
    // A tab that was opened takes the focus first.
    setTimeout(() => focusFault(form.current), here ? 0 : SETTLED);
  };

  const review = (): void => {
    if (!dirty || readOnly) return;
    const names = Object.keys(faults) as FieldName[];
    if (names.length) showFault(names);
    else if (behind) void compare();
    else setReviewing(true);
  };

  useConfirming(() => theirs || review());

  /** Saves against a tag; gives the stored record, or opens the merge when there is a newer one. */
  const save = async (content: Draft, against: Agent, etag: string | null): Promise<boolean> => {
    try {
      const answer = await call<Agent>("PATCH", "api/agents/configs", {
        query: { ...agentQuery(agent), message },
        body: toBody(content, changedFields(configOf(against), content)),
        ifMatch: etag,
      });
      keep(agent.id, null);
      setTyped(null);
      closePart("merge");
      update("api/agents/configs", agent, answer.data, answer.etag);
      invalidate("agents", "versions", "audit");
      toast(`${isolated(answer.data.display_name)} is saved${answer.version ? ` as v${answer.version}` : ""}.`);
      return true;
    } catch (error) {
      const refusal = isStatus(error, 400) && refusalOf(error.message, content);
      if (refusal && !theirs) {
        setReviewing(false);
        setRefused(refusal);
        showFault([refusal.name]);
        return false;
      }
      if (!isStatus(error, 412)) throw error;
      const newest = await latest(agent);
      if (!newest.agent) throw error;
      // The content is the one that was seen: nothing is to be merged.
      if (newest.agent.is_active && !differs(against, newest.agent)) return save(content, newest.agent, newest.etag);
      hold({ theirs: { ...newest, agent: newest.agent } });
      setReviewing(false);
      openPart("merge");
      return false;
    }
  };

  if (theirs && kept && !readOnly) {
    return (
      <MergeView
        key="merge"
        base={kept.base}
        baseVersion={kept.version}
        theirs={theirs}
        draft={kept.draft}
        message={message}
        onMessage={(text) => hold({ message: text })}
        sides={kept.sides ?? new Map()}
        edits={kept.edits ?? new Map()}
        onDecide={hold}
        onBack={() => closePart("merge")}
        onSave={save}
      />
    );
  }

  const props = {
    id: agent.agent_id,
    draft,
    onChange: change,
    faults,
    touched,
    touch,
    changed: new Set(fields),
    stored: configOf(base),
    readOnly,
  };
  return (
    <>
      {kept?.restored && (
        <Banner
          title="Draft restored."
          action={
            <Button small onClick={throwAway}>
              Throw it away
            </Button>
          }
        >
          You typed it {moment(kept.restored)}
          {kept.version && `, from v${kept.version} on`}.
        </Banner>
      )}
      {behind && (
        <Banner
          tone="warn"
          title={`${isolated(agent.display_name)} changed while you were editing.`}
          action={
            <Button small onClick={() => void compare()}>
              Compare
            </Button>
          }
        >
          Your text is kept.
        </Banner>
      )}
      {readOnly && agent.is_active && (
        <Banner icon="lock" title="Read only.">
          <Told of="read only" />
        </Banner>
      )}
      <div class={part === "definition" ? "stack pad-top" : "editor"} ref={form}>
        {part === "definition" ? (
          <Fields {...props} of="definition" />
        ) : (
          <>
            <div class="group">
              <Fields {...props} of="persona" />
              <Fields {...props} of="description" />
            </div>
            <div>
              <div class="group">
                <Fields {...props} of="model" />
              </div>
              <div class="group">
                <Fields {...props} of="parameters" />
              </div>
              <div class="group">
                <Fields {...props} of="identity" />
                <Fields {...props} of="capabilities" />
              </div>
            </div>
          </>
        )}
      </div>
      {dirty && (
        <SaveBar
          what={plural(names.length, "unsaved change")}
          more={
            readOnly
              ? `It cannot be saved: ${agent.is_active ? "your role may not change agents" : "the agent is deleted"}.`
              : capital(names.map((name) => name.toLowerCase()).join(", "))
          }
        >
          {draft.agent_type === "ai" && agent.is_active && can("models:invoke") && (
            <LinkButton icon="play" to={href("agent", { id: agent.agent_id, tab: "try", of: "draft" })}>
              Try the draft
            </LinkButton>
          )}
          <Button kind="quiet" onClick={throwAway}>
            Discard
          </Button>
          {readOnly ? (
            <CopyButton text={mineAsText(draft)} what="Copy my version" small={false} />
          ) : (
            <Button kind="primary" onClick={review}>
              Review changes
            </Button>
          )}
        </SaveBar>
      )}
      {reviewing && (
        <Review
          agent={agent}
          base={base}
          draft={draft}
          version={kept?.version ?? state.version}
          message={message}
          onMessage={(text) => hold({ message: text })}
          onClose={() => setReviewing(false)}
          save={() => save(draft, base, kept ? kept.etag : state.etag)}
        />
      )}
    </>
  );
}

function Review({
  agent,
  base,
  draft,
  version,
  message,
  onMessage,
  onClose,
  save,
}: {
  agent: Agent;
  base: Agent;
  draft: Draft;
  version: number | null;
  message: string;
  onMessage: (message: string) => void;
  onClose: () => void;
  save: () => Promise<boolean>;
}) {
  const fault = messageFault(message);
  return (
    <FormDialog
      wide
      title={`Save ${isolated(agent.display_name)}?`}
      verb={version ? `Save as v${version + 1}` : "Save"}
      blocked={fault !== null}
      run={save}
      failed="Not saved."
      kept={() => "Your text is still here."}
      onClose={onClose}
    >
      <div class="review" tabIndex={0} role="group" aria-label="Differences">
        <Comparison
          before={configOf(base)}
          after={toConfig(draft)}
          from={version ? `v${version}, stored` : "Stored"}
          to="Yours"
          inline
          nothing="Nothing differs."
        />
      </div>
      <MessageField why value={message} onText={onMessage} data-first />
    </FormDialog>
  );
}
