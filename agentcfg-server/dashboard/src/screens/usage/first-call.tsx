/** In place of the usage, before there was any call: how to make one. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { root } from "../../base/api";
import { useAgents, useLabels } from "../../base/data";
import { href } from "../../base/route";
import { can } from "../../base/session";
import type { UsageRow } from "../../base/usage";
import { LinkButton } from "../../parts/base";
import { Segments } from "../../parts/fields";
import { Snippet } from "../../parts/secret";
import { figures, Strip } from "./stats";

type Language = "curl" | "python" | "typescript" | "rust";
const LANGUAGES: [Language, string][] = [
  ["curl", "curl"],
  ["python", "Python"],
  ["typescript", "TypeScript"],
  ["rust", "Rust"],
];

const code = (language: Language, base: string, model: string): string =>
  ({
    curl: `curl ${base}/v1/messages \\\n  -H "x-api-key: $API_KEY" \\\n  -H 'content-type: application/json' \\\n  -d '{"max_tokens": 400, "messages": [{"role": "user", "content": "Hello"}]}'`,
    python: `import os\nfrom anthropic import Anthropic\n\nclient = Anthropic(base_url="${base}", api_key=os.environ["API_KEY"])\nanswer = client.messages.create(\n    model="${model}",\n    max_tokens=400,\n    messages=[{"role": "user", "content": "Hello"}],\n)`,
    typescript: `const answer = await fetch("${base}/v1/messages", {\n  method: "POST",\n  headers: { "x-api-key": process.env.API_KEY!, "content-type": "application/json" },\n  body: JSON.stringify({ max_tokens: 400, messages: [{ role: "user", content: "Hello" }] }),\n});`,
    rust: `let answer = reqwest::Client::new()\n    .post("${base}/v1/messages")\n    .header("x-api-key", std::env::var("API_KEY")?)\n    .json(&serde_json::json!({\n        "max_tokens": 400,\n        "messages": [{"role": "user", "content": "Hello"}],\n    }))\n    .send()\n    .await?;`,
  })[language];

export function FirstCall({ total, aside }: { total: UsageRow; aside: ComponentChildren }) {
  const [language, setLanguage] = useState<Language>("curl");
  const agents = useAgents().data?.filter(({ agent_type }) => agent_type === "ai");
  const labels = useLabels().data;
  const agent = agents?.find(({ model }) => model?.startsWith("claude")) ?? agents?.[0];
  const label = labels?.find(({ agent_id, label }) => agent_id === agent?.agent_id && label === "production") && ":production";
  const base = new URL(`api/agents/model-calls/anthropic/@${agent?.agent_id ?? "AGENT_ID"}${label ?? ""}`, root).href;
  return (
    <>
      <section class="card usage-card" aria-label="Usage">
        <Strip of={figures(total).map((stat) => ({ ...stat, note: null }))} />
        <div class="usage-none">
          <div class="ghost" aria-hidden="true" />
          <div class="empty">
            <h2>No model call yet</h2>
            <p>
              Send one through this server and its cost, tokens and time stand here within a second. Prompts and answers are not
              kept.
            </p>
            <div class="row wrap">
              {agent && can("models:invoke") && (
                <LinkButton kind="primary" icon="play" to={href("agent", { id: agent.agent_id, tab: "try" })}>
                  Try {agent.display_name}
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
            <div>
              <Segments<Language>
                label="Language"
                value={language}
                onPick={setLanguage}
                choices={LANGUAGES.map(([value, label]) => ({ value, label }))}
              />
            </div>
            <Snippet
              title={`With ${LANGUAGES.find(([value]) => value === language)![1]}`}
              text={code(language, base, agent?.model ?? "MODEL")}
            />
          </div>
        </section>
        {aside}
      </div>
    </>
  );
}
