/** What is left to set up: each step is read from the server, never remembered. */
import { useAgents, useKeys, useLabels, useMembers, useProviderKeys, useStatuses } from "../../base/data";
import { href } from "../../base/route";
import { can, workspace } from "../../base/session";
import { useCalls } from "../../base/usage-data";
import { cx, Icon, LinkButton } from "../../parts/base";

interface Step {
  label: string;
  done: boolean;
  action: { label: string; to: string } | null;
}

export function useSetup(): Step[] {
  const agents = useAgents().data;
  const statuses = useStatuses().data;
  const keys = useKeys().data;
  const providers = useProviderKeys().data;
  const members = useMembers().data;
  const labels = useLabels().data;
  const calls = useCalls({ limit: 1 }).data;
  const first = agents?.find(({ agent_type }) => agent_type === "ai");
  const steps: Step[] = [];
  const add = (label: string, done: boolean, needs: string, action: { label: string; to: string }): void => {
    if (done || can(needs)) steps.push({ label, done, action: done ? null : action });
  };
  if (agents) add("Create an agent", agents.length > 0, "agents:configure", { label: "Create", to: href("new-agent") });
  if (providers && workspace.value!.plan !== "free")
    add("Add a provider key", providers.length > 0, "provider_keys:manage", { label: "Add", to: href("ai-providers") });
  if (calls)
    add("Make the first call", calls.length > 0, "models:invoke", {
      label: "Try it",
      to: first ? href("agent", { id: first.agent_id, tab: "try" }) : href("usage"),
    });
  if (labels) add("Release a version", labels.length > 0, "agents:release", { label: "Release", to: href("releases") });
  if (keys)
    add("Create an API key", keys.length > 0, "api_keys:manage", { label: "Create", to: href("api-keys", { new: "write" }) });
  if (statuses)
    add(
      "Report a status",
      statuses.some((entry) => entry.status !== "offline" || !!entry.reported_at),
      "agents:read",
      {
        label: "How",
        to: href("connect"),
      },
    );
  if (members) add("Add a teammate", members.length > 1, "members:manage", { label: "Add", to: href("members", { new: 1 }) });
  return steps;
}

export function Setup({ steps }: { steps: Step[] }) {
  const done = steps.filter((step) => step.done).length;
  if (!steps.length || done === steps.length) return null;
  return (
    <section class="card">
      <header>
        <h2>Set up</h2>
        <span class="dim small-text">
          {done} of {steps.length} done
        </span>
      </header>
      <ul class="list tight">
        {steps.map((step) => (
          <li key={step.label} class={cx("step", step.done && "done")}>
            <Icon name={step.done ? "done" : "todo"} />
            <span class="grow">
              {step.label}
              <span class="hidden">{step.done ? ", done" : ", to do"}</span>
            </span>
            {step.action && (
              <LinkButton small to={step.action.to} aria-label={`${step.action.label}: ${step.label}`}>
                {step.action.label}
              </LinkButton>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
