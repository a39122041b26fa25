/** The timeline: what each agent did in the last hours, a lane for each. */
import { useMemo, useState } from "preact/hooks";
import { fullHours, lanesOf, type Block, type Lane } from "../base/lanes";
import { useAgentsById, useStatuses } from "../base/data";
import { href, route, setParams } from "../base/route";
import { isolated, now, number, plural, span, time } from "../base/text";
import type { Agent, StatusEntry } from "../base/types";
import { HOUR } from "../base/usage";
import { Avatar, STATUS } from "../parts/base";
import { useWidth } from "../parts/chart";
import { Reading } from "../parts/feedback";
import { Segments } from "../parts/fields";
import { useStatusHistory } from "./overview/attention";

const HEIGHTS = { working: 18, idle: 8, offline: 0 };
const ORDER = Object.keys(HEIGHTS);
/** More lanes than these are not read by people. */
const MOST = 100;
/** So long on one task is marked. */
const LONG = 4 * HOUR;
const NOTHING: Lane = { blocks: [], worked: 0, tasks: 0 };

export function Timeline() {
  const history = useStatusHistory();
  const statuses = useStatuses();
  const hours = route.value.params.get("hours") === "6" ? 6 : 24;
  const [said, setSaid] = useState("");
  const to = Math.ceil(now.value / 60_000) * 60_000;
  const from = to - hours * HOUR;
  const since = Date.parse(history.headers?.get("History-Since") ?? "");
  const lanes = useMemo(() => lanesOf(history.data ?? [], from, to), [history.data, from, to]);
  const byId = useAgentsById();
  const of = (entry: StatusEntry): Lane => lanes.get(entry.agent_id) ?? NOTHING;
  const all = (statuses.data ?? [])
    .filter(({ agent_id }) => byId.has(agent_id))
    .sort((a, b) => ORDER.indexOf(a.status) - ORDER.indexOf(b.status) || of(b).worked - of(a).worked);
  if (!history.data || !statuses.data) return <Reading of={history.error !== null ? history : statuses} what="The timeline" />;
  return (
    <>
      <div class="tools">
        <Segments
          label="Range"
          value={String(hours)}
          onPick={(value) => setParams({ hours: value === "24" ? null : value })}
          choices={["6", "24"].map((value) => [value, `${value} h`])}
        />
        <p class="hint grow" role="status">
          {said || (since > from && `This server has seen reports since ${time(since)}.`)}
        </p>
        <span class="lane-key hint second">
          {ORDER.map((status) => (
            <span key={status} class={status}>
              {status}
            </span>
          ))}
          <span class="long">{span(LONG)}, one task</span>
          {[...lanes.values()].some(({ unknown }) => unknown) && <span class="unknown">not kept</span>}
        </span>
      </div>
      <Lanes entries={all.slice(0, MOST)} byId={byId} of={of} from={from} to={to} say={setSaid} />
      {all.length > MOST && (
        <p class="table-foot">
          The first {MOST} of {number(all.length)} agents.
        </p>
      )}
    </>
  );
}

interface Drawn {
  from: number;
  to: number;
  say: (text: string) => void;
}

function Lanes({
  entries,
  byId,
  of,
  ...drawn
}: Drawn & { entries: StatusEntry[]; byId: Map<string, Agent>; of: (entry: StatusEntry) => Lane }) {
  const { place, width } = useWidth();
  const { from, to } = drawn;
  const length = Math.max(160, innerWidth < 720 ? width - 34 : width - 366);
  const x = (at: number): number => ((at - from) / (to - from)) * length;
  return (
    <div class="card timeline" ref={place}>
      <div class="lane-row" aria-hidden="true">
        <span class="second">Agent</span>
        <svg class="lane chart" width={length} height="28">
          {fullHours(from, to, length < 400 ? 4 : 6).map((at) => (
            <g key={at}>
              {/* Down to the last lane: the card cuts it. */}
              <line x1={x(at)} x2={x(at)} y1="28" y2="9999" />
              <text x={x(at)} y="18" text-anchor="middle">
                {time(at)}
              </text>
            </g>
          ))}
        </svg>
        <span class="second right">Worked · tasks</span>
      </div>
      {entries.map((entry, i) => (
        <Row
          key={entry.agent_id}
          agent={byId.get(entry.agent_id)!}
          lane={of(entry)}
          length={length}
          head={entries[i - 1]?.status === entry.status ? null : STATUS[entry.status]}
          {...drawn}
        />
      ))}
    </div>
  );
}

function Row({
  agent,
  lane,
  from,
  to,
  length,
  say,
  head,
}: Drawn & { agent: Agent; lane: Lane; length: number; head: string | null }) {
  const [chosen, setChosen] = useState<number | null>(null);
  const { blocks, worked, tasks, unknown } = lane;
  const x = (at: number): number => ((at - from) / (to - from)) * length;
  const name = isolated(agent.display_name);
  const words = ({ status, from, to, id, title }: Block): string =>
    `${name}: ${status === "working" ? (title ?? id ?? "a task without a name") : STATUS[status].toLowerCase()}, ${time(from)} to ${time(to)}, ${span(to - from)}${title && id ? `, ${id}` : ""}`;
  const pick = (i: number): void => {
    setChosen(i);
    say(words(blocks[i]!));
  };
  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step || !blocks.length) return;
    event.preventDefault();
    pick(Math.min(blocks.length - 1, Math.max(0, (chosen ?? blocks.length) + step)));
  };
  const total = tasks ? `${unknown ? "≥ " : ""}${span(worked)} · ${plural(tasks, "task")}` : "No work";
  return (
    <>
      {head && <h2 class="lane-head">{head}</h2>}
      <div class="lane-row">
        <span class="row">
          <Avatar of={agent} size={20} />
          <a class="strong clip" dir="auto" href={href("agent", { id: agent.agent_id })}>
            {name}
          </a>
        </span>
        <div
          class="lane"
          tabIndex={0}
          role="group"
          aria-label={`${name}: ${total}. Left and right name what it did.`}
          onKeyDown={move}
          onFocusOut={() => setChosen(null)}
        >
          <svg width={length} height="36" aria-hidden="true">
            {unknown && <rect class="unknown" fill="url(#hatch)" width={x(unknown)} y="9" height="18" rx="2" />}
            {blocks.map((block, i) => {
              const height = HEIGHTS[block.status];
              const long = block.status === "working" && block.to - block.from >= LONG;
              return (
                <g
                  key={block.from}
                  class={chosen === i ? "chosen" : undefined}
                  onPointerEnter={() => pick(i)}
                  onPointerLeave={() => setChosen(null)}
                >
                  <rect fill="transparent" x={x(block.from)} width={x(block.to) - x(block.from)} height="36" />
                  {height ? (
                    <rect
                      class={long ? "long" : block.status}
                      x={x(block.from) + 0.5}
                      width={Math.max(3, x(block.to) - x(block.from) - 1)}
                      y={18 - height / 2}
                      height={height}
                      rx="2"
                    />
                  ) : (
                    <line x1={x(block.from)} x2={x(block.to)} y1="18" y2="18" />
                  )}
                </g>
              );
            })}
          </svg>
        </div>
        <span class="hint right">{total}</span>
      </div>
    </>
  );
}
