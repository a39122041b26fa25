/** The agents that were visited last, in this page. */
import { signal } from "./signals";

const MOST = 5;
export const recent = signal<readonly string[]>([]);

export function visited(id: string): void {
  if (recent.peek()[0] !== id) recent.value = [id, ...recent.peek().filter((one) => one !== id)].slice(0, MOST);
}
