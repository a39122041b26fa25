/** Values that are followed: a component or an effect that reads one runs again when it changes. */
import { Component } from "preact";
import { onStep } from "./hooks";

interface Reader {
  run: () => void;
  /** The sets of readers that it is in. */
  in: Set<Set<Reader>>;
}

let reading: Reader | null = null;
let held = 0;
const waiting = new Set<Reader>();

const leave = (reader: Reader): void => {
  for (const readers of reader.in) readers.delete(reader);
  reader.in.clear();
};

/** Runs something; what follows the values that it sets runs once, after it. */
export function batch(run: () => void): void {
  held += 1;
  try {
    run();
    // What an effect sets wakes others in turn.
    if (held === 1)
      for (const reader of waiting) {
        waiting.delete(reader);
        reader.run();
      }
  } finally {
    held -= 1;
  }
}

export class Signal<T> {
  #value: T;
  #readers = new Set<Reader>();

  constructor(value: T) {
    this.#value = value;
  }

  peek(): T {
    return this.#value;
  }

  get value(): T {
    if (reading) {
      this.#readers.add(reading);
      reading.in.add(this.#readers);
    }
    return this.#value;
  }

  set value(value: T) {
    if (value === this.#value) return;
    this.#value = value;
    batch(() => this.#readers.forEach((reader) => waiting.add(reader)));
  }
}

export const signal = <T>(value: T): Signal<T> => new Signal(value);

/** A value that is made of others each time that it is read. */
export const derived = <T>(make: () => T) => ({
  get value(): T {
    return make();
  },
  peek(): T {
    const before = reading;
    reading = null;
    try {
      return make();
    } finally {
      reading = before;
    }
  },
});

/** Runs something now, and again when a value that it has read changes. */
export function effect(run: () => void): void {
  const reader: Reader = {
    in: new Set(),
    run: () => {
      leave(reader);
      const before = reading;
      reading = reader;
      try {
        batch(run);
      } finally {
        reading = before;
      }
    },
  };
  reader.run();
}

const components = new WeakMap<Component, Reader>();

onStep("__r", (component) => {
  let reader = components.get(component!);
  if (!reader) components.set(component!, (reader = { run: () => component!.forceUpdate(), in: new Set() }));
  leave(reader);
  reading = reader;
});
for (const step of ["__b", "diffed"]) onStep(step, () => (reading = null));
onStep("unmount", (component) => component && components.has(component) && leave(components.get(component)!));

/** A component that follows values is rendered with its parent only where its properties are others. */
Component.prototype.shouldComponentUpdate = function (props: object) {
  if (!components.get(this)?.in.size) return true;
  const [old, next] = [this.props, props] as Record<string, unknown>[];
  return [old!, next!].some((all) => Object.keys(all).some((name) => old![name] !== next![name]));
};
