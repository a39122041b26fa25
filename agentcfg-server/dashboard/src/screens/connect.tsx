/** Snippets that connect an app, a pipeline or an assistant. */
import { root } from "../base/api";
import { useAgents } from "../base/data";
import { route, setParams } from "../base/route";
import { workspace } from "../base/session";
import { Told } from "../parts/base";
import { Select } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { Snippet } from "../parts/secret";
import { CallSnippet } from "./call-snippet";
import { KeyHint } from "./keys";

export function Connect() {
  const agents = useAgents().data ?? [];
  const asked = route.value.params.get("agent");
  // The commands are pasted into shells, so the address chooses among the agents and adds nothing of its own.
  const agent = agents.find((agent) => agent.agent_id === asked) ?? agents[0];
  const picked = agent?.agent_id ?? "AGENT_ID";
  const id = workspace.value!.id;
  const at = (path: string): string => new URL(path, root).href;
  const header = '  -H "Authorization: Bearer $AGENTCFG_API_KEY"';
  return (
    <Page title="Connect" width="text">
      <Lead>
        <Told of="connect" />{" "}
        <a class="link" href={at("docs")}>
          API reference
        </a>
        .
      </Lead>
      <div class="stack wide-gap">
        <KeyHint />
        {agents.length === 0 && (
          <p class="prose">
            <Told of="no agent id" />
          </p>
        )}
        {agents.length > 1 && (
          <label class="row small-text dim">
            For the agent
            <Select tool value={picked} onPick={(agent) => setParams({ agent })}>
              {agents.slice(0, 500).map((agent) => (
                <option key={agent.agent_id} value={agent.agent_id}>
                  {agent.display_name}
                </option>
              ))}
            </Select>
          </label>
        )}
        <Snippet title="Read the agents" text={`curl '${at("api/agents/configs")}?workspace_id=${id}' \\\n${header}`} />
        <Snippet
          title="Report a status"
          text={`curl -X PUT '${at("api/agents/status")}?agent_id=${picked}' \\\n${header} \\\n  -H 'Content-Type: application/json' \\\n  -d '{"status":"working","current_task_id":"task-1","current_task_title":"Try it"}'`}
        />
        {agent?.agent_type !== "human" && <CallSnippet agent={agent} />}
        <Snippet
          title="Follow changes"
          text={`curl -N '${at("api/changes")}?workspace_id=${id}&after=now&status=true' \\\n${header} \\\n  -H 'Accept: text/event-stream'`}
        />
        <Snippet
          title="MCP client (Claude Code)"
          text={`claude mcp add --transport http agentcfg '${at("mcp")}' \\\n  --header "Authorization: Bearer $AGENTCFG_API_KEY"`}
        />
      </div>
    </Page>
  );
}
