/** What changed last. */
import type { ComponentChildren } from "preact";
import { changeLine, targetName, verb } from "../../base/audit-words";
import type { Resource } from "../../base/cache";
import { byAgent, useAgents, useAudit, useNames, useStatuses } from "../../base/data";
import { href } from "../../base/route";
import { useTargets } from "../../base/targets";
import type { AuditEntry } from "../../base/types";
import { ActorMark, Avatar, Empty, Skeleton, StatusPill, Time } from "../../parts/base";
import { Reading } from "../../parts/feedback";
import { FirstAgent } from "../agents";

const LAST = 8;

/** The last few of what a resource holds. */
export function Last<T>({
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
  of: Resource<unknown[]>;
  items: T[];
  none: ComponentChildren;
  line: (item: T) => ComponentChildren;
}) {
  return (
    <section class="card">
      <header>
        <h2>{title}</h2>
        <a class="link" href={to}>
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

export function LastChanges() {
  const audit = useAudit(LAST);
  return (
    <Last
      title="Last changes"
      what="The last changes"
      link="Audit log"
      to={href("audit-log")}
      of={audit}
      items={audit.data ?? []}
      none={<Empty icon="audit" title="No changes yet" />}
      line={(entry) => <Line key={entry.id} entry={entry} />}
    />
  );
}

/** In place of the changes, where the role may not read the audit log. */
export function LastAgents() {
  const agents = useAgents();
  const status = byAgent(useStatuses().data);
  return (
    <Last
      title="Agents that changed last"
      what="The agents"
      link="All agents"
      to={href("agents")}
      of={agents}
      items={[...(agents.data ?? [])].sort((a, b) => b.updated_at.localeCompare(a.updated_at)).slice(0, LAST)}
      none={<FirstAgent />}
      line={(agent) => {
        const now = status.get(agent.agent_id);
        return (
          <li key={agent.id}>
            <Avatar of={agent} />
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
      <span class="grow two-of-it dim">
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
