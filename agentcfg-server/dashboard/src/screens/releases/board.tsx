/** The board of releases: a row for each agent, a column for each label, and how far they are apart. */
import { useMemo, useState } from "preact/hooks";
import { agentQuery, useAgents, useLabels, useNames, useVersions } from "../../base/data";
import { useGap } from "../../base/gaps";
import { GROUPS, LATEST, releaseRows, step, usualColumns, type Group, type Release, type ReleaseRow } from "../../base/releases";
import { go, href, route, setParams } from "../../base/route";
import { can } from "../../base/session";
import { ago, capital, DAY, now, number, plural, span } from "../../base/text";
import { useResource } from "../../base/cache";
import type { FullVersion } from "../../base/types";
import { Avatar, Button, cx, Empty, LinkButton, options, Told } from "../../parts/base";
import { Reading } from "../../parts/feedback";
import { asked, finds, Search, Segments, Select } from "../../parts/fields";
import { SaveBar } from "../../parts/page";
import { Rows } from "../../parts/rows";
import { TickBox, useListKeys, useTicks } from "../../parts/ticks";
import { Columns, columnsKept } from "./columns";
import { reviewAddress } from "./picked";
import { gapText, Rail, Station } from "./station";

type Show = "all" | "behind" | "never" | "moved";
type Order = "behind" | "name" | "moved";

const ORDERS: Record<Order, (a: ReleaseRow, b: ReleaseRow) => number> = {
  behind: (a, b) => b.behind - a.behind,
  name: (a, b) => a.agent.display_name.localeCompare(b.agent.display_name),
  moved: (a, b) => b.moved.localeCompare(a.moved),
};

/** Further apart than any two columns. */
const BACK = 99;

/** A row of the table: the head of a group, or an agent. */
type Item = { group: Group; rows: ReleaseRow[] } | ReleaseRow;
const isHead = (item: Item): item is { group: Group; rows: ReleaseRow[] } => "rows" in item;
const idOf = (item: Item): string => (isHead(item) ? `group ${item.group}` : item.agent.agent_id);

export function Board() {
  const agents = useAgents();
  const versions = useVersions();
  const labels = useLabels();
  const read = [agents, versions, labels].find(({ error, data }) => error !== null || data === undefined);
  if (read) return <Reading of={read} what="The releases" />;
  if (!labels.data!.some(({ agent_id }) => agents.data!.some((agent) => agent.agent_id === agent_id))) {
    return (
      <div class="card">
        <Empty
          icon="label"
          title="No agent has a label"
          action={
            can("agents:release") &&
            agents.data!.length > 0 && (
              <LinkButton to={href("releases", { tab: "review", from: LATEST, to: "production" })}>
                Label all as production
              </LinkButton>
            )
          }
        >
          <Told of="none released" />
        </Empty>
      </div>
    );
  }
  return <Table agents={agents.data!} versions={versions.data!} labels={labels.data!} />;
}

function Table({
  agents,
  versions,
  labels,
}: {
  agents: Parameters<typeof releaseRows>[0];
  versions: Parameters<typeof releaseRows>[1];
  labels: Parameters<typeof releaseRows>[2];
}) {
  const params = route.value.params;
  const show = (params.get("show") ?? "all") as Show;
  const order = (params.get("order") ?? "behind") as Order;
  const query = asked();
  const known = useMemo(() => [LATEST, ...new Set(labels.map(({ label }) => label))], [labels]);
  const usual = useMemo(() => usualColumns(versions, labels), [versions, labels]);
  const wanted = (params.get("columns") ?? columnsKept.value).split(",").filter((label) => known.includes(label));
  const columns = wanted.length > 1 ? wanted : usual;
  const last = columns.at(-1)!;
  const rows = useMemo(() => releaseRows(agents, versions, labels, columns), [agents, versions, labels, columns.join()]);
  const week = new Date(now.value - 7 * DAY).toISOString();
  const isShown: Record<Show, (row: ReleaseRow) => boolean> = {
    all: () => true,
    behind: ({ group }) => group === "behind",
    never: ({ group }) => group === "never",
    moved: ({ moved }) => moved > week,
  };
  const count = (which: Show): number => rows.filter(isShown[which]).length;
  const found = rows
    .filter(isShown[show])
    .filter(({ agent }) => finds(query, agent))
    .sort(ORDERS[order] ?? ORDERS.behind);
  const groups = GROUPS.map((group) => ({ group, rows: found.filter((row) => row.group === group) }));
  const items: Item[] = groups.filter((group) => group.rows.length).flatMap((group) => [group, ...group.rows]);

  const may = can("agents:release");
  const [pair, setPair] = useState<{ from: string; to: string } | null>(null);
  // Columns beside each other come first, the last ones before the others; a way back comes last.
  const pairs = useMemo(() => {
    const all = columns.flatMap((from, i) =>
      columns.flatMap((to, j) => (i === j || to === LATEST ? [] : [{ from, to, apart: j > i ? j - i : BACK }])),
    );
    return all.reverse().sort((a, b) => a.apart - b.apart);
  }, [columns.join()]);
  const ready = useMemo(
    () => new Set(rows.filter((row) => pairs.some(({ from, to }) => step(row, from, to))).map(({ agent }) => agent.agent_id)),
    [rows, pairs],
  );
  const ids = found.map(({ agent }) => agent.agent_id);
  const { ticked, tick, tickRow } = useTicks(ids, (id) => may && ready.has(id));
  const all = found.filter(({ agent }) => ticked.has(agent.agent_id) && ready.has(agent.agent_id));
  const { from, to } = pair ?? pairs.find(({ from, to }) => all.some((row) => step(row, from, to))) ?? pairs[0]!;
  const chosen = all.filter((row) => step(row, from, to)).map(({ agent }) => agent.agent_id);
  const review = (): void => go(reviewAddress(from, to, chosen));
  useListKeys(({ key }) => {
    if (key === "b") setParams({ show: show === "behind" ? null : "behind" });
    else if (key === "r" && chosen.length) review();
    else return false;
    return true;
  });

  return (
    <div class="grow-page">
      <div class="tools">
        <Segments<Show>
          label="Show"
          value={show}
          onPick={(value) => setParams({ show: value === "all" ? null : value }, false)}
          choices={[
            ["all", "All", rows.length],
            ["behind", `${capital(last)} behind`, count("behind")],
            ["never", "Never released", count("never")],
            ["moved", "Moved this week", count("moved")],
          ]}
        />
        <span class="grow" />
        <Select tool aria-label="Order" value={order} onPick={(value) => setParams({ order: value === "behind" ? null : value })}>
          {options([
            ["behind", "Furthest behind first"],
            ["name", "By name"],
            ["moved", "Moved last"],
          ])}
        </Select>
        <Columns all={known} columns={columns} />
        <Search />
      </div>
      {items.length === 0 ? (
        <div class="card">
          <Empty
            icon="search"
            title={show === "behind" && !query ? `No agent's ${last} is behind` : "No agent matches"}
            action={<Button onClick={() => setParams({ show: null, q: null })}>Clear filter</Button>}
          />
        </div>
      ) : (
        <div class="table-box wide-box" tabIndex={columns.length > 4 ? 0 : undefined} role="group" aria-label="Board">
          <table class={cx("board-table", items.length > 200 && "long", !may && "reading", columns.length > 4 && "many")}>
            <caption class="hidden">
              <Told of="board" />
            </caption>
            <thead>
              <tr>
                <th scope="col" class="c-name">
                  Agent
                </th>
                {columns.map((label) => (
                  <th key={label} scope="col" class={label === last ? "c-last" : undefined}>
                    <b class="clip block">{label}</b>
                    <span class="hint clip block">{headline(rows, label, columns)}</span>
                  </th>
                ))}
              </tr>
            </thead>
            <Rows
              items={items}
              id={idOf}
              heights={[56, 104]}
              passes={isHead}
              render={(item) =>
                isHead(item) ? (
                  <Head
                    key={idOf(item)}
                    {...item}
                    last={last}
                    span={columns.length + 1}
                    {...(may && item.rows.some(({ agent }) => ready.has(agent.agent_id))
                      ? {
                          on: item.rows
                            .filter(({ agent }) => ready.has(agent.agent_id))
                            .every(({ agent }) => ticked.has(agent.agent_id)),
                          onTick: (on: boolean) =>
                            tick(
                              item.rows.map(({ agent }) => agent.agent_id),
                              on,
                            ),
                        }
                      : {})}
                  />
                ) : (
                  <Row
                    key={item.agent.agent_id}
                    row={item}
                    columns={columns}
                    may={may}
                    ready={ready.has(item.agent.agent_id)}
                    on={ticked.has(item.agent.agent_id) && ready.has(item.agent.agent_id)}
                    onTick={(range) => tickRow(item.agent.agent_id, range)}
                  />
                )
              }
            />
          </table>
        </div>
      )}
      {all.length > 0 && (
        <SaveBar
          label="Ticked agents"
          what={`${plural(all.length, "agent")} ticked`}
          between={
            <span class="row promote second">
              Promote
              <Select tool aria-label="Promote from" value={from} onPick={(value) => setPair({ from: value, to })}>
                {options(known.filter((label) => label !== to).map((label) => [label, label]))}
              </Select>
              to
              <Select tool aria-label="Promote to" value={to} onPick={(value) => setPair({ from, to: value })}>
                {options(known.filter((label) => label !== from && label !== LATEST).map((label) => [label, label]))}
              </Select>
            </span>
          }
        >
          <Button kind="quiet" onClick={() => tick(ids, false)}>
            Clear
          </Button>
          <Button kind="primary" blocked={!chosen.length} onClick={review}>
            Review {plural(chosen.length, "change")}
          </Button>
        </SaveBar>
      )}
    </div>
  );
}

/** How many agents bear a label, and how many of them are behind the column before, as the groups count them. */
function headline(rows: ReleaseRow[], label: string, columns: readonly string[]): string {
  const bearing = rows.filter(({ places }) => places.has(label));
  const before = columns.slice(0, columns.indexOf(label)).reverse();
  const waits = ({ places }: ReleaseRow): number => places.get(before.find((one) => places.has(one))!)?.version ?? 0;
  const behind = bearing.filter((row) => waits(row) > row.places.get(label)!.version).length;
  return `${plural(bearing.length, "agent")}${behind ? `, ${number(behind)} behind` : ""}`;
}

/** So many versions are read to know which agent is behind for the longest time. */
const READ = 4;

/**
 * Since when agents are behind: since the version after their own was made, or since the label was moved back to it. Of many
 * agents those are read whose label was moved the longest ago.
 */
function useBehindSince(rows: ReleaseRow[], last: string): string | undefined {
  const placed = rows.map(({ agent, places }) => ({ agent, ...places.get(last)! })).sort((a, b) => a.at.localeCompare(b.at));
  const history = useResource<Release[]>("versions", rows.length ? "api/agents/labels/history" : null, {
    workspace_id: rows[0]?.agent.workspace_id,
    label: last,
    limit: 200,
  }).data;
  const moves = history?.flatMap(({ moves }) => moves);
  const found: string[] = [];
  for (let i = 0; i < READ; i += 1) {
    const { agent, version, at } = placed[i] ?? {};
    const next = useResource<FullVersion>(
      "versions",
      agent ? "api/agents/version" : null,
      agent && { ...agentQuery(agent), version: version! + 1 },
    ).data;
    if (!next || !moves) continue;
    const { from, to } = moves.find(({ agent_id }) => agent_id === agent!.agent_id) ?? {};
    found.push(from! > to! && at! > next.created_at ? at! : next.created_at);
  }
  return found.length < Math.min(READ, placed.length) ? undefined : found.sort()[0];
}

function Head({
  group,
  rows,
  last,
  span: columns,
  on,
  onTick,
}: {
  group: Group;
  rows: ReleaseRow[];
  last: string;
  span: number;
  on?: boolean;
  onTick?: (on: boolean) => void;
}) {
  const title = group === "never" ? "Never released" : `${capital(last)} ${group === "behind" ? "behind" : "up to date"}`;
  const oldest = useBehindSince(group === "behind" ? rows : [], last);
  return (
    <tr class="group-row">
      <th scope="rowgroup" colSpan={columns}>
        <div class="row">
          {onTick && <TickBox name={`all: ${title}`} on={on ?? false} onTick={(_, on) => onTick(on)} />}
          <b>{title}</b>
          <span class="dim">
            {number(rows.length)}
            {oldest && `, ${rows.length > READ ? "one" : "the oldest"} for ${span(now.value - Date.parse(oldest))}`}
          </span>
        </div>
      </th>
    </tr>
  );
}

function Row({
  row,
  columns,
  may,
  ready,
  on,
  onTick,
}: {
  row: ReleaseRow;
  columns: string[];
  may: boolean;
  ready: boolean;
  on: boolean;
  onTick: (range: boolean) => void;
}) {
  const { agent } = row;
  return (
    <tr data-row={agent.agent_id} class={cx(on && "ticked")}>
      <td class="c-name">
        <div class="agent-cell">
          {may && <TickBox name={agent.display_name} on={on} disabled={!ready} onTick={onTick} />}
          <Avatar of={agent} />
          <div class="two-lines">
            <a data-name dir="auto" class="clip block strong" href={href("agent", { id: agent.agent_id, tab: "labels" })}>
              {agent.display_name}
            </a>
            <code class="clip block">{agent.agent_id}</code>
          </div>
        </div>
      </td>
      {columns.map((label, i) => (
        <Hop key={label} row={row} label={label} next={columns[i + 1]} beforeLast={i === columns.length - 2} />
      ))}
    </tr>
  );
}

/** The station of a label, and the rail to the one of the next column. */
function Hop({
  row,
  label,
  next,
  beforeLast,
}: {
  row: ReleaseRow;
  label: string;
  next: string | undefined;
  beforeLast: boolean;
}) {
  const { agent, places, group } = row;
  const names = useNames();
  const place = places.get(label);
  const other = next === undefined ? undefined : places.get(next);
  const gap = useGap(agent, other?.version ?? null, place?.version ?? null);
  const apart = place && other ? place.version - other.version : 0;
  const tone = next === undefined && place ? (group === "behind" ? "behind" : "current") : undefined;
  const who = place && names(place.actor).split(/[\s@]/)[0];
  return (
    <td class={cx(next === undefined && "c-last", beforeLast && apart > 0 && "behind")}>
      <div class="hop">
        <Station version={place?.version} tone={tone} />
        {next !== undefined && <Rail from={place?.version} to={other?.version} />}
        <span class="at clip">
          {place ? (
            <time dateTime={place.at}>
              {ago(Date.parse(place.at), now.value)}
              <span class="second"> · {who}</span>
            </time>
          ) : (
            "Not set"
          )}
        </span>
        {apart !== 0 && (
          <a
            class="gap clip"
            href={href("agent", { id: agent.agent_id, tab: "history", from: other!.version, to: place!.version })}
          >
            {apart > 0 ? `+${number(apart)}` : `−${number(-apart)}`}
            <span class="second">{Math.abs(apart) === 1 ? " version" : " versions"}</span>
            {gap && ` · ${gapText(gap)}`}
            <span class="hidden">
              {" "}
              from {next} to {label}
            </span>
          </a>
        )}
      </div>
    </td>
  );
}
