/** In place of the usage, before there was any call: how to make one. */
import type { ComponentChildren } from "preact";
import { isolated } from "../../base/text";
import { useAgents } from "../../base/data";
import { href } from "../../base/route";
import { can } from "../../base/session";
import type { UsageRow } from "../../base/usage";
import { LinkButton, Told } from "../../parts/base";
import { CallSnippet } from "../call-snippet";
import { figures, Strip } from "./stats";

export function FirstCall({ total, aside }: { total: UsageRow; aside: ComponentChildren }) {
  const agents = useAgents().data?.filter(({ agent_type }) => agent_type === "ai");
  const agent = agents?.find(({ model }) => model?.startsWith("claude")) ?? agents?.[0];
  return (
    <>
      <section class="card usage-card" aria-label="Usage">
        <Strip of={figures(total).map((stat) => ({ ...stat, note: null }))} />
        <div class="usage-none">
          <div class="ghost" aria-hidden="true" />
          <div class="empty">
            <h2>No model call yet</h2>
            <p>
              <Told of="first call" />
            </p>
            <div class="row wrap">
              {agent && can("models:invoke") && (
                <LinkButton kind="primary" icon="play" to={href("agent", { id: agent.agent_id, tab: "try" })}>
                  Try {isolated(agent.display_name)}
                </LinkButton>
              )}
              <LinkButton icon="connect" to={href("connect", { agent: agent?.agent_id })}>
                Connect an application
              </LinkButton>
            </div>
          </div>
        </div>
      </section>
      <div class="usage-split">
        <section class="card">
          <header>
            <h2>Your first call</h2>
          </header>
          <div class="card-body stack">
            <CallSnippet agent={agent} />
          </div>
        </section>
        {aside}
      </div>
    </>
  );
}
