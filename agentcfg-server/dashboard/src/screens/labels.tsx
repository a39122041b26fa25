/** The labels of an agent: names that point at versions, set, moved and removed. */
import { useState } from "preact/hooks";
import { call } from "../base/api";
import { invalidate } from "../base/cache";
import { type AgentState, agentQuery, useNames } from "../base/data";
import { go, href } from "../base/route";
import { can } from "../base/session";
import { number, plural } from "../base/text";
import type { Label } from "../base/types";
import { Empty, LabelBadge, LinkButton, Time, Told } from "../parts/base";
import { Confirm, Menu } from "../parts/dialog";
import { toast } from "../parts/feedback";
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

/** The review that sets a label of an agent on a version; without a label `production`, where the agent has none. */
export const setAddress = ({ agent, labels }: AgentState, version: number, label?: string): string =>
  href("releases", {
    tab: "review",
    of: agent.agent_id,
    version,
    to: label ?? (labels.some((one) => one.label === "production") ? null : "production"),
  });

/** The review that gives an agent another label on the version of this one. */
const promoteAddress = (agent: string, from: string): string =>
  href("releases", { tab: "review", from, to: from === "staging" ? "production" : null, agents: agent });

export function Labels({ state }: { state: AgentState }) {
  const { agent, labels, version: current } = state;
  const names = useNames();
  const may = can("agents:release");
  const [removing, setRemoving] = useState<Label | null>(null);
  return (
    <div class="stack pad-top">
      <div class="row">
        <p class="dim small-text grow">
          <Told of="labels" />
        </p>
        {may && labels.length < MOST && current !== null && (
          <LinkButton icon="plus" to={setAddress(state, current)}>
            Set a label
          </LinkButton>
        )}
      </div>
      {labels.length === 0 ? (
        <div class="card">
          <Empty icon="label" title="No labels yet">
            <Told of="no labels" />
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
                      { label: "Move", icon: "label", run: () => go(setAddress(state, current ?? label.version, label.label)) },
                      { label: "Promote", icon: "arrow", run: () => go(promoteAddress(agent.agent_id, label.label)) },
                      { label: "Remove", icon: "close", danger: true, run: () => setRemoving(label) },
                    ]}
                  />
                )}
              </td>
            </tr>
          ))}
        </Table>
      )}
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
