/** Looks for a text in the prompts of agents, in slices, so that typing stays quick. */
import type { Agent } from "./types";

export interface Hit {
  agent: Agent;
  line: number;
  text: string;
}

const SLICE = 8;

/** Reports the first hits, one for each agent, until the signal ends it. */
export async function findPrompts(agents: readonly Agent[], query: string, most: number, stop: AbortSignal): Promise<Hit[]> {
  const found: Hit[] = [];
  const wanted = query.toLowerCase();
  let begun = performance.now();
  for (const agent of agents) {
    if (performance.now() - begun > SLICE) {
      await new Promise((resolve) => setTimeout(resolve));
      if (stop.aborted) return found;
      begun = performance.now();
    }
    const prompt = agent.persona_prompt;
    const at = prompt?.toLowerCase().indexOf(wanted) ?? -1;
    if (at < 0) continue;
    const before = prompt!.slice(0, at).split("\n");
    const line = before.length;
    found.push({ agent, line, text: prompt!.split("\n")[line - 1]! });
    if (found.length === most) break;
  }
  return found;
}
