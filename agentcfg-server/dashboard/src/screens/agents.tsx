/** The table of agents: live status, filters, sorting, deleted agents. */
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { rowHeights } from "../base/look";
import { byAgent, useAgents, useDeleted, useLabels, useModels, useNames, useStatuses, useVersions } from "../base/data";
import { drafts } from "../base/drafts";
import { touched } from "../base/feed";
import { href, route, setParams } from "../base/route";
import { can, workspace } from "../base/session";
import type { Cure } from "../base/attention";
import { capital, list, now, number, plural, second } from "../base/text";
import { money } from "../base/usage";
import { useBehind, useSpan, useUsage, within } from "../base/usage-data";
import type { Agent, Label, Status, StatusEntry, Version } from "../base/types";
import {
  Avatar,
  Badge,
  Button,
  cx,
  Empty,
  heldBy,
  LabelBadge,
  LinkButton,
  options,
  STATUS,
  StatusPill,
  Time,
  Told,
} from "../parts/base";
import { Reading } from "../parts/feedback";
import { asked, finds, Search, Segments, Select } from "../parts/fields";
import { Page } from "../parts/page";
import { followRow, Rows, SortHead } from "../parts/rows";
import { TickBox, useTicks } from "../parts/ticks";
import { BulkBar } from "./bulk";
import { usePoints } from "./overview/attention";
import { Restore } from "./restore";

type Show = "all" | Status | "deleted";
type Column = "name" | "role" | "model" | "status" | "version" | "cost" | "changed";

interface Row {
  agent: Agent;
  status: StatusEntry | undefined;
  version: Version | undefined;
  labels: Label[];
  /** What its calls cost in the last days, as far as that is known. */
  cost: number;
}

const RANK = Object.keys(STATUS);
/** It sorts behind all other texts. */
const LAST = "\uffff";
const COLUMNS: Record<Column, (a: Row, b: Row) => number> = {
  name: (a, b) => a.agent.display_name.localeCompare(b.agent.display_name),
  role: (a, b) => (a.agent.role ?? LAST).localeCompare(b.agent.role ?? LAST),
  model: (a, b) => (a.agent.model ?? LAST).localeCompare(b.agent.model ?? LAST),
  status: (a, b) => RANK.indexOf(a.status?.status ?? "offline") - RANK.indexOf(b.status?.status ?? "offline"),
  version: (a, b) => (a.version?.version ?? 0) - (b.version?.version ?? 0),
  cost: (a, b) => b.cost - a.cost,
  changed: (a, b) => b.agent.updated_at.localeCompare(a.agent.updated_at),
};

/** The columns whose first order is the falling one. */
const FALLING: ReadonlySet<Column> = new Set(["cost", "changed"]);

/** The heads of the columns, with their classes; the last value marks those that deleted agents do not have. */
const HEADINGS: [column: Column, label: string, classes: string, ofActive?: true][] = [
  ["name", "Agent", "c-name"],
  ["role", "Role", "c-role widest"],
  ["model", "Model", "c-model second"],
  ["status", "Status", "c-status", true],
  ["version", "Version", "c-version third", true],
  ["cost", "Cost, 7 days", "c-cost large right", true],
  ["changed", "Changed", "c-changed second right"],
];

/** Why agents need a person, with the name and the icon of the filter that shows them. */
type Need = "behind" | "budget" | "agent" | "provider" | "silent";

/** The filters of agents that need a person; a pressed one stays while no agent is left in it. */
function useNeeds(rows: Row[]): [need: Need, name: string, icon: string, of: ReadonlySet<string | null>][] {
  const points = usePoints();
  const { label, behind } = useBehind();
  const about = (kind: Cure["kind"]): Set<string | null> =>
    new Set(points.flatMap((point) => (point.cure.kind === kind ? (point.about ?? []) : [])));
  const silent = rows.filter(({ status }) => status?.reported_at === null).map(({ agent }) => agent.agent_id);
  return [
    ["behind", `${capital(label ?? "")} behind`, "label", behind],
    ["budget", "Budget above 80 %", "usage", about("budget")],
    ["agent", "Same task for long", "clock", about("agent")],
    ["provider", "No provider key", "key", about("provider")],
    ["silent", "Never reported", "status", new Set(silent)],
  ];
}

/** How many ids are new, gone, or at another place among those that stayed. */
function differences(before: string[], after: string[]): number {
  const places = new Map(before.map((id, i) => [id, i]));
  const kept = after.flatMap((id) => places.get(id) ?? []);
  // The longest run of places that rises: all others were moved.
  const rising: number[] = [];
  for (const place of kept) rising[place < rising.at(-1)! ? rising.findIndex((end) => end > place) : rising.length] = place;
  return before.length + after.length - kept.length - rising.length;
}

/** The rows in the present order, or in the order of before while they are pointed at. */
function useHeld(rows: Row[], view: string, held: boolean): { rows: Row[]; waiting: number; show: () => void } {
  const order = useRef<string[]>([]);
  const ordered = useRef(view);
  const [, again] = useState(0);
  const ids = rows.map(({ agent }) => agent.agent_id);
  const waiting = held && ordered.current === view ? differences(order.current, ids) : 0;
  if (waiting === 0) order.current = ids;
  ordered.current = view;
  const show = (): void => {
    order.current = ids;
    again((n) => n + 1);
  };
  if (waiting === 0) return { rows, waiting, show };
  const byId = new Map(rows.map((row) => [row.agent.agent_id, row]));
  return { rows: order.current.map((id) => byId.get(id)).filter((row) => row !== undefined), waiting, show };
}

export function Agents() {
  const params = route.value.params;
  const show = (params.get("show") ?? "all") as Show;
  const model = params.get("model") ?? "";
  const tag = params.get("tag") ?? "";
  const need = params.get("need");
  const query = asked();
  const [sort, direction] = (params.get("sort") ?? "").split(".") as [Column | "", string | undefined];
  const [inside, setInside] = useState(false);
  const [restoring, setRestoring] = useState<Agent | null>(null);

  const deletedShown = show === "deleted";
  const active = useAgents();
  const deleted = useDeleted();
  const source = deletedShown ? deleted : active;
  const live = useStatuses();
  const statuses = live.data;
  const versions = useVersions();
  const labels = useLabels();
  const models = useModels().data;
  const names = useNames();

  const span = useSpan("7d");
  const costs = useUsage({ ...within(span), by: "agent" });
  const usage = costs.data;
  const rows = useMemo(() => {
    const spent = new Map(usage?.map((row) => [row.agent, Number(row.cost_usd)]));
    const status = byAgent(statuses);
    const version = byAgent(versions.data);
    const of = new Map<string, Label[]>();
    for (const label of labels.data ?? []) of.set(label.agent_id, [...(of.get(label.agent_id) ?? []), label]);
    return (source.data ?? []).map((agent): Row => ({
      agent,
      status: status.get(agent.agent_id),
      version: version.get(agent.agent_id),
      labels: of.get(agent.agent_id) ?? [],
      cost: spent.get(agent.agent_id) ?? 0,
    }));
  }, [source.data, statuses, versions.data, labels.data, usage]);

  // Without it the table shows less than there is.
  const failed = [live, versions, labels, costs].find(({ error }) => error !== null);
  const needs = useNeeds(rows);
  const needing = deletedShown ? undefined : needs.find(([one]) => one === need)?.[3];
  const view = [show, model, tag, query, sort, direction, need].join(" ");
  const found = useMemo(() => {
    const matches = rows.filter(({ agent, status }) => {
      if (needing && !needing.has(agent.agent_id)) return false;
      if (show !== "all" && show !== "deleted" && (status?.status ?? "offline") !== show) return false;
      if (model && (model === "human" ? agent.agent_type !== "human" : agent.model !== model)) return false;
      return (!tag || agent.capabilities.includes(tag)) && finds(query, agent);
    });
    const compare = sort && COLUMNS[sort];
    if (compare) matches.sort((a, b) => compare(a, b) * (direction === "down" ? -1 : 1));
    return matches;
  }, [rows, view, needing && [...needing].join()]);

  // A table that goes away under the pointer is not left by it. At once, or it would undo the entry into the next one.
  useLayoutEffect(() => () => setInside(false), [show, found.length === 0]);
  const held = useHeld(found, view, inside);
  const ids = useMemo(() => held.rows.map(({ agent }) => agent.agent_id), [held.rows]);
  const { ticked, tick, tickRow } = useTicks(ids, () => !deletedShown);
  const marked = deletedShown ? [] : held.rows.filter(({ agent }) => ticked.has(agent.agent_id)).map(({ agent }) => agent);
  const counts = { working: 0, idle: 0, offline: 0 };
  for (const entry of statuses ?? []) counts[entry.status] += 1;
  // The chosen one stays a choice when no agent has it any more.
  const chosen = model && model !== "human" ? model : null;
  const used = [...new Set([chosen, ...rows.map(({ agent }) => agent.model)])].filter((id) => id !== null).sort();
  const tags = [...new Set([tag, ...rows.flatMap(({ agent }) => agent.capabilities)])].filter(Boolean).sort();
  const filtered = !!(needing || query || model || tag) || (show !== "all" && show !== "deleted");

  return (
    <Page
      title="Agents"
      buttons={
        <>
          {can("agents:configure") && <LinkButton to={href("import")}>Import</LinkButton>}
          <NewAgentLink kind="primary" />
        </>
      }
    >
      {!deletedShown && (
        <div class="chips" role="group" aria-label="Needs attention">
          {needs.map(
            ([one, name, icon, { size }]) =>
              (size > 0 || one === need) && (
                <Button
                  key={one}
                  small
                  icon={icon}
                  aria-pressed={one === need}
                  onClick={() => setParams({ need: one === need ? null : one }, false)}
                >
                  {name} <span class="count">{number(size)}</span>
                </Button>
              ),
          )}
        </div>
      )}
      <div class="tools agents-tools">
        <Segments<Show>
          label="Show"
          value={show}
          onPick={(value) => setParams({ show: value === "all" ? null : value }, false)}
          choices={[
            ["all", "All", active.data?.length],
            ...(Object.keys(STATUS) as Status[]).map((value) => [value, STATUS[value], statuses && counts[value]] as const),
            ["deleted", "Deleted", deleted.data?.length],
          ]}
        />
        <span class="grow" />
        <Select tool aria-label="Model" value={model} onPick={(value) => setParams({ model: value })}>
          <option value="">All models</option>
          {options(used.map((id) => [id, models?.find((known) => known.id === id)?.display_name ?? id]))}
          <option value="human">Human</option>
        </Select>
        {tags[0] && (
          <Select tool aria-label="Tag" value={tag} onPick={(value) => setParams({ tag: value })}>
            <option value="">All tags</option>
            {options(tags.map((one) => [one, one]))}
          </Select>
        )}
        <Search />
      </div>
      <Reading of={source} what="The agents" />
      {failed && <Reading of={failed} what="A part of the table" />}
      {source.data && found.length === 0 ? (
        <div class="card">
          {filtered ? (
            <NoMatch query={params.get("q") ?? ""} />
          ) : deletedShown ? (
            <Empty icon="trash" title="No deleted agents">
              <Told of="no deleted" />
            </Empty>
          ) : (
            <FirstAgent />
          )}
        </div>
      ) : !source.data ? null : (
        <div class="table-box" {...heldBy(setInside)}>
          {held.waiting > 0 && (
            <div class="waiting" role="status">
              <Button small onClick={held.show}>
                {plural(held.waiting, "change")}, show
              </Button>
            </div>
          )}
          <table class={cx("agents-table", deletedShown && "of-deleted")} aria-rowcount={held.rows.length + 1}>
            <caption class="hidden">{deletedShown ? "Deleted agents" : "Agents"}</caption>
            <thead>
              <tr>
                {HEADINGS.filter(
                  ([column, , , ofActive]) => !(ofActive && deletedShown) && (column !== "cost" || can("analytics:read")),
                ).map(([column, label, classes]) => (
                  <SortHead
                    key={column}
                    class={classes}
                    falling={sort === column ? (direction === "down") !== FALLING.has(column) : null}
                    onSort={() => setParams({ sort: sort !== column ? column : direction === "down" ? null : `${column}.down` })}
                    before={
                      column === "name" &&
                      !deletedShown && (
                        <TickBox
                          name={`all ${number(ids.length)}`}
                          on={marked.length === ids.length}
                          onTick={(_, on) => tick(ids, on)}
                        />
                      )
                    }
                  >
                    {column === "changed" && deletedShown ? "Deleted" : label}
                  </SortHead>
                ))}
                {deletedShown && (
                  <th class="c-act">
                    <span class="hidden">Restore</span>
                  </th>
                )}
              </tr>
            </thead>
            <Rows
              items={held.rows}
              id={({ agent }) => agent.agent_id}
              heights={rowHeights()}
              render={(row, index) => (
                <AgentRow
                  key={row.agent.agent_id}
                  row={row}
                  index={index}
                  names={names}
                  behind={needs[0]![3].has(row.agent.agent_id)}
                  deleted={deletedShown}
                  onRestore={setRestoring}
                  on={ticked.has(row.agent.agent_id)}
                  onTick={(range) => tickRow(row.agent.agent_id, range)}
                />
              )}
            />
          </table>
        </div>
      )}
      {source.data && !deletedShown && source.data.length > 0 && (
        <Usage shown={filtered ? found.length : null} total={source.data.length} />
      )}
      {marked.length > 0 && <BulkBar agents={marked} onClear={() => tick([...ticked], false)} />}
      {restoring && <Restore agent={restoring} onClose={() => setRestoring(null)} />}
    </Page>
  );
}

const MARKED = 1_500;

function AgentRow({
  row,
  index,
  names,
  behind,
  deleted,
  onRestore,
  on,
  onTick,
}: {
  row: Row;
  index: number;
  names: ReturnType<typeof useNames>;
  behind: boolean;
  deleted: boolean;
  onRestore: (agent: Agent) => void;
  on: boolean;
  onTick: (range: boolean) => void;
}) {
  const { agent, status, version, labels, cost } = row;
  const first = labels.find(({ label }) => label === "production") ?? labels[0];
  const at = touched.value.get(agent.agent_id) ?? 0;
  const fresh = at > 0 && Math.max(now.value, second.peek()) - at < MARKED;
  return (
    <tr
      data-row={agent.agent_id}
      aria-rowindex={index + 2}
      onClick={followRow}
      class={cx("follow", fresh && "fresh", on && "ticked")}
    >
      <td>
        <div class="agent-cell">
          {!deleted && <TickBox name={agent.display_name} on={on} onTick={onTick} />}
          <Avatar of={agent} />
          <div class="names">
            <a
              data-name
              dir="auto"
              href={href("agent", { id: agent.agent_id })}
              class={cx("clip strong", drafts.value.has(agent.id) && "changed")}
            >
              {agent.display_name}
              {drafts.value.has(agent.id) && <span class="hidden">, unsaved draft</span>}
            </a>
            <code class="clip">{agent.agent_id}</code>
          </div>
        </div>
      </td>
      <td class="widest">{agent.role}</td>
      <td class="second">
        {agent.model ? <code>{agent.model}</code> : agent.agent_type === "human" ? "Human" : <span class="dim">None</span>}
      </td>
      {!deleted && (
        <td>
          <div class="row">
            <StatusPill status={status?.status ?? "offline"} />
            {status?.current_task_title && (
              <span class="clip large dim" dir="auto" title={status.current_task_title}>
                {status.current_task_title}
              </span>
            )}
          </div>
        </td>
      )}
      {!deleted && (
        <td class="third" title={list(labels.map(({ label }) => label))}>
          <div class="row">
            {version && <span>v{version.version}</span>}
            {first && <LabelBadge {...first} current={version?.version} behind={behind} />}
            {labels.length > 1 && <Badge>+{labels.length - 1}</Badge>}
          </div>
        </td>
      )}
      {!deleted && can("analytics:read") && <td class="large right">{cost ? money(cost) : "–"}</td>}
      <td class="second right dim">
        <Time at={agent.updated_at} />
        {version && <span class="widest"> · {names(version.actor)}</span>}
      </td>
      {deleted && (
        <td class="right">
          {can("agents:configure") && (
            <Button small onClick={() => onRestore(agent)}>
              Restore
            </Button>
          )}
        </td>
      )}
    </tr>
  );
}

function Usage({ shown, total }: { shown: number | null; total: number }) {
  const { plan, agent_limit } = workspace.value!;
  const filtered = shown === null ? "" : `, ${number(shown)} shown`;
  return (
    <p class="table-foot">
      {agent_limit
        ? `${number(total)} of ${number(agent_limit)} active agents on ${capital(plan)}${filtered}`
        : `${plural(total, "agent")}${filtered}`}
    </p>
  );
}

function NoMatch({ query }: { query: string }) {
  return (
    <Empty
      icon="search"
      title={query ? `No agent matches “${query}”.` : "No agent matches this filter."}
      action={
        <Button onClick={() => setParams({ q: null, model: null, tag: null, show: null, need: null })}>Clear filter</Button>
      }
    />
  );
}

export function NewAgentLink(props: { kind?: "primary" }) {
  return can("agents:configure") ? (
    <LinkButton to={href("new-agent")} icon="plus" {...props}>
      New agent
    </LinkButton>
  ) : null;
}

export function FirstAgent() {
  return (
    <Empty icon="agents" title="No agents yet" action={<NewAgentLink />}>
      <Told of="no agents" />
    </Empty>
  );
}
