/** The labels of an agent: names that point at versions, set, moved and removed. */
import { useState } from "preact/hooks";
import { call, isStatus } from "../base/api";
import { invalidate } from "../base/cache";
import { type AgentState, agentQuery, useLabels, useNames } from "../base/data";
import { href } from "../base/route";
import { can, workspace } from "../base/session";
import { number, plural } from "../base/text";
import type { Label, Promotion } from "../base/types";
import { Button, Empty, LabelBadge, Time } from "../parts/base";
import { Confirm, FormDialog, Menu } from "../parts/dialog";
import { toast } from "../parts/feedback";
import { Check, Field, Input, Select } from "../parts/fields";
import { Table } from "../parts/rows";

const MOST = 20;
const RULE = /^[a-z0-9][a-z0-9._-]{0,35}$/;

export const labelFault = (name: string): string | null =>
  name === "latest"
    ? "This name is reserved: it is always the current version."
    : /^\d+$/.test(name)
      ? "Digits alone are version numbers."
      : RULE.test(name)
        ? null
        : "1–36 lowercase letters, digits, dots, hyphens and underscores.";

const query = (state: AgentState, label: string) => ({
  ...agentQuery(state.agent),
  label,
});

export function Labels({ state }: { state: AgentState }) {
  const { agent, labels, version: current } = state;
  const names = useNames();
  const may = can("agents:release");
  const [moving, setMoving] = useState<{ label?: string } | null>(null);
  const [removing, setRemoving] = useState<Label | null>(null);
  const [promoting, setPromoting] = useState<string | null>(null);
  return (
    <div class="stack pad-top">
      <div class="row">
        <p class="dim small-text grow">
          A label names a version: calls and reads can ask for it. Labels stay when the agent changes.
        </p>
        {may && labels.length < MOST && current !== null && (
          <Button icon="plus" onClick={() => setMoving({})}>
            Set a label
          </Button>
        )}
      </div>
      {labels.length === 0 ? (
        <div class="card">
          <Empty icon="label" title="No labels yet">
            Point <code>production</code> at the version that your apps should get, and change the agent without changing what
            they see.
          </Empty>
        </div>
      ) : (
        <Table
          name="Labels"
          kind="labels-table"
          columns={[["Label"], ["Version"], ["Set by", "second"], ["When", "right second"], ["Actions", "c-menu", true]]}
        >
          {labels.map((label) => (
            <tr key={label.label}>
              <td>
                <LabelBadge label={label.label} />
              </td>
              <td>
                <a class="link" href={href("agent", { id: agent.agent_id, tab: "history", from: label.version, to: current })}>
                  v{number(label.version)}
                </a>
                {current !== null && label.version < current && (
                  <span class="dim"> {plural(current - label.version, "version")} behind</span>
                )}
              </td>
              <td class="second">{names(label.actor)}</td>
              <td class="right dim second">
                <Time at={label.updated_at} />
              </td>
              <td class="c-menu">
                {may && (
                  <Menu
                    small
                    label={`Actions for ${label.label}`}
                    items={[
                      { label: "Move", icon: "label", run: () => setMoving({ label: label.label }) },
                      { label: "Promote on agents", icon: "arrow", run: () => setPromoting(label.label) },
                      { label: "Remove", icon: "close", danger: true, run: () => setRemoving(label) },
                    ]}
                  />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
      {moving && current !== null && (
        <MoveLabel
          state={state}
          version={current}
          taken={labels}
          {...(moving.label ? { label: moving.label } : {})}
          onClose={() => setMoving(null)}
        />
      )}
      {promoting && <Promote from={promoting} agent={agent.agent_id} onClose={() => setPromoting(null)} />}
      {removing && (
        <Confirm
          title={`Remove ${removing.label}?`}
          verb="Remove label"
          onClose={() => setRemoving(null)}
          run={async () => {
            await call("DELETE", "api/agents/labels", { query: query(state, removing.label) });
            invalidate("versions", "audit");
            toast(`${removing.label} is removed.`);
          }}
        >
          Calls with <code>label={removing.label}</code> are refused from the next one on.
        </Confirm>
      )}
    </div>
  );
}

export function MoveLabel({
  state,
  version,
  taken,
  label: given,
  onClose,
}: {
  state: AgentState;
  version: number;
  taken: Label[];
  label?: string;
  onClose: () => void;
}) {
  const [label, setLabel] = useState(given ?? (taken.some((one) => one.label === "production") ? "" : "production"));
  const [target, setTarget] = useState(version);
  const [expected, setExpected] = useState<ReadonlyMap<string, number>>(
    () => new Map(taken.map((one) => [one.label, one.version])),
  );
  const [moved, setMoved] = useState<string | null>(null);
  const names = useNames();
  const before = expected.get(label);
  const fault = labelFault(label);
  const save = async (): Promise<false | void> => {
    try {
      await call("PUT", "api/agents/labels", {
        query: query(state, label),
        body: { version: target, expected_version: before ?? null },
      });
      invalidate("versions", "audit");
      toast(`${label} is on v${target}.`);
    } catch (failed) {
      if (!isStatus(failed, 412)) throw failed;
      const { data } = await call<Label[]>("GET", "api/agents/labels", { query: query(state, label) }).catch(() => ({
        data: [] as Label[],
      }));
      const present = data[0];
      const next = new Map(expected);
      if (present) next.set(label, present.version);
      else next.delete(label);
      setExpected(next);
      setMoved(
        present
          ? `${label} is on v${present.version} now, moved by ${names(present.actor)}. Look again.`
          : `${label} was removed in the meantime. Look again.`,
      );
      invalidate("versions");
      return false;
    }
  };
  return (
    <FormDialog
      narrow
      title={before !== undefined ? `Move ${label} to v${target}?` : `Set a label on v${target}`}
      verb={before !== undefined ? "Move label" : "Set label"}
      blocked={fault !== null || before === target}
      run={save}
      failed="Not set."
      onClose={onClose}
    >
      {!given && (
        <Field label="Label" error={label ? fault : null} hint="Such as production or staging.">
          {(field) => (
            <Input {...field} mono value={label} onText={setLabel} list="labels" autocomplete="off" spellcheck={false} />
          )}
        </Field>
      )}
      <datalist id="labels">
        {taken.map((one) => (
          <option key={one.label} value={one.label} />
        ))}
      </datalist>
      <Field label="Version">
        {(field) => (
          <Select {...field} value={String(target)} onPick={(value) => setTarget(Number(value))}>
            {state.history.data?.map((entry) => (
              <option key={entry.version} value={entry.version}>
                v{entry.version}
                {entry.message ? ` · ${entry.message.slice(0, 60)}` : ""}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {!fault && (
        <p class="prose">
          {before === target ? (
            `${label} is on v${target} already.`
          ) : (
            <>
              Calls with <code>label={label}</code> get v{target} from the next one on.
              {before !== undefined && ` Now it is v${before}.`}
            </>
          )}
        </p>
      )}
      {moved && (
        <p class="fault" role="alert">
          {moved}
        </p>
      )}
    </FormDialog>
  );
}

/** Gives the agents that bear one label another one on the same version. */
export function Promote({ from, agent, onClose }: { from: string; agent: string; onClose: () => void }) {
  const all = useLabels().data ?? [];
  const [to, setTo] = useState(from === "staging" ? "production" : "");
  const [alone, setAlone] = useState(true);
  const fault = labelFault(to) ?? (to === from ? "This is the label itself." : null);
  const bearers = all.filter((label) => label.label === from);
  const there = bearers.filter((label) =>
    all.some((other) => other.agent_id === label.agent_id && other.label === to && other.version === label.version),
  );
  const run = async (): Promise<void> => {
    const { data } = await call<Promotion[]>("POST", "api/agents/labels/promote", {
      query: { workspace_id: workspace.value!.id },
      body: { from, to, ...(alone ? { agent_ids: [agent] } : {}) },
    });
    invalidate("versions", "audit");
    toast(`${to} is promoted on ${plural(data.length, "agent")}.`);
  };
  return (
    <Confirm
      title={!fault ? `Promote ${from} to ${to}${alone ? "" : ` on ${plural(bearers.length, "agent")}`}?` : `Promote ${from}`}
      verb="Move label"
      blocked={fault !== null}
      danger={false}
      onClose={onClose}
      run={run}
    >
      <Field label="To the label" error={to ? fault : null}>
        {(field) => <Input {...field} mono value={to} onText={setTo} autocomplete="off" spellcheck={false} data-first />}
      </Field>
      {bearers.length > 1 && (
        <Check checked={!alone} onCheck={(checked) => setAlone(!checked)}>
          On all {plural(bearers.length, "agent")} with {from}
        </Check>
      )}
      <p>
        {alone ? `v${bearers.find((label) => label.agent_id === agent)?.version}` : `The version of ${from}`} gets{" "}
        {to || "the label"} too.
        {!alone && there.length > 0 && ` ${there.length} of them ${there.length === 1 ? "is" : "are"} there already.`}
      </p>
    </Confirm>
  );
}
