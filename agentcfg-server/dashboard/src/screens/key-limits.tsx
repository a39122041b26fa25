/** What limits an API key below its scope: permissions, agents, and a label. */
import { Told } from "../parts/base";
import { useId } from "preact/hooks";
import { useAgents, useLabels } from "../base/data";
import { can } from "../base/session";
import { list, plural } from "../base/text";
import type { ApiKey } from "../base/types";
import { Check, Fault, Field, Input } from "../parts/fields";
import { labelFault } from "./labels";

const READ = ["agents:read", "analytics:read", "projects:read", "tasks:read"];
const WRITE = [
  ...READ,
  "agents:configure",
  "models:invoke",
  "projects:create",
  "projects:update",
  "tasks:create",
  "tasks:update",
];
const ADMIN = [
  ...WRITE,
  "agents:release",
  "api_keys:read",
  "audit_log:read",
  "budgets:manage",
  "projects:delete",
  "settings:read",
  "tasks:delete",
  "users:read",
  "webhooks:manage",
  "webhooks:read",
];
const GRANTS: Record<ApiKey["scope"], string[]> = { read: READ, write: WRITE, admin: ADMIN };
/** What a scope grants; of what this server does not know yet no session has the permission. */
const granted = (scope: ApiKey["scope"]): string[] =>
  GRANTS[scope].filter((name) => name !== "budgets:manage" || can(name)).sort();

export interface Limits {
  /** The permissions that are taken away. */
  without: ReadonlySet<string>;
  agents: string;
  label: string;
}

export const NO_LIMITS: Limits = { without: new Set(), agents: "", label: "" };
const MOST = 100;
const idsOf = (text: string): string[] => [...new Set(text.split(/[\s,]+/).filter(Boolean))];

export function limitFaults({ without, agents, label }: Limits, scope: ApiKey["scope"]) {
  return {
    permissions: granted(scope).every((name) => without.has(name)) ? "A key needs one permission at least." : null,
    agents: idsOf(agents).length > MOST ? `At most ${MOST} agents.` : null,
    label: label && label !== "latest" ? labelFault(label) : null,
  };
}

/** The limits as the API takes them. */
export function limitsBody({ without, agents, label }: Limits, scope: ApiKey["scope"]) {
  const all = granted(scope);
  const kept = all.filter((name) => !without.has(name));
  const ids = idsOf(agents);
  return {
    ...(kept.length < all.length ? { permissions: kept } : {}),
    ...(ids.length ? { agents: ids } : {}),
    ...(label ? { label } : {}),
  };
}

/** "2 permissions, Writer, label production": nothing of a key without limits. */
export const limitParts = ({ permissions, agents, label }: Pick<ApiKey, "permissions" | "agents" | "label">): string[] => [
  ...(permissions ? [permissions.length === 1 ? permissions[0]! : plural(permissions.length, "permission")] : []),
  ...(agents ? [agents.length === 1 ? agents[0]! : plural(agents.length, "agent")] : []),
  ...(label ? [`label ${label}`] : []),
];

/** All of it, for the title. */
export const limitTitle = ({ permissions, agents, label }: Pick<ApiKey, "permissions" | "agents" | "label">): string =>
  [permissions && `May: ${list(permissions)}`, agents && `Agents: ${list(agents)}`, label && `Label: ${label}`]
    .filter(Boolean)
    .join(". ");

export function LimitFields({
  limits,
  onChange,
  scope,
  tried,
}: {
  limits: Limits;
  onChange: (limits: Limits) => void;
  scope: ApiKey["scope"];
  tried: boolean;
}) {
  const known = useAgents().data ?? [];
  const labels = [...new Set(useLabels().data?.map(({ label }) => label))];
  const id = useId();
  const faults = limitFaults(limits, scope);
  const missing = idsOf(limits.agents).filter((one) => !known.some(({ agent_id }) => agent_id === one));
  return (
    <>
      <fieldset class="field" aria-describedby={`${id}p`}>
        <legend class="as-label">Permissions</legend>
        <div class="permissions">
          {granted(scope).map((name) => (
            <Check
              key={name}
              checked={!limits.without.has(name)}
              onCheck={(on) => {
                const without = new Set(limits.without);
                if (on) without.delete(name);
                else without.add(name);
                onChange({ ...limits, without });
              }}
            >
              <code>{name}</code>
            </Check>
          ))}
        </div>
        {tried && faults.permissions && <Fault>{faults.permissions}</Fault>}
        <p class="hint" id={`${id}p`}>
          <Told of="limited key" />
        </p>
      </fieldset>
      <Field
        label="Agents"
        error={tried ? faults.agents : null}
        hint={
          missing.length ? (
            `${list(missing.slice(0, 3))} ${missing.length === 1 ? "does" : "do"} not exist yet.`
          ) : (
            <Told of="limited agents" />
          )
        }
      >
        {(field) => (
          <>
            <Input
              {...field}
              mono
              value={limits.agents}
              onText={(agents) => onChange({ ...limits, agents })}
              list={`${id}a`}
              autocomplete="off"
              spellcheck={false}
            />
            <datalist id={`${id}a`}>
              {known.slice(0, 500).map(({ agent_id }) => (
                <option key={agent_id} value={agent_id} />
              ))}
            </datalist>
          </>
        )}
      </Field>
      <Field label="Label" error={tried ? faults.label : null} hint={<Told of="limited label" />}>
        {(field) => (
          <>
            <Input
              {...field}
              value={limits.label}
              onText={(label) => onChange({ ...limits, label })}
              list={`${id}l`}
              placeholder="production"
              autocomplete="off"
              spellcheck={false}
            />
            <datalist id={`${id}l`}>
              {labels.map((label) => (
                <option key={label} value={label} />
              ))}
            </datalist>
          </>
        )}
      </Field>
    </>
  );
}
