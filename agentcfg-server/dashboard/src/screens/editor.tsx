/** The configuration of an agent: editing, review, saving, and the merge after a 412. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
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
} from "../base/config";
import { type AgentState, agentQuery } from "../base/data";
import { drafts, keep, type Kept } from "../base/drafts";
import { closePart, openPart, route } from "../base/route";
import { can } from "../base/session";
import { capital, plural } from "../base/text";
import type { Agent } from "../base/types";
import { Button } from "../parts/base";
import { Comparison } from "../parts/comparison";
import { FormDialog } from "../parts/dialog";
import { Banner, toast } from "../parts/feedback";
import { focusFault, MessageField, useTouched } from "../parts/fields";
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

/** `part` is the tab: all tabs edit one draft. */
export function Editor({ state, part }: { state: AgentState; part: "configuration" | "definition" }) {
  const { agent } = state;
  const kept = drafts.value.get(agent.id);
  const base = kept?.base ?? agent;
  const draft = kept?.draft ?? toDraft(configOf(agent));
  const readOnly = !can("agents:configure") || !agent.is_active;
  const { touch, touched, touchAll } = useTouched();
  const [reviewing, setReviewing] = useState(false);
  const message = kept?.message ?? "";
  const form = useRef<HTMLDivElement>(null);
  const theirs = route.value.params.get("merge") === null ? null : kept?.theirs;

  const fields = changedFields(configOf(base), draft);
  const names = useMemo(() => changeNames(configOf(base), draft), [base, draft]);
  const faults = draftFaults(draft, configOf(base));
  const dirty = fields.length > 0;
  // What a deletion or a restoration moves is not the content.
  const behind = dirty && !readOnly && kept !== undefined && differs(kept.base, agent);

  const change = (next: Draft): void => {
    const start = kept ?? { base: agent, etag: state.etag, version: state.version, draft };
    // A draft that is as the stored one again is none.
    const clean = changedFields(configOf(start.base), next).length === 0;
    keep(agent.id, clean ? null : { ...start, draft: next });
  };

  /** Changes what is kept with the draft. */
  const hold = (change: Partial<Kept>): void => {
    const now = drafts.peek().get(agent.id);
    if (now) keep(agent.id, { ...now, ...change });
  };

  const review = (): void => {
    if (!dirty || readOnly) return;
    if (Object.keys(faults).length) {
      touchAll();
      focusFault(form.current);
      return;
    }
    setReviewing(true);
  };

  useLayoutEffect(() => {
    const save = (event: KeyboardEvent): void => {
      if (event.key !== "s" || !(event.ctrlKey || event.metaKey) || event.altKey || document.querySelector("dialog[open]"))
        return;
      event.preventDefault();
      review();
    };
    addEventListener("keydown", save);
    return () => removeEventListener("keydown", save);
  });

  /** Saves against a tag; gives the stored record, or opens the merge when there is a newer one. */
  const save = async (content: Draft, against: Agent, etag: string | null): Promise<boolean> => {
    try {
      const answer = await call<Agent>("PATCH", "api/agents/configs", {
        query: { ...agentQuery(agent), message },
        body: toBody(content, changedFields(configOf(against), content)),
        ifMatch: etag,
      });
      keep(agent.id, null);
      closePart("merge");
      update<Agent[]>("agents", "api/agents/configs", (all) => all.map((one) => (one.id === agent.id ? answer.data : one)));
      invalidate("agents", "versions", "audit");
      toast(`${answer.data.display_name} is saved${answer.version ? ` as v${answer.version}` : ""}.`);
      return true;
    } catch (error) {
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
        message={state.history.absent ? null : message}
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
      {behind && (
        <Banner
          tone="warn"
          title={`${agent.display_name} changed while you were editing.`}
          action={
            <Button
              small
              onClick={() =>
                void latest(agent)
                  .then((newest) => {
                    if (!newest.agent) return;
                    hold({ theirs: { ...newest, agent: newest.agent } });
                    openPart("merge");
                  })
                  .catch(() => undefined)
              }
            >
              Compare
            </Button>
          }
        >
          Your text is kept. You can compare both versions before you save.
        </Banner>
      )}
      {readOnly && agent.is_active && (
        <Banner icon="lock" title="Read only.">
          Your role may look at agents and not change them.
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
        <div class="save-bar">
          <p class="clip" role="status">
            <b>{plural(names.length, "unsaved change")}</b>{" "}
            <span class="second">
              {readOnly
                ? `It cannot be saved: ${agent.is_active ? "your role may not change agents" : "the agent is deleted"}.`
                : capital(names.map((name) => name.toLowerCase()).join(", "))}
            </span>
          </p>
          <div class="actions">
            <Button
              kind="quiet"
              onClick={() => {
                const lost = kept;
                keep(agent.id, null);
                toast("Your changes are discarded.", lost ? { label: "Undo", run: () => keep(agent.id, lost) } : undefined);
              }}
            >
              Discard
            </Button>
            {readOnly ? (
              <CopyButton text={mineAsText(draft)} what="Copy my version" small={false} />
            ) : (
              <Button kind="primary" onClick={review}>
                Review changes
              </Button>
            )}
          </div>
        </div>
      )}
      {reviewing && (
        <Review
          agent={agent}
          base={base}
          draft={draft}
          version={kept?.version ?? state.version}
          message={state.history.absent ? null : message}
          onMessage={(text) => hold({ message: text })}
          onClose={() => setReviewing(false)}
          save={() => save(draft, base, kept?.etag ?? state.etag)}
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
  message: string | null;
  onMessage: (message: string) => void;
  onClose: () => void;
  save: () => Promise<boolean>;
}) {
  const fault = messageFault(message ?? "");
  return (
    <FormDialog
      wide
      title={`Save ${agent.display_name}?`}
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
      {message !== null && <MessageField why value={message} onText={onMessage} data-first />}
    </FormDialog>
  );
}
