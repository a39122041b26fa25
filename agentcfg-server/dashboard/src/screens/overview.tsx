/** The overview: use of the plan, what is going on, what is left to set up, the last changes. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Resource } from "../base/cache";
import {
  PROVIDERS,
  useAgents,
  useAudit,
  useKeys,
  useMembers,
  useNames,
  useProviderKeys,
  useStatuses,
  useWebhooks,
} from "../base/data";
import { href } from "../base/route";
import { changeLine, targetName, verb } from "../base/audit-words";
import { can, workspace } from "../base/session";
import { capital, DAY, now, number, plural, until } from "../base/text";
import type { ApiKey, AuditEntry } from "../base/types";
import { ActorMark, Avatar, Badge, Button, cx, Empty, Icon, LinkButton, Meter, Skeleton, StatusPill, Time } from "../parts/base";
import { Reading } from "../parts/feedback";
import { Page } from "../parts/page";
import { FirstAgent, NewAgentLink } from "./agents";
import { isLive, isReplaced, Rotate, VERY_SOON } from "./keys";

export const SOON = 30 * DAY;
const LAST = 8;

/** Names of targets that have an id only: keys, members, webhooks and providers have readable ones. */
export function useTargets(): ReadonlyMap<string, string> {
  const agents = useAgents().data ?? [];
  const keys = useKeys().data ?? [];
  const hooks = useWebhooks().data ?? [];
  const { id, name } = workspace.value!;
  return new Map([
    ...agents.map((agent) => [`agent ${agent.agent_id}`, agent.display_name] as const),
    ...keys.map((key) => [`api_key ${key.id}`, key.name] as const),
    ...Object.entries(PROVIDERS).map(([provider, called]) => [`provider_key ${provider}`, called] as const),
    ...hooks.map((hook) => [`webhook ${hook.id}`, hook.url] as const),
    [`workspace ${id}`, name] as const,
  ]);
}

export function Overview() {
  const keys = useKeys().data?.filter((key) => isLive(key, now.value));
  const soon = keys
    ?.filter((key) => key.expires_at !== null && Date.parse(key.expires_at) - now.value < SOON && !isReplaced(key, keys))
    .sort((a, b) => a.expires_at!.localeCompare(b.expires_at!));
  return (
    <Page title="Overview" actions={<NewAgentLink kind="primary" />}>
      <div class="tiles">
        <AgentsTile />
        <StatusTile />
        {can("api_keys:read") && <KeysTile keys={keys} soon={soon ?? []} />}
      </div>
      {can("audit_log:read") ? (
        <div class="overview">
          <LastChanges />
          <div class="stack">
            <Setup />
            {soon && soon.length > 0 && <Expiring keys={soon} />}
          </div>
        </div>
      ) : (
        <div class="overview">
          <LastAgents />
          <Setup />
        </div>
      )}
    </Page>
  );
}

/** A number, once it is known. */
function Tile({
  title,
  screen,
  of,
  children,
}: {
  title: string;
  screen: string;
  of: Resource<unknown>;
  children: ComponentChildren;
}) {
  return (
    <section class="tile card">
      <h2>
        <a href={href(screen)}>{title}</a>
      </h2>
      {children || (of.error === null ? <Skeleton rows={2} tall /> : <span class="hint">Could not be read.</span>)}
    </section>
  );
}

function AgentsTile() {
  const { active_agents: counted, agent_limit: limit, plan } = workspace.value!;
  const agents = useAgents();
  const active = agents.data?.length ?? counted;
  return (
    <Tile title="Agents" screen="agents" of={agents}>
      {active !== undefined && (
        <>
          <p class="big">
            {number(active)}{" "}
            <small>{limit ? `of ${number(limit)} on ${capital(plan)}` : `on ${capital(plan)}, without a limit`}</small>
          </p>
          {limit ? (
            <Meter total={limit} parts={[{ value: active, class: "used" }]} />
          ) : (
            can("agents:configure") && <span class="hint">Create as many as you need.</span>
          )}
        </>
      )}
    </Tile>
  );
}

function StatusTile() {
  const statuses = useStatuses();
  const all = statuses.data;
  const of = (status: string): number => all!.filter((entry) => entry.status === status).length;
  return (
    <Tile title="Right now" screen="status" of={statuses}>
      {all && (
        <>
          <p class="big">
            {number(of("working"))}{" "}
            <small>
              working, {number(of("idle"))} idle, {number(of("offline"))} offline
            </small>
          </p>
          <Meter
            total={all.length}
            parts={[
              { value: of("working"), class: "at-work" },
              { value: of("idle"), class: "at-rest" },
            ]}
          />
        </>
      )}
    </Tile>
  );
}

function KeysTile({ keys, soon }: { keys: ApiKey[] | undefined; soon: ApiKey[] }) {
  const first = soon[0];
  const very = soon.filter((key) => Date.parse(key.expires_at!) - now.value < VERY_SOON);
  return (
    <Tile title="API keys" screen="api-keys" of={useKeys()}>
      {keys && (
        <>
          <p class="big">
            {number(keys.length)} <small>active</small>
          </p>
          {very.length > 0 && first ? (
            <Badge tone="warn" icon="clock">
              {very.length} {very.length === 1 ? "expires" : "expire"} within{" "}
              {until(Math.max(DAY, Date.parse(very.at(-1)!.expires_at!) - now.value))}
            </Badge>
          ) : (
            <span class="hint">
              {soon.length ? `${soon.length} ${soon.length === 1 ? "expires" : "expire"} within 30 days` : "None expires soon"}
            </span>
          )}
        </>
      )}
    </Tile>
  );
}

/** The last few of what a resource holds. */
function Last<T>({
  title,
  what,
  link,
  to,
  of,
  items,
  none,
  line,
}: {
  title: string;
  what: string;
  link: string;
  to: string;
  of: Resource<T[]>;
  items: T[];
  none: ComponentChildren;
  line: (item: T) => ComponentChildren;
}) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        <a class="link" href={href(to)}>
          {link}
        </a>
      </header>
      {of.error !== null ? (
        <div class="card-body">
          <Reading of={of} what={what} />
        </div>
      ) : !of.data ? (
        <Skeleton rows={LAST} />
      ) : items.length === 0 ? (
        none
      ) : (
        <ul class="list">{items.map(line)}</ul>
      )}
    </section>
  );
}

function LastChanges() {
  const audit = useAudit(LAST);
  return (
    <Last
      title="Last changes"
      what="The last changes"
      link="Audit log"
      to="audit-log"
      of={audit}
      items={audit.data ?? []}
      none={<Empty icon="audit" title="No changes yet" />}
      line={(entry) => <Line key={entry.id} entry={entry} />}
    />
  );
}

/** In place of the changes, where the role may not read the audit log. */
function LastAgents() {
  const agents = useAgents();
  const status = new Map(useStatuses().data?.map((entry) => [entry.agent_id, entry]));
  return (
    <Last
      title="Agents that changed last"
      what="The agents"
      link="All agents"
      to="agents"
      of={agents}
      items={[...(agents.data ?? [])].sort((a, b) => b.updated_at.localeCompare(a.updated_at)).slice(0, LAST)}
      none={<FirstAgent />}
      line={(agent) => {
        const now = status.get(agent.agent_id);
        return (
          <li key={agent.id}>
            <Avatar id={agent.agent_id} name={agent.display_name} color={agent.color} type={agent.agent_type} />
            <div class="grow">
              <a class="strong clip block" dir="auto" href={href("agent", { id: agent.agent_id })}>
                {agent.display_name}
              </a>
              <span class="dim small-text clip block" dir="auto">
                {now?.current_task_title ?? agent.role ?? agent.agent_id}
              </span>
            </div>
            {now && <StatusPill status={now.status} />}
            <span class="dim small-text">
              <Time at={agent.updated_at} />
            </span>
          </li>
        );
      }}
    />
  );
}

function Line({ entry }: { entry: AuditEntry }) {
  const names = useNames();
  const targets = useTargets();
  const name = targetName(entry, targets);
  const details = /created$|\.saved$/.test(entry.action) ? "" : changeLine(entry);
  const itself = /^(label\.(promoted|restored)|agents\.applied)$/.test(entry.action);
  return (
    <li>
      <ActorMark actor={entry.actor} name={names(entry.actor)} />
      <span class="grow clip dim">
        <b>{names(entry.actor)}</b> {verb(entry.action)}{" "}
        {!itself &&
          (entry.target.type === "agent" ? (
            <a class="strong" href={href("agent", { id: entry.target.id })}>
              {name}
            </a>
          ) : (
            <b>{name}</b>
          ))}
        {details && ` · ${details}`}
      </span>
      <span class="dim small-text">
        <Time at={entry.created_at} />
      </span>
    </li>
  );
}

interface Step {
  label: string;
  done: boolean;
  action: { label: string; to: string } | null;
}

/** Each step is read from the server, never remembered. */
function Setup() {
  const agents = useAgents().data;
  const statuses = useStatuses().data;
  const keys = useKeys().data;
  const providers = useProviderKeys().data;
  const members = useMembers().data;
  const steps: Step[] = [];
  const add = (label: string, done: boolean, needs: string, action: { label: string; to: string }): void => {
    if (done || can(needs)) steps.push({ label, done, action: done ? null : action });
  };
  if (agents) add("Create an agent", agents.length > 0, "agents:configure", { label: "Create", to: href("new-agent") });
  if (keys) add("Create an API key", keys.length > 0, "api_keys:manage", { label: "Create", to: href("api-keys", { new: 1 }) });
  if (statuses)
    add(
      "Report a status",
      statuses.some((entry) => entry.status !== "offline" || !!entry.reported_at),
      "agents:read",
      { label: "How", to: href("connect") },
    );
  if (providers && workspace.value!.plan !== "free")
    add("Add a provider key", providers.length > 0, "provider_keys:manage", { label: "Add", to: href("ai-providers") });
  if (members) add("Add a teammate", members.length > 1, "members:manage", { label: "Add", to: href("members", { new: 1 }) });
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

function Expiring({ keys }: { keys: ApiKey[] }) {
  const [rotating, setRotating] = useState<ApiKey | null>(null);
  return (
    <section class="card">
      <header>
        <h2>Keys that expire soon</h2>
      </header>
      <ul class="list">
        {keys.slice(0, 5).map((key) => {
          const left = Date.parse(key.expires_at!) - now.value;
          return (
            <li key={key.id}>
              <div class="grow">
                <b class="clip block">{key.name}</b>
                <span class="dim small-text">{capital(key.environment)}</span>
              </div>
              <Badge tone={left < VERY_SOON ? "warn" : undefined}>in {until(left)}</Badge>
              {can("api_keys:manage") && (
                <Button small onClick={() => setRotating(key)}>
                  Rotate
                </Button>
              )}
            </li>
          );
        })}
      </ul>
      {keys.length > 5 && (
        <p class="card-foot">
          <a class="link" href={href("api-keys")}>
            {plural(keys.length - 5, "more key")}
          </a>
        </p>
      )}
      {rotating && <Rotate apiKey={rotating} onClose={() => setRotating(null)} />}
    </section>
  );
}
