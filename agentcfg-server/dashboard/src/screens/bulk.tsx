/** What is done with the ticked agents: it is seen before it is done. */
import { useMemo, useState } from "preact/hooks";
import { applyPlan, entriesText, entryOf, MOST, usePlan, type Entry } from "../base/apply";
import { call, isStatus } from "../base/api";
import { messageFault, tagsOf, textFault, withValue, type Draft } from "../base/config";
import { agentQuery, agentsChanged, useAgents, useModels } from "../base/data";
import { LATEST } from "../base/releases";
import { go } from "../base/route";
import { saveFile } from "../base/save-file";
import { can, me } from "../base/session";
import { isolated, number, plural } from "../base/text";
import type { Agent } from "../base/types";
import { Button, options, Told } from "../parts/base";
import { FormDialog } from "../parts/dialog";
import { attempt, errorText, Failure, toast } from "../parts/feedback";
import { Choices, Field, Input, MessageField, Select } from "../parts/fields";
import { SaveBar } from "../parts/page";
import { PlanTable } from "../parts/plan";
import { reviewAddress } from "./releases/picked";
import { restore } from "./restore";

type Doing = "model" | "capability" | "delete";

export function BulkBar({ agents, onClear }: { agents: Agent[]; onClear: () => void }) {
  const [doing, setDoing] = useState<Doing | null>(null);
  const ids = agents.map(({ agent_id }) => agent_id);
  const many = agents.length > MOST;
  const opens = (what: Doing) => ({ blocked: many, onClick: () => setDoing(what) });
  const props = { agents, onClose: () => setDoing(null) };
  return (
    <SaveBar
      label="Ticked agents"
      what={`${plural(agents.length, "agent")} ticked`}
      more={many && `At most ${number(MOST)} change at once.`}
    >
      <>
        <Button kind="quiet" onClick={onClear}>
          Clear
        </Button>
        <Button
          icon="download"
          onClick={() => saveFile("agents.json", [entriesText(agents.map((agent) => entryOf(agent)))], "application/json")}
        >
          Export
        </Button>
        {can("agents:release") && (
          <Button icon="label" blocked={many} onClick={() => go(reviewAddress(LATEST, "production", ids))}>
            Label
          </Button>
        )}
        {can("agents:configure") && (
          <>
            <Button {...opens("model")}>Model</Button>
            <Button {...opens("capability")}>Capability</Button>
            <Button kind="quiet danger" {...opens("delete")}>
              Delete
            </Button>
          </>
        )}
      </>
      {doing === "delete" ? <DeleteMany {...props} /> : doing && <ChangeMany {...props} what={doing} />}
    </SaveBar>
  );
}

/** Adds a capability to a draft, or takes it away. */
const withTag = (draft: Draft, tag: string, add: boolean): Draft => {
  const tags = tagsOf(draft.capabilities);
  return withValue(
    draft,
    "capabilities",
    add === tags.includes(tag) ? tags : add ? [...tags, tag] : tags.filter((one) => one !== tag),
  );
};

function ChangeMany({ agents, what, onClose }: { agents: Agent[]; what: "model" | "capability"; onClose: () => void }) {
  const read = useAgents();
  const models = useModels().data ?? [];
  const [value, setValue] = useState("");
  const [add, setAdd] = useState(true);
  const [message, setMessage] = useState("");
  const wanted = value.trim();
  const entries = useMemo(
    (): Entry[] =>
      wanted
        ? agents.map((agent) =>
            entryOf(agent, (draft) =>
              what === "model"
                ? withValue(draft, "model", wanted)
                : tagsOf({ tags: [], entry: wanted }).reduce((of, tag) => withTag(of, tag, add), draft),
            ),
          )
        : [],
    [wanted, add, agents.map(({ id, updated_at }) => id + updated_at).join()],
  );
  const { plan, error } = usePlan(entries, read.headers?.get("Change-Cursor") ?? null, () => void read.reload());
  const changes = plan?.outcomes.some(({ action }) => action !== "none");
  const run = async (): Promise<boolean> => {
    try {
      toast(`${plural(await applyPlan(plan!, message), "agent")} changed.`);
      return true;
    } catch (failed) {
      if (isStatus(failed, 412)) void read.reload();
      throw failed;
    }
  };
  return (
    <FormDialog
      wide
      title={`${what === "model" ? "Change the model" : "Change a capability"} of ${plural(agents.length, "agent")}`}
      verb="Apply"
      blocked={!changes || messageFault(message) !== null}
      run={run}
      failed="Nothing has changed."
      kept={(failed) => (isStatus(failed, 412) ? "Look at what changes again." : undefined)}
      onClose={onClose}
    >
      {what === "model" ? (
        <Field label="Model">
          {(field) => (
            <Select {...field} value={value} onPick={setValue} data-first>
              <option value="">Choose a model</option>
              {options(models.filter(({ status }) => status === "available").map((model) => [model.id, model.display_name]))}
            </Select>
          )}
        </Field>
      ) : (
        <>
          <Choices
            label="What is done"
            value={add ? "add" : "remove"}
            choices={[
              ["add", "Add"],
              ["remove", "Remove"],
            ]}
            onPick={(picked) => setAdd(picked === "add")}
          />
          <Field label="Capability" error={textFault(wanted, 100)}>
            {(field) => <Input {...field} value={value} onText={setValue} autocomplete="off" data-first />}
          </Field>
        </>
      )}
      <Failure what="Nothing has changed." error={error} />
      {plan && (
        <div class="review" tabIndex={0} role="group" aria-label="Plan">
          <PlanTable outcomes={plan.outcomes} />
        </div>
      )}
      <MessageField why value={message} onText={setMessage} />
    </FormDialog>
  );
}

function DeleteMany({ agents: ticked, onClose }: { agents: Agent[]; onClose: () => void }) {
  // Those that are deleted leave the list, and are ticked no more.
  const [agents] = useState(ticked);
  const [failures, setFailures] = useState<[agent: Agent, error: unknown][]>([]);
  const run = async (): Promise<boolean> => {
    const [done, failed]: [Agent[], typeof failures] = [[], []];
    const user = me.peek()?.id;
    for (const agent of agents)
      try {
        if (me.peek()?.id !== user) break;
        await call("DELETE", "api/agents/configs", { query: agentQuery(agent) });
        done.push(agent);
      } catch (error) {
        failed.push([agent, error]);
      }
    agentsChanged();
    if (done.length)
      toast(`${plural(done.length, "agent")} deleted.`, {
        label: "Undo",
        run: () => void attempt("Not restored.", () => Promise.all(done.map((agent) => restore(agent)))),
      });
    setFailures(failed);
    return failed.length === 0;
  };
  return (
    <FormDialog
      title={`Delete ${plural(agents.length, "agent")}?`}
      verb="Delete"
      danger
      careful
      run={run}
      failed="Not deleted."
      onClose={onClose}
    >
      <p class="prose">
        <Told of="delete" />
      </p>
      <ul class="review list" tabIndex={0} aria-label="Agents">
        {agents.map((agent) => (
          <li key={agent.id}>
            <b dir="auto">{agent.display_name}</b> <code>{agent.agent_id}</code>
          </li>
        ))}
      </ul>
      {failures.length > 0 && (
        <ul class="fault list" role="alert">
          {failures.map(([agent, error]) => (
            <li key={agent.id}>
              {isolated(agent.display_name)} is not deleted: {errorText(error)}
            </li>
          ))}
        </ul>
      )}
    </FormDialog>
  );
}
