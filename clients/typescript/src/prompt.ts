// Variables of a persona, by the rules of the server's POST /api/agents/prompt.
import { InputError } from "./errors.js";
import type { AgentConfig, Definition } from "./generated.js";
import type { Frozen } from "./release.js";

/** Values for the variables of a persona. */
export type Variables = Readonly<Record<string, string>>;

type Declared = NonNullable<Frozen<Definition>["variables"]>;

/** Just before or within the braces only spaces count, as on the server. */
const PLACE = /\{\{ *([A-Za-z0-9_]+) *\}\}/y;

/**
 * The persona with its variables filled in: each declared `{{name}}` once, by the given value, else the default, else nothing. An
 * agent that declares no variables keeps its persona byte for byte; without a persona, or with nothing left of it, there is none.
 *
 * @throws InputError for a value of a variable that is not declared, and for a required one without a value.
 * @internal
 */
export function renderPrompt(config: Frozen<AgentConfig>, variables: Variables = {}): string | null {
  const rendered = filledIn(config, variables);
  return rendered === "" ? null : rendered;
}

function filledIn(config: Frozen<AgentConfig>, variables: Variables): string {
  const declared: Declared = config.definition?.variables ?? {};
  const own = (name: string) => (Object.hasOwn(declared, name) ? declared[name] : undefined);
  const given = (name: string) => (Object.hasOwn(variables, name) ? variables[name] : undefined);
  const persona = config.persona_prompt ?? "";
  const faults: string[] = [];
  for (const [name, value] of Object.entries(variables)) {
    if (own(name) === undefined) faults.push(`variables.${name} is not a variable of the agent`);
    else if (typeof value !== "string") faults.push(`variables.${name} must be a text`);
  }
  if (persona !== "") {
    for (const [name, variable] of Object.entries(declared)) {
      const isMissing = variable.required === true && variable.default === undefined && given(name) === undefined;
      if (isMissing) faults.push(`variables.${name} is required`);
    }
  }
  if (faults.length > 0) throw new InputError(faults.join("; "));
  if (Object.keys(declared).length === 0) return persona;
  let rendered = "";
  let at = 0;
  for (;;) {
    const open = persona.indexOf("{{", at);
    if (open === -1) return rendered + persona.slice(at);
    rendered += persona.slice(at, open);
    PLACE.lastIndex = open;
    const place = PLACE.exec(persona);
    const name = place?.[1] ?? "";
    const variable = own(name);
    if (place === null || variable === undefined) {
      rendered += "{";
      at = open + 1;
    } else {
      rendered += given(name) ?? variable.default ?? "";
      at = open + place[0].length;
    }
  }
}
