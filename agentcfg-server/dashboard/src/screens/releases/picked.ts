/** The agents of a review: in its address, or in memory where they are too many for one. */
import { signal } from "../../base/signals";
import { href, route } from "../../base/route";

const IN_ADDRESS = 50;
const many = signal<string[] | null>(null);

export function reviewAddress(from: string, to: string, agents: string[]): string {
  many.value = agents.length > IN_ADDRESS ? agents : null;
  return href("releases", { tab: "review", from, to, agents: many.value ? "ticked" : agents.join() });
}

/** The agents of the review that is open: all where the address names none, null where they are not known any more. */
export function agentsOfReview(): string[] | "all" | null {
  const named = route.value.params.get("agents");
  return !named ? "all" : named === "ticked" ? many.value : named.split(",");
}
