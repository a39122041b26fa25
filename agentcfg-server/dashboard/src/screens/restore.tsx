/** Bringing deleted agents back, as far as the plan has places. */
import { call } from "../base/api";
import { fullPlan } from "../base/attention";
import { agentQuery, agentsChanged } from "../base/data";
import { workspace } from "../base/session";
import { isolated, number } from "../base/text";
import type { Agent } from "../base/types";
import { Confirm } from "../parts/dialog";
import { toast } from "../parts/feedback";

/** What the plan says about one more active agent. */
export function placesLeft(): { full: boolean; text: string } {
  const { active_agents: active, agent_limit: limit } = workspace.value!;
  const full = fullPlan(workspace.value!);
  if (full) return { full: true, text: `${full.name}${full.after}. ${full.why}` };
  return { full: false, text: active !== undefined && limit ? `${number(active + 1)} of ${number(limit)}` : "" };
}

export async function restore(agent: Agent): Promise<void> {
  await call("POST", "api/agents/configs/restore", { query: agentQuery(agent) });
  toast(`${isolated(agent.display_name)} is restored.`);
  agentsChanged();
}

export function Restore({ agent, onClose }: { agent: Agent; onClose: () => void }) {
  const places = placesLeft();
  return (
    <Confirm
      title={`Restore ${isolated(agent.display_name)}?`}
      verb="Restore agent"
      blocked={places.full}
      danger={false}
      run={() => restore(agent)}
      onClose={onClose}
    >
      {places.full ? (
        places.text
      ) : (
        <>
          It comes back as it was, with its history and labels, and counts as an active agent again
          {places.text && `: ${places.text}`}.
        </>
      )}
    </Confirm>
  );
}
