/** The versions of an agent: who saved what when and why; comparison of any two; rollback. */
import { useState } from "preact/hooks";
import { call, isStatus } from "../base/api";
import { invalidate } from "../base/cache";
import { messageFault } from "../base/config";
import { type AgentState, agentQuery, useHistory, useNames, useVersion } from "../base/data";
import { route, setParams } from "../base/route";
import { can } from "../base/session";
import { isolated, moment, number } from "../base/text";
import type { Agent } from "../base/types";
import { Badge, Button, cx, Icon, LabelBadge, LinkButton, Message, options, Skeleton, Time, Told } from "../parts/base";
import { Comparison, Views } from "../parts/comparison";
import { FormDialog } from "../parts/dialog";
import { Banner, Failure, Reading, toast } from "../parts/feedback";
import { MessageField, Select } from "../parts/fields";
import { setAddress } from "./labels";

export function History({ state }: { state: AgentState }) {
  const { agent, history } = state;
  const names = useNames();
  const params = route.value.params;
  const all = history.data;
  // The agent says its version before the list of them is there.
  const newest = state.version;
  /** A version of the address, if there is such a one. */
  const asked = (name: string): number | null => {
    const version = Number(params.get(name));
    return Number.isInteger(version) && version > 0 && newest !== null && version <= newest ? version : null;
  };
  const to = asked("to") ?? newest;
  const from = asked("from") ?? (to !== null && to > 1 ? to - 1 : to);
  const absent = ["from", "to"]
    .filter((name) => asked(name) === null)
    .map((name) => params.get(name))
    .find(Boolean);
  const inline = params.get("view") === "inline";
  const [rolling, setRolling] = useState<number | null>(null);

  if (!all) return <Reading of={history} what="The history" tall />;

  const choices = options(
    all.map(({ version, labels }) => [
      String(version),
      `v${version}${version === newest ? " latest" : ""}${labels.length ? ` ${labels.join(", ")}` : ""}`,
    ]),
  );
  const rollTo = from !== newest ? from : null;

  return (
    <div class="history">
      <ol class="versions" reversed aria-label="Versions">
        {all.map((entry) => {
          const role = entry.version === to ? "compared" : entry.version === from ? "base" : null;
          return (
            <li key={entry.version} class={cx(role && "chosen")}>
              <button
                type="button"
                class="bare-button"
                aria-pressed={role !== null}
                onClick={() =>
                  setParams(
                    entry.version === newest
                      ? { from: null, to: null }
                      : { from: entry.version > 1 ? entry.version - 1 : null, to: entry.version },
                    false,
                  )
                }
              >
                <span class="row">
                  <b>v{number(entry.version)}</b>
                  {entry.version === newest && <Badge>latest</Badge>}
                  {entry.labels.map((label) => (
                    <LabelBadge key={label} label={label} />
                  ))}
                  <span class="grow" />
                  {role && <span class="dim small-text">{role}</span>}
                </span>
                <span class="clip block">
                  <Message of={entry} />
                </span>
                <span class="dim small-text block">
                  {names(entry.actor)} · <Time at={entry.created_at} />
                </span>
              </button>
            </li>
          );
        })}
      </ol>
      <div class="stack">
        <div class="tools compare">
          <Select aria-label="From" value={String(from)} onPick={(value) => setParams({ from: value, to })}>
            {choices}
          </Select>
          <Icon name="arrow" />
          <Select aria-label="To" value={String(to)} onPick={(value) => setParams({ to: value, from })}>
            {choices}
          </Select>
          <span class="grow" />
          <Views inline={inline} usual="side" />
        </div>
        {absent && <Banner tone="warn">There is no v{absent}.</Banner>}
        {agent.is_active && (
          <div class="row wrap">
            {rollTo !== null && can("agents:configure") && (
              <Button icon="back" onClick={() => setRolling(rollTo)}>
                Roll back to v{rollTo}
              </Button>
            )}
            {to !== null && can("agents:release") && (
              <LinkButton icon="label" to={setAddress(state, to)}>
                Set a label on v{to}
              </LinkButton>
            )}
          </div>
        )}
        <Compared
          agent={agent}
          from={from}
          to={to}
          inline={inline}
          nothing={from === to ? "Choose two versions to compare." : undefined}
        />
      </div>
      {rolling !== null && <RollBack state={state} version={rolling} onClose={() => setRolling(null)} />}
    </div>
  );
}

/** Two versions of an agent side by side, once they are read. */
export function Compared({
  agent,
  from,
  to,
  inline,
  nothing = `v${from} and v${to} have the same content.`,
}: {
  agent: Agent;
  from: number | null;
  to: number | null;
  inline: boolean;
  nothing?: string | undefined;
}) {
  const before = useVersion(agent, from);
  const after = useVersion(agent, to);
  const error = before.error ?? after.error;
  const names = useNames();
  const all = useHistory(agent.agent_id).data;
  const head = (version: number | null) => {
    const entry = all?.find((one) => one.version === version);
    return (
      <>
        <b>v{version}</b>{" "}
        <span class="dim plain">{entry && `${names(entry.actor)}, ${moment(Date.parse(entry.created_at))}`}</span>
      </>
    );
  };
  return error !== null ? (
    <Failure
      what="A version could not be read."
      error={error}
      retry={() => {
        void before.reload();
        void after.reload();
      }}
    />
  ) : before.data && after.data ? (
    <Comparison
      before={before.data.config}
      after={after.data.config}
      from={head(from)}
      to={head(to)}
      inline={inline}
      nothing={nothing}
    />
  ) : (
    <Skeleton rows={5} tall />
  );
}

function RollBack({ state, version, onClose }: { state: AgentState; version: number; onClose: () => void }) {
  const { agent } = state;
  const [message, setMessage] = useState("");
  // The feed renews the tag while the dialog is open: what is rolled back then is not what was seen.
  const [seen] = useState(state.etag);
  const moved = state.etag !== seen;
  const fault = messageFault(message);
  const run = async (): Promise<void> => {
    try {
      const answer = await call("POST", "api/agents/rollback", {
        query: { ...agentQuery(agent), message },
        body: { version },
        ifMatch: state.etag,
      });
      toast(
        answer.version
          ? `${isolated(agent.display_name)} is at v${answer.version}, with the content of v${version}.`
          : `${isolated(agent.display_name)} has the content of v${version}.`,
      );
    } catch (error) {
      if (isStatus(error, 412)) invalidate("agents", "versions");
      throw error;
    }
    invalidate("agents", "versions", "audit");
    setParams({ from: null, to: null });
  };
  return (
    <FormDialog
      wide
      title={`Roll back to v${version}?`}
      verb={moved ? "Roll back all the same" : `Roll back to v${version}`}
      // Without a tag, right after a change, the server could not tell that there is a newer one.
      blocked={fault !== null || state.etag === null}
      run={run}
      failed="Not rolled back."
      onClose={onClose}
    >
      {moved && (
        <b role="alert">
          {isolated(agent.display_name)} was changed in the meantime{state.version && `: v${state.version} is the newest version`}
          . Look at it first, or roll back all the same.{" "}
        </b>
      )}
      <p class="prose">
        It makes {state.version ? `v${state.version + 1}` : "a new version"} with the content of v{version}.{" "}
        <Told of="roll back" />
      </p>
      <div class="review" tabIndex={0} role="group" aria-label="Differences">
        <Compared agent={agent} from={state.version} to={version} inline />
      </div>
      <MessageField value={message} onText={setMessage} />
    </FormDialog>
  );
}
