/** Choices that the browser keeps. One that refuses to keep anything has them while the page is open. */
import { listening } from "./listening";
import { effect, signal, type Signal } from "./signals";

/** What was chosen the last time, "" where nothing was; it is kept as it changes. */
export function remembered(name: string): Signal<string> {
  const place = `agentcfg ${name}`;
  const store = (run: () => string | null | void): string => {
    try {
      return run() ?? "";
    } catch {
      return "";
    }
  };
  const chosen = signal(store(() => localStorage.getItem(place)));
  effect(() => {
    const now = chosen.value;
    store(() => (now ? localStorage.setItem(place, now) : localStorage.removeItem(place)));
  });
  // Another tab has kept something else.
  listening("storage", ({ key, newValue }) => key === place && (chosen.value = newValue ?? ""));
  return chosen;
}
