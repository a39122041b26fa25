/** The audit log: filters in the address, differences, export. */
import type { ComponentChildren } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { call } from "../base/api";
import { useAgents, useKeys, useMembers, useNames } from "../base/data";
import { encode } from "../base/json-text";
import { useResource } from "../base/cache";
import { isEmpty } from "../base/config";
import { href, route, setParams } from "../base/route";
import {
  ACTIONS,
  bulk,
  changeLine,
  changeRows,
  FAMILIES,
  fieldsLine,
  said,
  targetName,
  TYPES,
  type OfAgent,
} from "../base/audit-words";
import { saveFile } from "../base/save-file";
import { workspace } from "../base/session";
import { DAY, date, number, plural, time, utc } from "../base/text";
import type { AuditEntry, Change } from "../base/types";
import { ActorMark, Avatar, Button, Empty, options, Told } from "../parts/base";
import { TextDiff } from "../parts/comparison";
import { attempt, Banner, Reading } from "../parts/feedback";
import { Input, Select } from "../parts/fields";
import { Page } from "../parts/page";
import { OpeningRow, Table } from "../parts/rows";
import { useTargets } from "../base/targets";

const PAGE = 100;
const SINCE: Record<string, string> = { "1": "Last 24 hours", "7": "Last 7 days", "30": "Last 30 days" };
/** Whole days are counted from midnight of a day, so that the address of a reading stays the same. */
const since = (days: string | null): string | undefined =>
  days && SINCE[days] ? new Date(Math.floor(Date.now() / 60_000) * 60_000 - Number(days) * DAY).toISOString() : undefined;

/** What is shown of the log: all that was read with these filters, without a gap. */
interface Log {
  filters: string;
  entries: AuditEntry[];
  more: boolean;
}

export function AuditLog() {
  const params = route.value.params;
  const days = params.get("days");
  const actor = params.get("actor");
  const from = useMemo(() => since(days), [days]);
  const query = {
    workspace_id: workspace.value!.id,
    actor,
    action: params.get("action"),
    target_type: params.get("type"),
    target_id: params.get("target"),
    since: from,
    limit: PAGE,
  };
  const audit = useResource<AuditEntry[]>("audit", "api/audit-log", query);
  const [busy, setBusy] = useState<"older" | "export" | null>(null);
  const keys = useKeys().data ?? [];
  const members = useMembers().data ?? [];
  const filters = JSON.stringify(query);
  const log = useRef<Log>({ filters, entries: [], more: true }).current;
  if (log.filters !== filters) Object.assign(log, { filters, entries: [], more: true });

  const newest = audit.data ?? [];
  if (newest.length) {
    // What the newest page has moved past stays. Where more came than a page holds, the rest is read again on demand.
    const seen = new Set(newest.map(({ id }) => id));
    const rest = log.entries.filter(({ id }) => !seen.has(id));
    const joined = rest.length < log.entries.length;
    log.entries = joined ? [...newest, ...rest] : newest;
    log.more ||= !joined;
  }
  const { entries, more } = log;
  const filtered = ["actor", "action", "type", "target", "days"].some((name) => params.get(name));
  const last = entries.at(-1);
  const asked = params.get("entry");

  const page = async (before: number, limit: number): Promise<AuditEntry[]> =>
    (await call<AuditEntry[]>("GET", "api/audit-log", { query: { ...query, limit, before } })).data;
  const load = async (): Promise<void> => {
    if (!last) return;
    setBusy("older");
    await attempt("Older entries could not be read.", async () => {
      const next = await page(last.revision, PAGE);
      // Meanwhile the filters may be others, or the entries before these gone.
      if (log.entries.at(-1)?.id === last.id)
        Object.assign(log, { entries: [...log.entries, ...next], more: next.length === PAGE });
    });
    setBusy(null);
  };
  const filter = (name: string) => ({
    tool: true,
    value: params.get(name) ?? "",
    onPick: (value: string): void => setParams({ [name]: value }, false),
  });
  const download = async (): Promise<void> => {
    setBusy("export");
    await attempt("Not exported.", async () => {
      const all: AuditEntry[] = [];
      for (let before = Number.MAX_SAFE_INTEGER; ;) {
        const next = await page(before, 1000);
        all.push(...next);
        const end = next.at(-1)?.revision;
        if (next.length < 1000 || !end) break;
        before = end;
      }
      saveFile(
        `audit-log-${new Date().toISOString().slice(0, 10)}.ndjson`,
        all.map((entry) => `${encode(entry)}\n`),
        "application/x-ndjson",
      );
    });
    setBusy(null);
  };

  return (
    <Page
      title="Audit log"
      buttons={
        <Button
          icon="download"
          busy={busy === "export"}
          blocked={!entries.length || busy !== null}
          onClick={() => void download()}
        >
          Export
        </Button>
      }
    >
      <div class="tools audit-tools">
        <Select {...filter("actor")} aria-label="Who">
          <option value="">Anyone</option>
          {members.length > 0 && <optgroup label="Members">{options(members.map(({ user_id }) => [user_id, user_id]))}</optgroup>}
          {keys.length > 0 && <optgroup label="API keys">{options(keys.map(({ id, name }) => [id, name]))}</optgroup>}
          {actor &&
            ![...members.map(({ user_id }) => user_id), ...keys.map(({ id }) => id)].includes(actor) &&
            options([[actor, actor]])}
        </Select>
        <Select {...filter("action")} aria-label="Action">
          <option value="">All actions</option>
          {FAMILIES.map((family) => (
            <optgroup key={family} label={family}>
              {options([`${family}.*`, ...ACTIONS.filter((one) => one.startsWith(`${family}.`))].map((one) => [one, one]))}
            </optgroup>
          ))}
        </Select>
        <Select {...filter("type")} onPick={(type) => setParams({ type, target: null }, false)} aria-label="Target">
          <option value="">Everything</option>
          {options(Object.entries(TYPES))}
        </Select>
        {params.get("type") && (
          <div class="target-filter">
            <Input
              aria-label="Id of the target"
              placeholder="Any id"
              mono
              value={params.get("target") ?? ""}
              onText={(target) => setParams({ target })}
            />
          </div>
        )}
        <Select {...filter("days")} aria-label="Since">
          <option value="">Any time</option>
          {options(Object.entries(SINCE))}
        </Select>
        {filtered && (
          <Button
            kind="quiet"
            onClick={() => setParams({ actor: null, action: null, type: null, target: null, days: null }, false)}
          >
            Clear filters
          </Button>
        )}
      </div>
      <Reading of={audit} what="The audit log" />
      {asked && audit.data && !entries.some(({ id }) => id === asked) && (
        <Banner title="The entry of this link is not among those shown.">Load older ones, or clear the filters.</Banner>
      )}
      {!audit.data ? null : entries.length === 0 ? (
        <div class="card">
          <Empty icon="audit" title={filtered ? "No entry matches these filters." : "No entries yet"}>
            {filtered ? undefined : <Told of="no changes" />}
          </Empty>
        </div>
      ) : (
        <>
          <Table
            name="Audit log, newest first"
            kind="audit-table"
            columns={[
              ["Time", "c-time"],
              ["Who", "c-who second"],
              ["Action", "c-action"],
              ["Target", "c-target"],
              ["What changed", "third"],
              ["Revision", "c-number third right"],
            ]}
          >
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </Table>
          <div class="table-foot row">
            <span class="grow">
              {!filtered
                ? `${number(entries.length)} of ${plural(entries[0]!.revision, "entry", "entries")}, newest first. `
                : "Newest first. "}
              Times are local; hover shows UTC.
            </span>
            {entries.length >= PAGE && more && (
              <Button small busy={busy === "older"} blocked={busy !== null} onClick={() => void load()}>
                Load older
              </Button>
            )}
          </div>
        </>
      )}
    </Page>
  );
}

const today = (at: string): boolean => new Date(at).toDateString() === new Date().toDateString();

function Entry({ entry }: { entry: AuditEntry }) {
  const names = useNames();
  const targets = useTargets();
  const open = route.value.params.get("entry") === entry.id;
  const at = Date.parse(entry.created_at);
  return (
    <OpeningRow
      open={open}
      toggle={() => setParams({ entry: open ? null : entry.id })}
      first={
        <time dateTime={entry.created_at} title={utc(entry.created_at)}>
          {today(entry.created_at) ? new Date(at).toLocaleTimeString("en-GB") : `${date(at)}, ${time(at)}`}
        </time>
      }
      details={() => <Detail entry={entry} />}
      columns={[6, 4, 3]}
    >
      <td class="second">
        <div class="agent-cell">
          <ActorMark actor={entry.actor} name={names(entry.actor)} />
          <span class="clip strong">{names(entry.actor)}</span>
        </div>
      </td>
      <td class="c-action">
        <code>{entry.action}</code>
      </td>
      <td title={entry.target.id}>
        <Target entry={entry}>{targetName(entry, targets)}</Target>
      </td>
      <td class="third dim">{useMemo(() => changeLine(entry), [entry])}</td>
      <td class="third right dim">{number(entry.revision)}</td>
    </OpeningRow>
  );
}

/** The screens of targets that are called otherwise; that of an agent or a webhook is its own. */
const SCREENS: Record<string, string> = {
  api_key: "api-keys",
  member: "members",
  provider_key: "ai-providers",
  budget: "usage",
};

/** A name that leads to what an entry is about. */
function Target({ entry: { target }, children }: { entry: AuditEntry; children: ComponentChildren }) {
  const screen = SCREENS[target.type] ?? target.type;
  return (
    <a class="link" href={href(screen, /^(agent|webhook)$/.test(screen) ? { id: target.id } : {})}>
      {children}
    </a>
  );
}

const MOST_ROWS = 100;

/** The fields of a record that changed, with their values. */
function Changes({ of }: { of: Record<string, Change> }) {
  const changed = changeRows(of);
  const all = changed.slice(0, MOST_ROWS);
  const short = all.filter(({ long }) => !long);
  return (
    <>
      {short.length > 0 && (
        <div class="table-box">
          <table class="field-table">
            <tbody>
              {short.map((row) => (
                <tr key={row.label}>
                  <th scope="row">{row.label}</th>
                  <td>{isEmpty(row.from) ? <span class="dim">None</span> : <del>{said(row.from)}</del>}</td>
                  <td>{isEmpty(row.to) ? <span class="dim">None</span> : <ins>{said(row.to)}</ins>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {all
        .filter(({ long }) => long)
        .map((row) => (
          <TextDiff key={row.label} title={row.label} before={String(row.from ?? "")} after={String(row.to ?? "")} inline />
        ))}
      {changed.length > MOST_ROWS && (
        <p class="small-text">{plural(changed.length - MOST_ROWS, "more change")}: see the export.</p>
      )}
    </>
  );
}

/** So many agents of a group are shown at first, and so many more at a time: a thousand at once would hold the page up. */
const FIRST = 20;
const STEP = 50;

/** The agents to which the same was done; each opens with its own fields. */
function Group({ done, agents }: { done: string; agents: OfAgent[] }) {
  const known = useAgents().data;
  const [most, setMost] = useState(FIRST);
  const [open, setOpen] = useState("");
  return (
    <section>
      <h2>{`${plural(agents.length, "agent")} ${done}`}</h2>
      <ul class="of-agents">
        {agents.slice(0, most).map(({ id, changes }) => {
          const agent = known?.find(({ agent_id }) => agent_id === id);
          const name = agent?.display_name ?? String(changes["display_name"]?.to ?? id);
          const isOpen = open === id;
          return (
            <li key={id}>
              <div class="row">
                <Avatar of={agent} id={id} name={name} size={20} />
                <a class="link clip" dir="auto" href={href("agent", { id })}>
                  {name}
                </a>
                <span class="grow clip dim">{done !== "created" && fieldsLine(changes)}</span>
                <Button
                  kind="quiet"
                  small
                  icon={isOpen ? "down" : "right"}
                  label={`Changes of ${name}`}
                  aria-expanded={isOpen}
                  onClick={() => setOpen(isOpen ? "" : id)}
                />
              </div>
              {isOpen && (
                <div class="stack">
                  <Changes of={changes} />
                </div>
              )}
            </li>
          );
        })}
      </ul>
      {agents.length > most && (
        <Button small onClick={() => setMost(most + STEP)}>
          {plural(agents.length - most, "more agent")}, show
        </Button>
      )}
    </section>
  );
}

function Detail({ entry }: { entry: AuditEntry }) {
  const groups = useMemo(() => bulk(entry), [entry]);
  const { message, target } = entry;
  return (
    <div class="stack">
      {message && <p class="prose">“{message}”</p>}
      {groups.map(([done, agents]) => (
        <Group key={done} done={done} agents={agents} />
      ))}
      {!groups.length && <Changes of={(entry.changes ?? {}) as OfAgent["changes"]} />}
      <p class="row wrap dim small-text">
        <span class="grow">
          {!Object.keys(entry.changes ?? {}).length && "No details are recorded for it. "}
          {useNames()(entry.actor)} ·{" "}
          <Target entry={entry}>
            {target.type} {target.id}
          </Target>
        </span>
        <span>{utc(entry.created_at)}</span>
      </p>
    </div>
  );
}
