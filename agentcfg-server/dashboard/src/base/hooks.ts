/**
 * The hooks of `preact/hooks` that the dashboard uses, under the same names: the build takes this file in its place, which is a
 * third as large. The state of a hook is in its component, at the place of its call.
 */
import { options, type Component, type VNode } from "preact";

interface Slot {
  value?: unknown;
  inputs?: readonly unknown[] | undefined;
  set?: (next: unknown) => void;
  /** An effect that waits for the next paint, and the end of the last one. */
  waiting?: Effect | undefined;
  end?: void | (() => void);
}

type Effect = () => void | (() => void);

/** A component with the names that Preact has for its place in the page and for what runs after its rendering. */
interface Own extends Component {
  slots?: Slot[];
  __P: unknown;
  __h: (() => void)[];
}

let component: Own;
let place = 0;

/** Adds to a step of Preact's work, under the name that it has there. */
export function onStep(step: string, then: (component: Own | null) => void): void {
  const steps = options as Record<string, ((vnode: VNode) => void) | undefined>;
  const before = steps[step];
  steps[step] = (vnode) => {
    before?.(vnode);
    then((vnode as unknown as { __c: Own | null }).__c);
  };
}

const slotOf = (): Slot => ((component.slots ??= [])[place++] ??= {});

/** The slot of a hook whose inputs are others than before, or nothing. */
function changed(inputs: readonly unknown[] | undefined): [slot: Slot, isChanged: boolean] {
  const slot = slotOf();
  const before = slot.inputs;
  slot.inputs = inputs;
  return [slot, !before || !inputs || inputs.some((input, i) => !Object.is(input, before[i]))];
}

const begin = (slot: Slot, effect: Effect): void => {
  slot.waiting = undefined;
  slot.end?.();
  slot.end = effect();
};

const start = (slots: Iterable<Slot> = []): void => {
  for (const slot of slots) if (slot.waiting) begin(slot, slot.waiting);
};

onStep("__r", (own) => {
  component = own!;
  place = 0;
  start(own!.slots);
});
onStep("unmount", (own) => {
  for (const slot of own?.slots ?? []) {
    slot.waiting = undefined;
    slot.end?.();
  }
});

export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void] {
  const slot = slotOf();
  const own = component;
  if (!slot.set) {
    slot.value = typeof first === "function" ? (first as () => T)() : first;
    slot.set = (next) => {
      const value: unknown = typeof next === "function" ? (next as (before: unknown) => unknown)(slot.value) : next;
      if (Object.is(value, slot.value)) return;
      slot.value = value;
      own.forceUpdate();
    };
  }
  return [slot.value as T, slot.set];
}

export function useMemo<T>(make: () => T, inputs: readonly unknown[]): T {
  const [slot, isChanged] = changed(inputs);
  if (isChanged) slot.value = make();
  return slot.value as T;
}

export const useRef = <T>(current: T): { current: T } => useMemo(() => ({ current }), []);

let ids = 0;
export const useId = (): string => useMemo(() => `id${(ids += 1)}`, []);

export function useLayoutEffect(effect: Effect, inputs?: readonly unknown[]): void {
  const [slot, isChanged] = changed(inputs);
  if (isChanged) component.__h.push(() => begin(slot, effect));
}

const painted = new Set<Slot>();
let timer: ReturnType<typeof setTimeout> | undefined;

/** Frames do not come while the page is hidden. */
const LONGEST = 35;

function afterPaint(): void {
  const run = (): void => {
    clearTimeout(timer);
    cancelAnimationFrame(frame);
    setTimeout(() => {
      timer = undefined;
      const slots = [...painted];
      painted.clear();
      start(slots);
    });
  };
  const frame = requestAnimationFrame(run);
  timer = setTimeout(run, LONGEST);
}

export function useEffect(effect: Effect, inputs?: readonly unknown[]): void {
  const [slot, isChanged] = changed(inputs);
  if (!isChanged) return;
  component.__h.push(() => {
    slot.waiting = effect;
    painted.add(slot);
    if (timer === undefined) afterPaint();
  });
}
