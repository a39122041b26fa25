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
  #rest = "";
  #name = "";
  #id: string | undefined;
  #data: string[] = [];
  #length = 0;

  /** Takes a piece of text and returns the events that it completes. */
  take(piece: string): ServerSentEvent[] {
    const events: ServerSentEvent[] = [];
    const text = this.#rest + piece;
    let start = 0;
    for (;;) {
      const found = /\r\n|\n|\r/g;
      found.lastIndex = start;
      const end = found.exec(text);
      // A carriage return at the end of a piece may be the first half of a line break.
      if (end === null || (end[0] === "\r" && end.index === text.length - 1)) break;
      const event = this.#line(text.slice(start, end.index));
      if (event !== undefined) events.push(event);
      start = end.index + end[0].length;
    }
    this.#rest = text.slice(start);
    if (this.#rest.length + this.#length > MAX_EVENT) throw new RangeError("an event is longer than the client accepts");
    return events;
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
