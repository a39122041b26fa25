// The status of an agent for as long as a piece of work lasts.
import type { Clock } from "./clock.js";
import type { StatusReport } from "./generated.js";

/** What an agent is working on. */
export interface Work {
  /** The title of the task, of 1 to 200 characters. */
  working: string;
  /** The identifier of the task, of 1 to 100 characters. The default is a random one. */
  task?: string | undefined;
}

/** How often a report is repeated. It expires after two minutes by default. */
const REPEAT_MS = 40_000;
/** How long the end of work waits at most until it is reported. */
const PATIENCE_MS = 1_500;

/** Reports the work of agents, one report after the other. @internal */
export class StatusScopes {
  readonly #scopes = new Map<string, StatusReport[]>();
  /** The last report of each agent that is being sent or waits. */
  readonly #last = new Map<string, Promise<void>>();
  /** The report of each agent that waits for the one before. It tells what holds when it is sent. */
  readonly #waiting = new Map<string, Promise<void>>();

  constructor(
    private readonly clock: Clock,
    private readonly report: (agentId: string, report: StatusReport) => Promise<unknown>,
    private readonly onError: (error: Error) => void,
  ) {}

  /**
   * Runs the work, and reports the agent as working meanwhile. A report that fails or hangs does not disturb the work. Where several
   * pieces of work overlap, the one that began last is reported; after the last one the agent is idle.
   */
  async run<T>(agentId: string, work: Work, run: () => Promise<T> | T): Promise<T> {
    const own: StatusReport = {
      status: "working",
      current_task_id: work.task ?? globalThis.crypto.randomUUID(),
      current_task_title: work.working,
    };
    const scopes = this.#scopes.get(agentId) ?? [];
    this.#scopes.set(agentId, scopes);
    scopes.push(own);
    void this.#send(agentId);
    const end = new AbortController();
    void this.#repeat(agentId, own, end.signal);
    try {
      return await run();
    } finally {
      end.abort();
      scopes.splice(scopes.indexOf(own), 1);
      if (scopes.length === 0) this.#scopes.delete(agentId);
      const timer = new AbortController();
      await Promise.race([this.#send(agentId), this.clock.sleep(PATIENCE_MS, timer.signal)]);
      timer.abort();
    }
  }

  async #repeat(agentId: string, own: StatusReport, signal: AbortSignal): Promise<void> {
    for (;;) {
      await this.clock.sleep(REPEAT_MS, signal);
      if (signal.aborted) return;
      if (this.#scopes.get(agentId)?.at(-1) === own) await this.#send(agentId);
    }
  }

  /** Reports what holds when the report before it is done, so that reports arrive in order. */
  #send(agentId: string): Promise<void> {
    const waiting = this.#waiting.get(agentId);
    if (waiting !== undefined) return waiting;
    const before = this.#last.get(agentId) ?? Promise.resolve();
    const sent = before.then(async () => {
      this.#waiting.delete(agentId);
      try {
        await this.report(agentId, this.#scopes.get(agentId)?.at(-1) ?? { status: "idle" });
      } catch (error) {
        this.onError(error as Error);
      } finally {
        if (this.#last.get(agentId) === sent) this.#last.delete(agentId);
      }
    });
    this.#last.set(agentId, sent);
    this.#waiting.set(agentId, sent);
    return sent;
  }
}
