/** One server-sent event. @internal */
export interface ServerSentEvent {
  name: string;
  id: string | undefined;
  data: string;
}

/** The longest event that is accepted, in characters. */
const MAX_EVENT = 64 * 1024 * 1024;

/** Reads server-sent events from the pieces of a stream. @internal */
export class EventReader {
  /** The delay before the next connection that the server asks for, in milliseconds. */
  retryMs: number | undefined;
  /** The pieces of a line that is not complete. */
  #rest: string[] = [];
  #restLength = 0;
  /** Whether the last piece ended with a carriage return, which may be the first half of a line break. */
  #isAfterReturn = false;
  #name = "";
  #id: string | undefined;
  #data: string[] = [];
  #length = 0;

  /** Takes a piece of text and returns the events that it completes. */
  take(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    if (piece === "") return events;
    let start = this.#isAfterReturn && piece.startsWith("\n") ? 1 : 0;
    this.#isAfterReturn = piece.endsWith("\r");
    // Only what is new is searched, so that a long line costs no more than its length.
    const found = /\r\n|\n|\r/g;
    found.lastIndex = start;
    for (let end = found.exec(piece); end !== null; end = found.exec(piece)) {
      const event = this.#line(this.#rest.join("") + piece.slice(start, end.index));
      this.#rest = [];
      this.#restLength = 0;
      if (event !== undefined) events.push(event);
      start = found.lastIndex;
    }
    if (start < piece.length) {
      this.#rest.push(piece.slice(start));
      this.#restLength += piece.length - start;
    }
    if (this.#restLength + this.#length > MAX_EVENT) throw new RangeError("an event is longer than the client accepts");
    return events;
  }

  /** Whether the last piece ended within a field of an event, such as long data, and not within a comment. */
  get isWithinEvent(): boolean {
    return this.#rest[0] !== undefined && !this.#rest[0].startsWith(":");
  }

  #line(line: string): ServerSentEvent | undefined {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
    switch (field) {
      case "event":
        this.#name = value;
        break;
      case "id":
        if (!value.includes("\0")) this.#id = value;
        break;
      case "data":
        this.#data.push(value);
        this.#length += value.length;
        break;
      case "retry":
        if (/^\d+$/.test(value)) this.retryMs = Number(value);
        break;
    }
    return undefined;
  }

  #dispatch(): ServerSentEvent | undefined {
    const event = { name: this.#name || "message", id: this.#id, data: this.#data.join("\n") };
    const isEmpty = this.#data.length === 0;
    this.#name = "";
    this.#id = undefined;
    this.#data = [];
    this.#length = 0;
    return isEmpty ? undefined : event;
  }
}
