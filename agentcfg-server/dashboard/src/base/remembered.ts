/** Choices that the browser keeps. One that refuses to keep anything has them while the page is open. */
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
  return chosen;
}
