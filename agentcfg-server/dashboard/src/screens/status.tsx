/** The status of all agents, as a board, as a list or over time. */
import { rowHeights } from "../base/look";
import { useAgentsById, useStatuses } from "../base/data";
import { href, route, setParams } from "../base/route";
import { ago, number, second } from "../base/text";
import type { Agent, Status, StatusEntry } from "../base/types";
import { Avatar, STATUS, StatusPill, StatusShape, Told } from "../parts/base";
import { Reading } from "../parts/feedback";
import { Segments } from "../parts/fields";
import { LaterPart } from "../parts/later";
import { Lead, Page } from "../parts/page";
import { followRow, Rows, Table } from "../parts/rows";
import { FirstAgent } from "./agents";
import { MOST_LANES } from "./overview/attention";

const ORDER = Object.keys(STATUS) as Status[];
/** More cards than these are not read by people; the list shows all. */
const MOST = 100;
/** How long a report counts, where the server is not set otherwise. */
const USUAL = 120_000;

/** A ring that empties while a report gets older. */
function Freshness({ left }: { left: number }) {
  return (
    <svg class="shape" viewBox="0 0 12 12" aria-hidden="true">
      <circle class="track" cx="6" cy="6" r="5" />
      <circle cx="6" cy="6" r="5" pathLength="1" stroke-dasharray={`${Math.max(0, Math.min(1, left))} 1`} />
    </svg>
  );
}

function Age({ entry }: { entry: StatusEntry }) {
  if (!entry.reported_at) return null;
  return (
    <span class="age">
      <time dateTime={entry.reported_at}>{ago(Date.parse(entry.reported_at), second.value)}</time>
      {entry.status !== "offline" && <Freshness left={1 - (second.value - Date.parse(entry.reported_at)) / USUAL} />}
    </span>
  );
}

const lastReport = (entry: StatusEntry): string =>
  entry.reported_at === null
    ? "No report yet"
    : entry.reported_at
      ? `Last report ${ago(Date.parse(entry.reported_at), second.value)}`
      : "";

export function StatusBoard() {
  const statuses = useStatuses();
  const agents = useAgentsById();
  // The changes of very many agents are too much for a page.
  const many = agents.size > MOST_LANES;
  const asked = route.value.params.get("view") ?? "board";
  const view = many && asked === "timeline" ? "board" : asked;
  const all = statuses.data;
  return (
    <Page
      title="Status"
      buttons={
        <Segments
          label="View"
          value={view}
          onPick={(view) => setParams({ view: view === "board" ? null : view }, false)}
          choices={[["board", "Board"], ["list", "List"], ...(many ? [] : [["timeline", "Timeline"] as const])]}
        />
      }
    >
      <Lead>
        <Told of={many ? "status of many" : "status"} />
      </Lead>
      <Reading of={statuses} what="The status" />
      {!all ? null : all.length === 0 ? (
        <div class="card">
          <FirstAgent />
        </div>
      ) : view === "timeline" ? (
        <LaterPart name="timeline" />
      ) : view === "list" ? (
        <List entries={all} agents={agents} />
      ) : (
        <Board entries={all} agents={agents} />
      )}
    </Page>
  );
}

function Board({ entries, agents }: { entries: StatusEntry[]; agents: Map<string, Agent> }) {
  return (
    <div class="board">
      {ORDER.map((status) => {
        const own = entries.filter((entry) => entry.status === status);
        return (
          <section key={status} class={`column of-${status}`} aria-label={STATUS[status]}>
            <header>
              <StatusShape status={status} />
              <h2 class={status === "working" ? "good" : undefined}>{STATUS[status]}</h2>
              <span class="count">{number(own.length)}</span>
            </header>
            <ul>
              {own.slice(0, MOST).map((entry) => (
                <Card key={entry.agent_id} entry={entry} agent={agents.get(entry.agent_id)} />
              ))}
            </ul>
            {own.length === 0 && <p class="none">None</p>}
            {own.length > MOST && (
              <p class="none">
                <a class="link" href={href("status", { view: "list" })}>
                  {number(own.length - MOST)} more in the list
                </a>
              </p>
            )}
          </section>
        );
      })}
    </div>
  );
}

function Card({ entry, agent }: { entry: StatusEntry; agent: Agent | undefined }) {
  const offline = entry.status === "offline";
  return (
    <li class="agent-card follow" onClick={followRow}>
      <Avatar of={agent} id={entry.agent_id} name={entry.display_name} size={32} />
      <div class="grow">
        <div class="row">
          <a data-name dir="auto" class="clip strong grow" href={href("agent", { id: entry.agent_id })}>
            {entry.display_name}
          </a>
          {!offline && <Age entry={entry} />}
        </div>
        <p class="dim small-text clip" dir="auto">
          {(offline && lastReport(entry)) || agent?.role || entry.agent_id}
        </p>
        {entry.current_task_title && (
          <div class="task">
            <span dir="auto" title={entry.current_task_title}>
              {entry.current_task_title}
            </span>
            <code>{entry.current_task_id}</code>
          </div>
        )}
      </div>
    </li>
  );
}

function List({ entries, agents }: { entries: StatusEntry[]; agents: Map<string, Agent> }) {
  return (
    <Table
      name="Status of all agents"
      kind="status-table"
      columns={[
        ["Agent", "c-name"],
        ["Status", "c-status"],
        ["Task", "second"],
        ["Reported", "right second c-changed"],
      ]}
      count={entries.length}
    >
      <Rows
        items={entries}
        id={(entry) => entry.agent_id}
        heights={rowHeights()}
        render={(entry, index) => {
          const agent = agents.get(entry.agent_id);
          return (
            <tr key={entry.agent_id} data-row={entry.agent_id} aria-rowindex={index + 2} class="follow" onClick={followRow}>
              <td>
                <div class="agent-cell">
                  <Avatar of={agent} id={entry.agent_id} name={entry.display_name} />
                  <div class="names">
                    <a data-name dir="auto" class="clip strong" href={href("agent", { id: entry.agent_id })}>
                      {entry.display_name}
                    </a>
                    <code class="clip">{entry.agent_id}</code>
                  </div>
                </div>
              </td>
              <td>
                <StatusPill status={entry.status} />
              </td>
              <td class="second" title={entry.current_task_title ?? undefined}>
                <bdi>{entry.current_task_title}</bdi>
                {entry.current_task_id && <code class="dim"> {entry.current_task_id}</code>}
              </td>
              <td class="right dim second">
                {entry.reported_at ? <Age entry={entry} /> : entry.reported_at === null ? "Never" : ""}
              </td>
            </tr>
          );
        }}
      />
    </Table>
  );
}
