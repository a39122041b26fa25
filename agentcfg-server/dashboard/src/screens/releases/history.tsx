/** The history of releases: every move of a label, and the way back. */
import { useEffect, useMemo, useState } from "preact/hooks";
import { call, isStatus } from "../../base/api";
import { useAgentsById, useLabels, useNames, useVersions } from "../../base/data";
import { isBack, LATEST, usualColumns, type Release } from "../../base/releases";
import { href, route, setParams } from "../../base/route";
import { can, workspace } from "../../base/session";
import { capital, DAY, date, moment, now, number, plural, time, utc } from "../../base/text";
import type { Agent } from "../../base/types";
import { Avatar, Badge, Button, cx, Empty, LabelBadge, options, Skeleton, Told } from "../../parts/base";
import { Failure, useSending } from "../../parts/feedback";
import { Fault, Select } from "../../parts/fields";
import { previewRestore, putBack, type Move } from "./moves";
import { FromTo } from "./station";

const STEP = 50;
const MOST = 1_000;

/** The last moves of some labels, newest first; read again when a label moves. */
function useReleases(labels: string[], agent: string, limit: number) {
  const moved = useLabels().data;
  const [found, setFound] = useState<{ key: string; rows: Release[]; more: boolean } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [again, setAgain] = useState(0);
  const key = [...labels, agent, limit].join(" ");
  useEffect(() => {
    if (!labels.length) return;
    let here = true;
    const read = async (label: string) => {
      const query = { workspace_id: workspace.peek()!.id, label, agent_id: agent, limit };
      const { data } = await call<Omit<Release, "label">[]>("GET", "api/agents/labels/history", { query });
      return data.map((row): Release => ({ ...row, label }));
    };
    Promise.all(labels.map(read)).then(
      (all) => {
        if (!here) return;
        setError(null);
        // Of a list that goes on, nothing older than its end is known.
        const from = Math.max(0, ...all.filter((rows) => rows.length === limit).map((rows) => rows.at(-1)!.revision));
        const rows = all.flat().filter(({ revision }) => revision >= from);
        setFound({ key, rows: rows.sort((a, b) => b.revision - a.revision), more: from > 0 });
      },
      (failed) => here && setError(failed),
    );
    return () => void (here = false);
  }, [key, moved, again]);
  return { found, error, reload: () => setAgain((n) => n + 1) };
}

export function ReleaseHistory() {
  const params = route.value.params;
  const versions = useVersions().data;
  const labels = useLabels();
  const [limit, setLimit] = useState(STEP);
  const named = params.get("label");
  const agent = params.get("agent") ?? "";
  const all = useMemo(
    () => [...new Set([...(labels.data ?? []).map(({ label }) => label), ...(named ? [named] : [])])].sort(),
    [labels.data, named],
  );
  const usual = useMemo(
    () => (versions && labels.data ? usualColumns(versions, labels.data).filter((label) => label !== LATEST) : []),
    [versions, labels.data],
  );
  const shown = named ? [named] : usual;
  const { found, error, reload } = useReleases(shown, agent, limit);
  const byId = useAgentsById();
  const rows = found?.rows;
  const revision = Number(params.get("revision"));
  const open = rows?.find((row) => row.revision === revision) ?? rows?.[0];
  const last = named ?? usual.at(-1);
  const failed = error ?? labels.error;
  if (failed !== null)
    return (
      <Failure
        what="The history could not be read."
        error={failed}
        retry={() => {
          reload();
          void labels.reload();
        }}
      />
    );
  if (labels.data && !shown.length) {
    return (
      <div class="card">
        <Empty icon="label" title="Nothing was released yet">
          <Told of="no releases" />
        </Empty>
      </div>
    );
  }
  if (!rows) return <Skeleton rows={6} tall />;
  return (
    <>
      <div class="tools">
        <Select tool aria-label="Label" value={named ?? ""} onPick={(label) => setParams({ label, revision: null })}>
          <option value="">{usual.length > 1 ? [...usual].reverse().join(", ") : "All labels"}</option>
          {options(all.map((label) => [label, label]))}
        </Select>
        <Select tool aria-label="Agent" value={agent} onPick={(id) => setParams({ agent: id, revision: null })}>
          <option value="">All agents</option>
          {options([...byId.values()].map(({ agent_id, display_name }) => [agent_id, display_name]))}
        </Select>
        <span class="grow" />
        <span class="hint row wrap legend">
          <Dot kind="filled" /> {last} <Dot kind="ring" /> another label <Dot kind="back" /> moved back
        </span>
      </div>
      {rows.length === 0 ? (
        <div class="card">
          <Empty
            icon="search"
            title="No move matches"
            action={<Button onClick={() => setParams({ label: null, agent: null })}>Clear filter</Button>}
          />
        </div>
      ) : (
        <>
          <Strip rows={rows} labels={[...shown].reverse()} last={last} />
          <div class="release-columns">
            <div class="stack">
              <Days rows={rows} open={open} byId={byId} last={last} />
              {found.more && limit < MOST && (
                <div>
                  <Button onClick={() => setLimit(limit === STEP ? 4 * STEP : MOST)}>Load older</Button>
                </div>
              )}
              {found.more && limit >= MOST && <p class="hint">Older moves are in the audit log.</p>}
            </div>
            {open && (
              <Details
                key={`${open.label} ${open.revision}`}
                release={open}
                byId={byId}
                newest={rows.find(({ label }) => label === open.label) === open}
              />
            )}
          </div>
        </>
      )}
    </>
  );
}

type DotKind = "filled" | "ring" | "back";
const kindOf = (release: Release, last: string | undefined): DotKind =>
  isBack(release) ? "back" : release.label === last ? "filled" : "ring";

function Dot({ kind }: { kind: DotKind }) {
  return (
    <svg class={`dot ${kind}`} viewBox="0 0 16 16" aria-hidden="true">
      <circle cx="8" cy="8" r="5" />
    </svg>
  );
}

const DAYS = 30;
/** So many moved agents stand in a line; the release itself has all. */
const SHOWN = 3;

/** The last days as a line for each label: a dot for each move, larger where it was of more agents. The list below has the same. */
function Strip({ rows, labels, last }: { rows: Release[]; labels: string[]; last: string | undefined }) {
  const end = now.value;
  const start = end - DAYS * DAY;
  const at = (when: number): string => `${(2 + (96 * (when - start)) / (end - start)).toFixed(2)}%`;
  const seen = rows.filter(({ created_at }) => Date.parse(created_at) >= start);
  const height = labels.length * 34 + 26;
  return (
    <div class="card strip">
      <svg
        role="img"
        width="100%"
        height={height}
        aria-label={`Moves of the last ${DAYS} days: ${labels.map((label) => `${label} ${seen.filter((row) => row.label === label).length}`).join(", ")}. They are listed below.`}
      >
        {labels.map((label, i) => (
          <g key={label}>
            <text x="12" y={i * 34 + 14}>
              {label}
            </text>
            <line x1="12" x2="99%" y1={i * 34 + 28} y2={i * 34 + 28} />
            {seen
              .filter((row) => row.label === label)
              .map((row) => (
                <circle
                  key={row.revision}
                  class={kindOf(row, last)}
                  cx={at(Date.parse(row.created_at))}
                  cy={i * 34 + 28}
                  r={Math.min(9, 3 + 1.5 * Math.sqrt(row.moves.length))}
                />
              ))}
          </g>
        ))}
        {[28, 21, 14, 7, 0].map((ago) => (
          <text key={ago} class="tick" text-anchor="middle" x={at(end - ago * DAY)} y={height - 6}>
            {ago ? date(end - ago * DAY) : "Today"}
          </text>
        ))}
      </svg>
    </div>
  );
}

const day = (at: string): string => {
  const when = Date.parse(at);
  const word = moment(when).split(" at ")[0]!;
  return capital(word);
};

function Days({
  rows,
  open,
  byId,
  last,
}: {
  rows: Release[];
  open: Release | undefined;
  byId: ReadonlyMap<string, Agent>;
  last: string | undefined;
}) {
  const names = useNames();
  return (
    <ol class="releases" aria-label="Releases">
      {rows.map((row, i) => (
        <li key={`${row.label} ${row.revision}`}>
          {(i === 0 || day(rows[i - 1]!.created_at) !== day(row.created_at)) && <h2 class="day">{day(row.created_at)}</h2>}
          <button
            type="button"
            class={cx("bare-button release", row === open && "chosen")}
            aria-pressed={row === open}
            onClick={() => setParams({ revision: row.revision })}
          >
            <Dot kind={kindOf(row, last)} />
            <span class="grow">
              <span class="row wrap">
                <b>{names(row.actor)}</b> {isBack(row) ? "moved back" : "moved"} <LabelBadge label={row.label} /> on{" "}
                {plural(row.moves.length, "agent")}
                <time class="dim small-text grow right" dateTime={row.created_at}>
                  {time(Date.parse(row.created_at))}
                </time>
              </span>
              {row.message && <span class="block message">{row.message}</span>}
              <span class="row wrap small-text moves">
                {row.moves.slice(0, SHOWN).map(({ agent_id, from, to }) => (
                  <span key={agent_id} class="row">
                    <Avatar of={byId.get(agent_id)} id={agent_id} size={20} />
                    {byId.get(agent_id)?.display_name ?? agent_id}
                    <span class="dim">
                      {from === null ? "new" : `v${from}`} → {to === null ? "removed" : `v${to}`}
                    </span>
                  </span>
                ))}
                {row.moves.length > SHOWN && <span class="dim">and {number(row.moves.length - SHOWN)} more</span>}
              </span>
            </span>
          </button>
        </li>
      ))}
    </ol>
  );
}

const LISTED = 100;

function Moves({ moves, byId, most = LISTED }: { moves: Move[]; byId: ReadonlyMap<string, Agent>; most?: number }) {
  return (
    <ul class="between">
      {moves.slice(0, most).map(({ agent_id, from, to }) => (
        <li key={agent_id}>
          <Avatar of={byId.get(agent_id)} id={agent_id} size={20} />
          <a class="clip grow" href={href("agent", { id: agent_id, tab: "labels" })}>
            {byId.get(agent_id)?.display_name ?? agent_id}
          </a>
          <FromTo from={from} to={to} />
        </li>
      ))}
      {moves.length > most && <li class="dim">and {number(moves.length - most)} more</li>}
    </ul>
  );
}

/** One move of a label: the agents, the message, and the way back to before it. */
function Details({ release, byId, newest }: { release: Release; byId: ReadonlyMap<string, Agent>; newest: boolean }) {
  const names = useNames();
  const { label, revision, created_at: at } = release;
  return (
    <aside class="stack" aria-label="The chosen release">
      <div class="card">
        <header>
          <h2>
            {capital(label)}, {moment(Date.parse(at))}
          </h2>
          <Badge>{plural(release.moves.length, "agent")}</Badge>
        </header>
        <Moves moves={release.moves} byId={byId} />
        <p class="card-foot hint">
          {release.message && <>“{release.message}” · </>}
          {names(release.actor)}, <span title={utc(at)}>{time(Date.parse(at))}</span> · revision {number(revision)}
        </p>
      </div>
      {can("agents:release") && <PutBack release={release} byId={byId} newest={newest} />}
    </aside>
  );
}

function PutBack({ release, byId, newest }: { release: Release; byId: ReadonlyMap<string, Agent>; newest: boolean }) {
  const { label, revision } = release;
  const moved = useLabels().data;
  const [seen, setSeen] = useState<{ moves: Move[]; base: string | null } | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const [again, setAgain] = useState(0);
  const [late, setLate] = useState(false);
  const { busy, error, send } = useSending("Not put back.");
  useEffect(() => {
    let here = true;
    previewRestore(label, revision - 1).then(
      (found) => here && (setSeen(found), setRefused(null)),
      (failed) => here && setRefused(failed),
    );
    return () => void (here = false);
  }, [label, revision, moved, again]);
  const run = async (): Promise<void> => {
    try {
      await putBack(label, revision - 1, seen!.base);
      setParams({ revision: null });
    } catch (failed) {
      if (!isStatus(failed, 412)) throw failed;
      setLate(true);
      setAgain((n) => n + 1);
    }
  };
  return (
    <div class="card">
      <header>
        <h2>Put {label} back</h2>
      </header>
      <div class="card-body stack">
        {refused !== null ? (
          <Failure what="It cannot be put back." error={refused} retry={() => setAgain((n) => n + 1)} />
        ) : !seen ? (
          <Skeleton rows={2} />
        ) : seen.moves.length === 0 ? (
          <p class="prose">It is as it was before this release.</p>
        ) : (
          <>
            <p class="prose">
              To how it was before this release: {plural(seen.moves.length, "agent")} {seen.moves.length === 1 ? "moves" : "move"}
              .{!newest && " What was released after it is taken back too."}
            </p>
            <Moves moves={seen.moves} byId={byId} most={SHOWN} />
            {late && <Fault>{label} was moved in the meantime. Nothing has moved: look again.</Fault>}
            <Button icon="back" busy={busy} onClick={() => void send(run)}>
              Put back to before {time(Date.parse(release.created_at))}
            </Button>
          </>
        )}
        <Failure what="Not put back." error={error} />
      </div>
    </div>
  );
}
