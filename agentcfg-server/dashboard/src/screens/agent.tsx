/** One agent: its head, and the tabs configuration, history, labels and trial. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../base/api";
import { visited } from "../base/recent";
import { go, href, route } from "../base/route";
import { can } from "../base/session";
import { isolated, number } from "../base/text";
import { useBehind } from "../base/usage-data";
import { Avatar, Badge, Button, Empty, LabelBadge, LinkButton, StatusPill, Told } from "../parts/base";
import type { Agent } from "../base/types";
import { Page } from "../parts/page";
import { Confirm, copyId, Menu } from "../parts/dialog";
import { agentQuery, agentsChanged, type AgentState, useAgent, useHistory, useLabels, useStatuses } from "../base/data";
import { attempt, Banner, Reading, toast } from "../parts/feedback";
import { Editor } from "./editor";
import { Restore, restore } from "./restore";
import { History } from "./history";
import { LaterTab } from "../parts/later";
import { Labels } from "./labels";

const TABS = ["configuration", "definition", "history", "labels", "try", "usage"] as const;
type Tab = (typeof TABS)[number];
const TAB_NAMES: Record<Tab, string> = {
  configuration: "Configuration",
  definition: "Definition",
  history: "History",
  labels: "Labels",
  try: "Playground",
  usage: "Usage",
};

export function AgentScreen() {
  const id = route.value.params.get("id") ?? "";
  const read = useAgent(id);
  const agent = read.data?.[0];
  const history = useHistory(id);
  const allLabels = useLabels();
  const { behind } = useBehind();
  const status = useStatuses().data?.find((entry) => entry.agent_id === id);
  const [deleting, setDeleting] = useState(false);
  const [restoring, setRestoring] = useState(false);
  const tab = (route.value.params.get("tab") ?? "configuration") as Tab;

  useEffect(() => void (agent && visited(id)), [id, !agent]);
  useEffect(() => {
    const current = document.querySelector<HTMLElement>(".tabs [aria-current]");
    const tabs = current?.parentElement;
    // Of a narrow window it may be beyond the edge.
    if (tabs) tabs.scrollLeft = current.offsetLeft - tabs.offsetLeft - (tabs.clientWidth - current.offsetWidth) / 2;
  }, [tab, !agent, !history.data]);

  if (!agent) {
    return (
      <Page title={id || "Agent"} trail={[{ label: "Agents", to: href("agents") }]}>
        {read.data && read.error === null ? (
          <Empty
            icon="agents"
            title={`There is no agent ${id}`}
            action={<LinkButton to={href("agents")}>Show all agents</LinkButton>}
          />
        ) : (
          <Reading of={read} what="The agent" rows={6} tall />
        )}
      </Page>
    );
  }

  const labels = allLabels.data?.filter((label) => label.agent_id === id) ?? [];
  const version = history.data?.[0]?.version ?? (Number(read.headers?.get("Agent-Version")) || null);
  const state: AgentState = { agent, etag: read.etag, version, history, labels };
  const tabs = TABS.filter((name) => {
    if (name === "definition") return agent.agent_type === "ai" || agent.definition;
    if (name === "try") return agent.agent_type === "ai" && can("models:invoke") && agent.is_active;
    if (name === "usage") return agent.agent_type === "ai" && can("analytics:read");
    return true;
  });
  const shown = tabs.includes(tab) ? tab : "configuration";
  const counts: Partial<Record<Tab, number>> = {};
  if (history.data) counts.history = history.data[0]?.version ?? 0;
  if (allLabels.data) counts.labels = labels.length;
  const may = can("agents:configure");

  return (
    <Page
      title={shown === "configuration" ? agent.display_name : TAB_NAMES[shown]}
      ownHeading
      trail={[
        { label: "Agents", to: href("agents") },
        ...(shown === "configuration" ? [] : [{ label: agent.display_name, to: href("agent", { id }) }]),
      ]}
      buttons={
        <Menu
          label={`Actions for ${agent.display_name}`}
          items={[
            copyId(id),
            may ? { label: "Duplicate", icon: "plus", run: () => go(href("new-agent", { from: id })) } : null,
            can("audit_log:read")
              ? { label: "Audit log", icon: "audit", run: () => go(href("audit-log", { type: "agent", target: id })) }
              : null,
            may && agent.is_active ? { label: "Delete agent", icon: "trash", danger: true, run: () => setDeleting(true) } : null,
          ]}
        />
      }
    >
      <div class="agent-head">
        <Avatar of={agent} size={44} />
        <div class="grow">
          <h1 tabIndex={-1} dir="auto">
            {agent.display_name}
          </h1>
          <div class="row dim small-text">
            <code class="clip">{id}</code>
            {agent.is_active ? (
              <>
                <span aria-hidden="true">·</span>
                <StatusPill status={status?.status ?? "offline"} />
                {status?.current_task_title && <span class="clip second">{status.current_task_title}</span>}
              </>
            ) : (
              <Badge tone="warn">Deleted</Badge>
            )}
          </div>
        </div>
        <div class="row wrap end">
          {version !== null && <span class="dim">v{number(version)}</span>}
          {labels.slice(0, 3).map((label) => (
            <LabelBadge key={label.label} {...label} current={version} behind={behind.has(id)} />
          ))}
        </div>
      </div>
      <nav class="tabs" aria-label="Agent">
        {tabs.map((name) => (
          <a
            key={name}
            href={href("agent", { id, tab: name === "configuration" ? null : name })}
            aria-current={name === shown ? "page" : undefined}
          >
            {TAB_NAMES[name]}
            {counts[name] !== undefined && <span class="count">{number(counts[name]!)}</span>}
          </a>
        ))}
      </nav>
      {!agent.is_active && (
        <Banner
          tone="warn"
          icon="trash"
          title="This agent is deleted."
          action={
            may && (
              <Button small onClick={() => setRestoring(true)}>
                Restore agent
              </Button>
            )
          }
        >
          <Told of="deleted" />
        </Banner>
      )}
      {(shown === "configuration" || shown === "definition") && (
        <Editor key={`${id} ${agent.is_active}`} state={state} part={shown} />
      )}
      {shown === "history" && <History state={state} />}
      {shown === "labels" && <Labels state={state} />}
      {shown === "try" && <LaterTab name="try" state={state} />}
      {shown === "usage" && <LaterTab name="usage" state={state} />}
      {deleting && <Delete agent={agent} versions={version} onClose={() => setDeleting(false)} />}
      {restoring && <Restore agent={agent} onClose={() => setRestoring(false)} />}
    </Page>
  );
}

function Delete({ agent, versions, onClose }: { agent: Agent; versions: number | null; onClose: () => void }) {
  const run = async (): Promise<void> => {
    await call("DELETE", "api/agents/configs", { query: agentQuery(agent) });
    agentsChanged();
    toast(`${isolated(agent.display_name)} is deleted.`, {
      label: "Undo",
      run: () => void attempt("Not restored.", () => restore(agent)),
    });
    go(href("agents"));
  };
  return (
    <Confirm title={`Delete ${isolated(agent.display_name)}?`} verb="Delete agent" run={run} onClose={onClose}>
      <Told of="delete one" />{" "}
      {versions ? `Its ${versions === 1 ? "version is" : `${number(versions)} versions are`} kept, its` : "Its"} id stays taken,
      and you can restore it at any time.
    </Confirm>
  );
}
