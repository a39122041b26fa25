// Answers that hold a JSON object in each line, read as they come.
import { timerMs } from "./clock.js";
import { ConnectionError, TimeoutError, UnreadableAnswerError } from "./errors.js";
import type { ApiRequest, Transport } from "./transport.js";

/** The longest line that is accepted, in characters. */
const MAX_LINE = 64 * 1024 * 1024;

/** Sends a request once, and reads its answer line by line. The time limit of an attempt is for each piece. @internal */
export async function* readLines(transport: Transport, request: ApiRequest): AsyncGenerator<object, void, undefined> {
  const outer = request.signal;
  outer?.throwIfAborted();
  const connection = new AbortController();
  const forward = () => connection.abort(outer?.reason);
  outer?.addEventListener("abort", forward);
  try {
    const body = await transport.open({ ...request, signal: connection.signal });
    const pieces = body.getReader();
    const decoder = new TextDecoder();
    let line: string[] = [];
    let length = 0;
    for (let isDone = false; !isDone;) {
      const piece = await next(pieces, connection, transport.attemptMs);
      isDone = piece.done;
      const [first = "", ...starts] = decoder.decode(piece.value, { stream: !isDone }).split("\n");
      line.push(first);
      length += first.length;
      for (const start of starts) {
        yield parsed(line.join(""));
        line = [start];
        length = start.length;
      }
      if (length > MAX_LINE) throw new UnreadableAnswerError("a line of the answer is longer than the client accepts");
    }
    if (length > 0) throw new UnreadableAnswerError("the last line of the answer has no end");
  } finally {
    outer?.removeEventListener("abort", forward);
    // A reader that stops early ends the connection too.
    connection.abort();
  }
}

type Pieces = ReadableStreamDefaultReader<Uint8Array>;

async function next(pieces: Pieces, connection: AbortController, ms: number): ReturnType<Pieces["read"]> {
  const timer = setTimeout(() => connection.abort(new TimeoutError("no answer came in time")), timerMs(ms));
  try {
    return await pieces.read();
  } catch (error) {
    connection.signal.throwIfAborted();
    throw new ConnectionError("the connection broke within the answer", "unknown", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

function parsed(line: string): object {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    value = undefined;
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new UnreadableAnswerError("a line of the answer is no JSON object");
}
