/**
 * Live changes. One tab of the browser holds the stream of the feed and passes what it hears to the others; where the
 * server or the browser cannot do that, each tab asks again and again.
 */
import { effect, signal } from "./signals";
import { address, ended, lostSince, root } from "./api";
import { invalidate, readAfter, type Topic } from "./cache";
import { me, phase, recheck, refresh, workspace } from "./session";
import type { StatusEntry } from "./types";

export type Mode = "live" | "polling";

export const mode = signal<Mode>("polling");
/** The status entries that the feed has sent, by agent. */
export const heard = signal<ReadonlyMap<string, StatusEntry>>(new Map());
/** The last change of each agent, so that its row can be marked for a moment. */
export const touched = signal<ReadonlyMap<string, number>>(new Map());

interface ChangeEvent {
  type: string;
  target: { type: string; id: string };
}

/** What the tabs tell each other. */
type Message =
  | { type: "hello" }
  | { type: "mode"; mode: Mode }
  | { type: "all"; statuses: StatusEntry[] }
  | { type: "status"; entry: StatusEntry }
  | { type: "change"; event: ChangeEvent }
  | { type: "reload" };

const RETRY = 30_000;
const EACH: [Topic[], number][] = [
  [["status"], 5_000],
  [["agents", "versions", "audit", "whoami"], 15_000],
  [["keys", "members", "providers", "webhooks"], 60_000],
];
const SETTLE = 250;
/** The server sends a bookmark each 15 s: a stream that is silent for longer is lost. */
const SILENCE = 35_000;

const TOPICS: Record<string, Topic[]> = {
  agent: ["agents", "versions", "status", "whoami"],
  agents: ["agents", "versions", "status", "whoami"],
  label: ["versions"],
  api_key: ["keys"],
  member: ["members", "whoami"],
  workspace: ["whoami"],
  provider_key: ["providers"],
  webhook: ["webhooks"],
  budget: ["usage"],
};

let pending = new Set<Topic>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Gathers changes that come together, so that many of them cost one reading. */
function changed(topics: Topic[]): void {
  for (const topic of topics) pending.add(topic);
  timer ??= setTimeout(() => {
    const gathered = [...pending];
    pending = new Set();
    timer = undefined;
    invalidate(...gathered);
    if (gathered.includes("whoami")) void recheck();
  }, SETTLE);
}

const EVERYTHING: Topic[] = [...EACH.flatMap(([topics]) => topics), "usage"];

/** So long the first reading waits for the stream, in milliseconds. */
const PATIENCE = 500;
/** Lets the first reading begin; there is none where it has begun. */
let begin: (() => void) | null = null;

/** Holds the first reading until the stream is open, or is known not to be. */
function holdReading(): void {
  readAfter(
    new Promise<void>((resolve) => {
      const now = (): void => {
        if (begin === now) begin = null;
        resolve();
      };
      begin = now;
      setTimeout(now, PATIENCE);
    }),
  );
}

function hear(message: Message): void {
  if (message.type === "mode") {
    const before = mode.peek();
    mode.value = message.mode;
    // What was read before the stream was there may have changed in between.
    if (!begin && before === "polling" && message.mode === "live") changed(EVERYTHING);
    begin?.();
    // A stream that ends tells of a lost connection or an ended session before the next reading does.
    if (before === "live" && message.mode === "polling") void recheck();
  } else if (message.type === "all") heard.value = new Map(message.statuses.map((entry) => [entry.agent_id, entry]));
  else if (message.type === "status") heard.value = new Map(heard.peek()).set(message.entry.agent_id, message.entry);
  else if (message.type === "reload") changed(EVERYTHING);
  else if (message.type === "change") {
    const { type, target } = message.event;
    if (target.type === "agent") touched.value = new Map(touched.peek()).set(target.id, Date.now());
    changed(["audit", ...(TOPICS[type.split(".")[0]!] ?? [])]);
  }
}

/** Holds the stream until it is closed; `wake` ends its pause before the next try. */
function stream(workspaceId: string, tell: (message: Message) => void) {
  let source: EventSource | null = null;
  let again: ReturnType<typeof setTimeout> | undefined;
  let silence: ReturnType<typeof setTimeout> | undefined;
  let batch: StatusEntry[] = [];
  let first = true;
  let waiting = false;
  const open = (): void => {
    waiting = false;
    clearTimeout(again);
    source = new EventSource(address("api/changes", { workspace_id: workspaceId, after: "now", status: true }));
    const retry = (delay: number): void => {
      source?.close();
      clearTimeout(silence);
      tell({ type: "mode", mode: "polling" });
      waiting = true;
      again = setTimeout(open, delay);
    };
    const alive = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => retry(2_000), SILENCE);
    };
    alive();
    source.addEventListener("bookmark", alive);
    source.addEventListener("open", () => {
      alive();
      first = true;
      batch = [];
      // A tab that takes over from another one does not know what came in between.
      const isFirst = begin !== null;
      tell({ type: "mode", mode: "live" });
      if (!isFirst) tell({ type: "reload" });
    });
    source.addEventListener("change", (event) => {
      alive();
      tell({ type: "change", event: JSON.parse(event["data"]) as ChangeEvent });
    });
    source.addEventListener("status", (event) => {
      alive();
      const entry = JSON.parse((event as MessageEvent<string>)["data"]) as StatusEntry;
      if (!first) return tell({ type: "status", entry });
      // The first ones are the whole list, in one piece of the stream.
      if (batch.push(entry) === 1) {
        setTimeout(() => {
          first = false;
          tell({ type: "all", statuses: batch });
        }, SETTLE);
      }
    });
    source.addEventListener("gone", () => {
      tell({ type: "reload" });
      retry(1_000);
    });
    source.addEventListener("end", () => retry(2_000));
    // Where it is not closed, the browser connects again by itself.
    source.addEventListener("error", () => {
      if (source?.readyState === EventSource.CLOSED) retry(RETRY);
      else tell({ type: "mode", mode: "polling" });
    });
  };
  open();
  return {
    wake: () => waiting && open(),
    close: () => {
      clearTimeout(again);
      clearTimeout(silence);
      source?.close();
    },
  };
}

/** Asks for a stream that waits for its next try, in whichever tab, to be opened at once. */
let wake = (): void => undefined;

/** Takes part in the stream of a workspace until the returned function is called. */
function follow(user: string, workspaceId: string): () => void {
  const name = `agentcfg ${root.pathname} ${user} ${workspaceId}`;
  holdReading();
  const channel = new BroadcastChannel(name);
  const leaving = new AbortController();
  let held: ReturnType<typeof stream> | null = null;
  const tell = (message: Message): void => {
    // What waited for a moment may come after the end.
    if (leaving.signal.aborted) return;
    hear(message);
    channel.postMessage(message);
  };
  const lead = (): void => {
    held = stream(workspaceId, tell);
  };
  channel.addEventListener("message", (event: MessageEvent<Message>) => {
    const message = event["data"];
    if (message.type !== "hello") hear(message);
    else if (held) {
      held.wake();
      channel.postMessage({ type: "mode", mode: mode.peek() } satisfies Message);
      channel.postMessage({ type: "all", statuses: [...heard.peek().values()] } satisfies Message);
    }
  });
  wake = () => {
    held?.wake();
    channel.postMessage({ type: "hello" } satisfies Message);
  };
  wake();
  if (navigator.locks) {
    const left = new Promise<void>((resolve) => leaving.signal.addEventListener("abort", () => resolve()));
    navigator.locks
      .request(name, { signal: leaving.signal }, () => {
        lead();
        return left;
      })
      .catch(() => undefined);
  } else lead();
  return () => {
    leaving.abort();
    wake = () => undefined;
    held?.close();
    channel.close();
    mode.value = "polling";
    heard.value = new Map();
  };
}

/** Starts live changes for the workspace that is shown, and polling where there are none. */
export function start(): void {
  let stop: (() => void) | null = null;
  let following = "";
  effect(() => {
    const user = phase.value === "ready" ? me.value?.id : undefined;
    const id = workspace.value?.permissions.includes("agents:read") ? workspace.value.id : undefined;
    const wanted = user && id ? `${user} ${id}` : "";
    if (wanted === following) return;
    stop?.();
    following = wanted;
    stop = user && id ? follow(user, id) : null;
  });
  for (const [topics, interval] of EACH) {
    setInterval(() => {
      if (document.hidden || phase.peek() !== "ready" || mode.peek() === "live" || lostSince.peek() !== null) return;
      invalidate(...topics);
      if (topics.includes("whoami")) void recheck();
    }, interval);
  }
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || phase.peek() !== "ready") return;
    void recheck();
    if (mode.peek() === "polling") invalidate();
  });
}

/** Tries a lost connection again, each time after a longer pause. */
export const nextTry = signal<number | null>(null);
let pause = 2_000;
let trying: ReturnType<typeof setTimeout> | undefined;

export async function tryNow(): Promise<void> {
  clearTimeout(trying);
  nextTry.value = null;
  try {
    const lost = lostSince.peek() !== null;
    await refresh();
    if (ended.peek()) return;
    if (!lost) invalidate();
    wake();
  } catch {
    schedule();
  }
}

function schedule(): void {
  pause = Math.min(pause * 1.6, 30_000);
  nextTry.value = Date.now() + pause;
  clearTimeout(trying);
  trying = setTimeout(() => void tryNow(), pause);
}

let down = false;
effect(() => {
  if (lostSince.value !== null) {
    down = true;
    if (nextTry.peek() === null) schedule();
  } else if (down) {
    down = false;
    pause = 2_000;
    nextTry.value = null;
    clearTimeout(trying);
    // There may have been changes meanwhile, and what was lost may have been the answer to one.
    invalidate();
  }
});
for (const change of ["online", "offline"]) addEventListener(change, () => void tryNow());
