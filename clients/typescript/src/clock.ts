/** Time and chance, so that tests can replace them. @internal */
export interface Clock {
  now(): number;
  random(): number;
  /** Ends early, without an error, when the signal is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The clock of the machine. @internal */
export const systemClock: Clock = {
  now: () => Date.now(),
  random: () => Math.random(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, ms);
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
