/** The code of a model call as an agent, in four languages. */
import { root } from "../base/api";
import { useLabels, useModels } from "../base/data";
import { route, setParams } from "../base/route";
import type { Agent } from "../base/types";
import { Segments } from "../parts/fields";
import { Snippet } from "../parts/secret";

const LANGUAGES = { curl: "curl", python: "Python", typescript: "TypeScript", rust: "Rust" };
type Language = keyof typeof LANGUAGES;

const code = (base: string, openai: boolean, model: string): Record<Language, string> => {
  const url = `${base}/v1/${openai ? "chat/completions" : "messages"}`;
  const sdk = openai ? "OpenAI" : "Anthropic";
  return {
    curl: `curl '${url}' \\\n  -H "x-api-key: $API_KEY" \\\n  -H 'Content-Type: application/json' \\\n  -d '{"max_tokens": 400, "messages": [{"role": "user", "content": "Hello"}]}'`,
    python: `import os\nfrom ${sdk.toLowerCase()} import ${sdk}\n\nclient = ${sdk}(base_url="${base}${openai ? "/v1" : ""}", api_key=os.environ["API_KEY"])\nanswer = client.${openai ? "chat.completions" : "messages"}.create(\n    model="${model}",\n    max_tokens=400,\n    messages=[{"role": "user", "content": "Hello"}],\n)`,
    typescript: `const answer = await fetch("${url}", {\n  method: "POST",\n  headers: { "x-api-key": process.env.API_KEY!, "Content-Type": "application/json" },\n  body: JSON.stringify({ max_tokens: 400, messages: [{ role: "user", content: "Hello" }] }),\n});`,
    rust: `let answer = reqwest::Client::new()\n    .post("${url}")\n    .header("x-api-key", std::env::var("API_KEY")?)\n    .json(&serde_json::json!({\n        "max_tokens": 400,\n        "messages": [{"role": "user", "content": "Hello"}],\n    }))\n    .send()\n    .await?;`,
  };
};

/** A call goes to the label production where the agent has it. The address keeps the language. */
export function CallSnippet({ agent }: { agent: Agent | undefined }) {
  const models = useModels().data;
  const label = useLabels().data?.some(({ agent_id, label }) => agent_id === agent?.agent_id && label === "production");
  const asked = route.value.params.get("language") as Language;
  const language = Object.hasOwn(LANGUAGES, asked) ? asked : "curl";
  const provider = models?.find(({ id }) => id === agent?.model)?.provider ?? "anthropic";
  const path = `${provider}/@${agent?.agent_id ?? "AGENT_ID"}${label ? ":production" : ""}`;
  const base = new URL(`api/agents/model-calls/${path}`, root).href;
  return (
    <>
      <div>
        <Segments<Language>
          label="Language"
          value={language}
          onPick={(language) => setParams({ language })}
          choices={Object.entries(LANGUAGES) as [Language, string][]}
        />
      </div>
      <Snippet
        title={`Call a model as the agent, with ${LANGUAGES[language]}`}
        text={code(base, provider !== "anthropic", agent?.model ?? "MODEL")[language]}
      />
    </>
  );
}
