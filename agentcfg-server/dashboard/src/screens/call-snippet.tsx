/** The code of a model call as an agent, for each tool that docs/model-calls.md has one for. */
import { root } from "../base/api";
import { useLabels, useModels } from "../base/data";
import { mustBeGiven, settingsOf } from "../base/definition";
import { route, setParams } from "../base/route";
import { useTexts } from "../base/texts";
import type { Agent } from "../base/types";
import { options } from "../parts/base";
import { Reading } from "../parts/feedback";
import { Select } from "../parts/fields";
import { Snippet } from "../parts/secret";

/** A call goes to the label production where the agent has it. The address keeps the tool. */
export function CallSnippet({ agent }: { agent: Agent | undefined }) {
  const models = useModels().data;
  const label = useLabels().data?.some(({ agent_id, label }) => agent_id === agent?.agent_id && label === "production");
  const read = useTexts();
  const { provider = "openai", provider_api = provider } = models?.find(({ id }) => id === agent?.model) ?? {};
  const wanted = Object.entries((agent && settingsOf(agent).variables) ?? {}).filter(([, variable]) => mustBeGiven(variable));
  const all = read.data?.code.filter(({ api }) => (api === "anthropic") === (provider_api === "anthropic"));
  if (!all) return <Reading of={read} what="The code of a model call" rows={4} tall />;
  const { id, name, text } = all.find(({ id }) => id === route.value.params.get("client")) ?? all[0]!;
  // A model is any text, and the code may be pasted into a shell.
  const model = agent?.model?.match(/^[\w.:/@-]+$/)?.[0] ?? "MODEL";
  const path = `api/agents/model-calls/${provider}/@${agent?.agent_id ?? "AGENT_ID"}${label ? ":production" : ""}`;
  return (
    <>
      <label class="row small-text dim">
        Tool
        <Select tool value={id} onPick={(client) => setParams({ client })}>
          {options(all.map(({ id, name }) => [id, name]))}
        </Select>
      </label>
      <Snippet
        title={`Call a model as the agent, with ${name}`}
        text={text
          // What sends the variables stands between these marks.
          .replace(/«(.*)»/s, wanted.length ? "$1" : "")
          .replace("{variables}", JSON.stringify(Object.fromEntries(wanted.map(([name]) => [name, "..."]))))
          .replace("{url}", new URL(path, root).href)
          .replace("{model}", model)}
      />
    </>
  );
}
