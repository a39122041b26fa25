/** Snippets that connect an app, a pipeline or an assistant. */
import { root } from "../base/api";
import { useAgents } from "../base/data";
import { route, setParams } from "../base/route";
import { workspace } from "../base/session";
import { Select } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { Snippet } from "../parts/secret";
import { KeyHint } from "./keys";

export function Connect() {
  const agents = useAgents().data ?? [];
  const picked = route.value.params.get("agent") ?? agents[0]?.agent_id ?? "writer";
  const id = workspace.value!.id;
  const at = (path: string): string => new URL(path, root).href;
  const header = '  -H "Authorization: Bearer $API_KEY"';
  return (
    <Page title="Connect" width="text">
      <Lead>
        Commands and settings for this server and this workspace. Put a key of the page API keys into <code>API_KEY</code>. All
        else is in the{" "}
        <a class="link" href={at("docs")}>
          API reference
        </a>
        .
      </Lead>
      <div class="stack wide-gap">
        <KeyHint />
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
        <Snippet
          title="Call a model with the agent's persona"
          text={`curl '${at(`api/agents/model-calls/anthropic/v1/messages`)}?agent_id=${picked}' \\\n${header} \\\n  -H 'Content-Type: application/json' \\\n  -d '{"max_tokens":256,"messages":[{"role":"user","content":"Hello"}]}'`}
        />
        <Snippet
          title="OpenAI SDK (Python)"
          text={`from openai import OpenAI\n\nclient = OpenAI(\n    base_url="${at("api/agents/model-calls/openai/v1")}",\n    api_key=os.environ["API_KEY"],\n    default_query={"agent_id": "${picked}"},\n)`}
        />
        <Snippet
          title="MCP client (Claude Code)"
          text={`claude mcp add --transport http agentcfg '${at("mcp")}' \\\n  --header "Authorization: Bearer $API_KEY"`}
        />
        <Snippet title="OpenAPI description" text={`curl '${at("openapi.json")}'`} />
      </div>
    </Page>
  );
}
