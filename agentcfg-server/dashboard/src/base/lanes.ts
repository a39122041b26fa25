/** What an agent did over a time, from the changes of its status. */
import { busiest, type StatusChange } from "./attention";
import type { Status } from "./types";
import { HOUR } from "./usage";

export interface Block {
  status: Status;
  from: number;
  to: number;
  id: string | null;
  title: string | null;
}

export interface Lane {
  blocks: Block[];
  /** Milliseconds of work, and in how many tasks. */
  worked: number;
  tasks: number;
  /** Until when it is not known what it did, where that is within the time. */
  unknown?: number;
}

/** The full hours of a time, as clocks here show them; of a long one every second, third or fourth. */
export function fullHours(from: number, to: number, most = 6): number[] {
  const found: number[] = [];
  // Nothing is known yet of a server that has just begun: its time may be empty.
  const step = Math.max(1, Math.ceil((to - from) / HOUR / most)) * HOUR;
  for (let at = new Date(from).setHours(0, 0, 0, 0); at < to; at += step) if (at >= from) found.push(at);
  return found;
}

/** The lanes of agents, each from its first known change on; a report of the same task goes on with its block. */
export function lanesOf(changes: readonly StatusChange[], from: number, to: number): Map<string, Lane> {
  const lanes = new Map<string, Block[]>();
  const busy = busiest(changes);
  for (const { agent_id, at, status, current_task_id: id, current_task_title: title } of changes) {
    const blocks = lanes.get(agent_id) ?? [];
    lanes.set(agent_id, blocks);
    const last = blocks.at(-1);
    if (last?.status === status && last.id === id) continue;
    if (last) last.to = Date.parse(at);
    blocks.push({ status, from: Date.parse(at), to: Math.max(to, Date.parse(at)), id, title });
  }
  return new Map(
    [...lanes].map(([agent, all]) => {
      const blocks = all.filter((block) => block.to > from).map((block) => ({ ...block, from: Math.max(from, block.from) }));
      const work = blocks.filter(({ status }) => status === "working");
      const lane = { blocks, worked: work.reduce((sum, { from, to }) => sum + to - from, 0), tasks: work.length };
      return [agent, busy.has(agent) && all[0]!.from > from ? { ...lane, unknown: all[0]!.from } : lane];
    }),
  );
}
