import { type Followed, follow } from "../follow.js";
import type { ChangeEvent } from "../generated.js";
import type { Caller, CallOptions } from "./caller.js";

/** Events in their order, and the position to read on from. */
export interface ChangePage {
  readonly events: ChangeEvent[];
  readonly cursor: string | undefined;
}

/** The change feed. */
export class Changes {
  constructor(private readonly caller: Caller) {}

  /**
   * Reads the changes after a position, which is a cursor, `now` or `start`. An answer without events waits for one up to
   * `wait` seconds.
   */
  async read(after: string, page: { limit?: number; wait?: number } = {}, options: CallOptions = {}): Promise<ChangePage> {
    const attemptMs = page.wait === undefined ? undefined : (page.wait + 15) * 1000;
    const answer = await this.caller.send("readChanges", { after, ...page }, { ...options, attemptMs });
    return { events: answer.value(), cursor: answer.headers.get("change-cursor") ?? undefined };
  }

  /**
   * Follows the changes after a position, each once and in order, over any number of connections. It ends with an error that
   * waiting does not mend: `GoneError` when the position is no longer one of the workspace (read the list again),
   * `UnauthorizedError`, `ForbiddenError`. With a `label` the events of a stream that move it have `released`: the
   * versions that it points at from then on.
   */
  async *follow(
    after: string,
    options: CallOptions & { status?: boolean; label?: string } = {},
  ): AsyncGenerator<Followed, void, undefined> {
    const { status, label } = options;
    const workspaceId = await this.caller.workspaceId();
    const signal = options.signal ?? new AbortController().signal;
    yield* follow(this.caller.transport, { workspaceId, after, signal, status: status === true, label });
  }
}
