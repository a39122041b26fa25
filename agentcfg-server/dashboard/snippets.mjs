// The code of model calls that the dashboard shows: what docs/model-calls.md has for each tool. The dashboard puts the
// address of the agent in the place of {url}, which ends before the /v1, and the name of its model in that of {model}.

const LANGUAGES = { sh: "", python: ", Python", ts: ", TypeScript" };
/** The agents of the page: the API that each calls, and its model. */
const AGENTS = { "@writer:production": ["openai", "gpt-5.5"], "@poet:production": ["anthropic", "claude-sonnet-5-5"] };
const ADDRESS = /https:\/\/agents\.example\.com\/api\/agents\/model-calls\/(\w+)\/(@\w+:production)/g;

/** How a tool sends the variables of an agent: what is added behind its key, by what its snippet has. A tool without cannot. */
const KEY =
  /"x-api-key: \$AGENTCFG_API_KEY"|os\.environ\["AGENTCFG_API_KEY"\]|process\.env\.AGENTCFG_API_KEY,|=\$AGENTCFG_API_KEY/;
const HEADERS = [
  [/^curl /, ` -H 'Agent-Variables: {variables}'`],
  [/^import litellm/m, `, extra_headers={"Agent-Variables": '{variables}'}`],
  [/^import os/, `, default_headers={"Agent-Variables": '{variables}'}`],
  [/createOpenAI/, `\n  headers: { "Agent-Variables": '{variables}' },`],
  [/^import /, `\n  defaultHeaders: { "Agent-Variables": '{variables}' },`],
  [/^export ANTHROPIC/, `\nexport ANTHROPIC_CUSTOM_HEADERS='Agent-Variables: {variables}'`],
];

/** A snippet with what sends the variables between « and ». */
function withVariables(text) {
  const header = HEADERS.find(([has]) => has.test(text))?.[1];
  if (header && !KEY.test(text)) throw new Error(`docs/model-calls.md: no place for the variables: ${text}`);
  return header ? text.replace(KEY, (key) => `${key}«${header}»`) : text;
}

/** Gives {id, name, api, text} of each. The id is the same for both APIs: an SDK stays chosen where the agent changes. */
export function snippets(page) {
  const found = [];
  const [, ...chapters] = page.split(/^## /m);
  for (const chapter of chapters) {
    const title = chapter.slice(0, chapter.indexOf("\n"));
    const add = (language, shown) => {
      const addresses = [...shown.matchAll(ADDRESS)];
      const [, api, agent] = addresses[0] ?? [];
      const [agentApi, model] = AGENTS[agent] ?? [];
      if (addresses.length !== 1 || api !== agentApi || language === undefined)
        throw new Error(`docs/model-calls.md: ${title}: a snippet of another form than snippets.mjs knows`);
      const name = title + language;
      const id = name
        .toLowerCase()
        .replace(`${api} `, "")
        .replace(/[^a-z]+/g, "-");
      const text = withVariables(shown.replace(ADDRESS, "{url}").replaceAll(model, "{model}").trimEnd());
      found.push({ id, name, api, text });
    };
    for (const [, language, code] of chapter.matchAll(/^```(\w+)\n(.*?)^```$/gms)) add(LANGUAGES[language], code);
    // What is typed into the settings of a tool is a list.
    const steps = [...chapter.matchAll(/^\d\. (.*)$/gm)].map(([, step]) => step.replace(/[*`]/g, ""));
    if (steps.length) add("", steps.join("\n"));
  }
  const keys = found.map(({ id, api }) => `${id} ${api}`);
  if (new Set(keys).size !== keys.length) throw new Error("docs/model-calls.md: two snippets of one name");
  return found;
}
