/** Time and chance, so that tests can replace them. @internal */
export interface Clock {
  now(): number;
  random(): number;
  /** Ends early, without an error, when the signal is aborted. One in the background keeps no process of Node.js running. */
  sleep(ms: number, signal?: AbortSignal, isInBackground?: boolean): Promise<void>;
}

/** The longest delay of a timer. The runtimes take a longer one for none. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/** The delay of a timer for a time of any length. @internal */
export function timerMs(ms: number): number {
  return Math.min(Math.max(ms, 0), MAX_TIMER_MS);
}

/** The clock of the machine. @internal */
export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal, isInBackground = false) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer as ReturnType<typeof setTimeout>);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer: unknown = setTimeout(done, timerMs(ms));
      // Timers of browsers are numbers.
      if (isInBackground) (timer as { unref?(): void }).unref?.();
      signal?.addEventListener("abort", done);
    }),
};

/** Delays that double from the first to the longest; each has jitter of up to its own length on top. @internal */
export class Backoff {
  #next: number;

  constructor(
    private readonly clock: Clock,
    private readonly minMs: number,
    private readonly maxMs: number,
  ) {
    this.#next = minMs;
  }

  next(): number {
    const delay = Math.min(this.#next, this.maxMs);
    this.#next = delay * 2;
    return delay + this.clock.random() * delay;
  }

  reset(): void {
    this.#next = this.minMs;
  }
}
