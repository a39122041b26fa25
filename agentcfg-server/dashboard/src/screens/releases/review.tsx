/** The review of a release: what moves, from which version to which, and what that changes; then the move itself. */
import { useEffect, useRef, useState } from "preact/hooks";
import { call, isStatus } from "../../base/api";
import { invalidate } from "../../base/cache";
import { messageFault } from "../../base/config";
import { useTyped } from "../../base/drafts";
import { useAgents, useAgentsById, useHistory, useLabels, useNames } from "../../base/data";
import { LATEST } from "../../base/releases";
import { go, href, route, setParams } from "../../base/route";
import { isolated, list, plural } from "../../base/text";
import type { Agent } from "../../base/types";
import { Avatar, Button, cx, Empty, LinkButton, Message, options, Skeleton, Time, Told } from "../../parts/base";
import { Views } from "../../parts/comparison";
import { useConfirming } from "../../parts/dialog";
import { Failure, toast, useSending } from "../../parts/feedback";
import { Fault, Field, focusFault, Input, MessageField, Select } from "../../parts/fields";
import { Page, SaveBar } from "../../parts/page";
import { Table } from "../../parts/rows";
import { useListKeys } from "../../parts/ticks";
import { Compared } from "../history";
import { labelFault } from "../labels";
import { Checks } from "./checks";
import { agentsOfReview } from "./picked";
import { Between, FromTo } from "./station";
import { act, preview, undoOf, type Move, type Plan } from "./moves";

export function Review() {
  const params = route.value.params;
  const of = params.get("of");
  const picked = agentsOfReview();
  if (!of && !picked) {
    return (
      <Page title="Review" trail={[{ label: "Releases", to: href("releases") }]}>
        <Empty
          icon="label"
          title="The choice is not known any more"
          action={<LinkButton to={href("releases")}>Choose again</LinkButton>}
        >
          Nothing has moved.
        </Empty>
      </Page>
    );
  }
  return <Open of={of} picked={picked ?? "all"} />;
}

/** What is decided in a review: the agents that are left out, and the message. */
interface Decided {
  left: ReadonlySet<string>;
  message: string;
}

/** `of` is the one agent whose label is set, to a version of the address. */
function Open({ of, picked }: { of: string | null; picked: string[] | "all" }) {
  const params = route.value.params;
  const from = params.get("from") ?? LATEST;
  const to = params.get("to") ?? "";
  const version = Number(params.get("version"));
  const agents = useAgents();
  const labels = useLabels();
  const names = useNames();
  const history = useHistory(of ?? "").data;
  const byId = useAgentsById();
  const fault = labelFault(to) ?? (!of && to === from ? "This is the label itself." : null);
  const [plan, setPlan] = useState<Plan | null>(null);
  const [refused, setRefused] = useState<unknown>(null);
  const [again, setAgain] = useState(0);
  const [moved, setMoved] = useState<string | null>(null);
  // A user who comes back to the address goes on with it.
  const [kept, keep] = useTyped<Decided & { at: string; safe: true }>("review");
  const at = location.search + picked;
  const [decided, setDecided] = useState<Decided>(kept?.at === at ? kept : { left: new Set(), message: "" });
  useEffect(() => void keep({ ...decided, at, safe: true }), [decided, at]);
  const { left, message } = decided;
  const [looked, setLooked] = useState<ReadonlySet<string>>(new Set());
  const { busy, error, send } = useSending("Nothing has moved.");
  const asked = useRef(0);
  const picks = picked === "all" ? "all" : picked.join();

  useEffect(() => {
    const turn = (asked.current += 1);
    setPlan(null);
    setRefused(null);
    if (fault) return;
    // A name that is being typed is not asked about letter by letter.
    const timer = setTimeout(() => {
      preview(of ? { of, version, to } : { from, to, agents: picked }).then(
        (plan) => asked.current === turn && setPlan(plan),
        (error) => asked.current === turn && setRefused(error),
      );
    }, 150);
    return () => clearTimeout(timer);
  }, [from, to, version, of, picks, again]);

  const changes =
    plan?.moves.filter(
      ({ agent_id, from, to }) =>
        from !== to &&
        // Nothing is released to people: where all were picked, those without the label stay without it.
        (of || from || picked !== "all" || byId.get(agent_id)?.agent_type !== "human"),
    ) ?? [];
  // They were picked, and may have been moved meanwhile: what is left out is named.
  const same = picked === "all" ? [] : (plan?.moves.filter((move) => move.from === move.to) ?? []);
  const chosen = changes.filter(({ agent_id }) => !left.has(agent_id));
  const open = changes.find(({ agent_id }) => agent_id === params.get("agent")) ?? changes[0];
  useEffect(() => {
    if (open) setLooked((before) => new Set(before).add(open.agent_id));
  }, [open?.agent_id]);
  const unseen = chosen.filter(({ agent_id }) => !looked.has(agent_id)).length;
  const show = (by: number): void => {
    const at = open ? changes.indexOf(open) : 0;
    const next = changes[Math.max(0, Math.min(changes.length - 1, at + by))];
    if (next) setParams({ agent: next.agent_id });
  };
  const inline = params.get("view") !== "side";
  const blocked = Boolean(fault) || chosen.length === 0 || messageFault(message) !== null;
  const page = useRef<HTMLDivElement>(null);

  const move = async (): Promise<void> => {
    try {
      await act(plan!, chosen, message);
    } catch (failed) {
      if (!isStatus(failed, 412)) throw failed;
      invalidate("agents", "versions");
      const { data } = await call<{ actor: Parameters<typeof names>[0] }[]>("GET", "api/agents/labels/history", {
        query: { workspace_id: plan!.workspace, label: to, limit: 1 },
      }).catch(() => ({ data: [] }));
      setMoved(
        `${to}${from === LATEST && !of ? " or an agent" : ""} was changed in the meantime${data[0] ? `, the last move was by ${names(data[0].actor)}` : ""}. Nothing has moved. Look again.`,
      );
      setAgain((n) => n + 1);
      return;
    }
    invalidate("versions", "audit");
    keep(null);
    const undo = await undoOf(plan!, chosen).catch(() => null);
    toast(`${to} is moved on ${plural(chosen.length, "agent")}.`, undo ? { label: "Undo", run: () => void undo() } : undefined);
    go(href("releases", { tab: "history", label: to }));
  };
  const submit = (): void => {
    if (blocked) {
      focusFault(page.current);
      return;
    }
    if (plan) void send(move);
  };
  useConfirming(submit);
  useListKeys(({ key }) => {
    if (key === "[") show(-1);
    else if (key === "]") show(1);
    else return false;
    return true;
  });

  const one = of ? byId.get(of) : undefined;
  const title = of
    ? `${changes[0]?.from ? "Move" : "Set"} ${to || "a label"} on ${isolated(one?.display_name ?? of)}`
    : plan
      ? `Promote ${from} to ${to} on ${plural(chosen.length, "agent")}`
      : `Promote ${from}`;
  const known = [...new Set(labels.data?.map(({ label }) => label))];
  return (
    <Page title="Review" trail={[{ label: "Releases", to: href("releases") }]} ownHeading>
      <div ref={page} class="grow-page release-review">
        <div class="merge-head">
          <h1 tabIndex={-1}>{title}</h1>
          <p class="prose">
            Calls with <code>label={to || "…"}</code> get {changes.length === 1 ? "the version below" : "the versions below"} from
            the next one on. <Told of="review" />
          </p>
        </div>
        <div class="review-columns">
          <div class="stack">
            <div class="two">
              {of ? (
                <Field label="Version">
                  {(field) => (
                    <Select {...field} value={String(version)} onPick={(value) => setParams({ version: value })}>
                      {options(
                        (history ?? []).map((entry) => [
                          String(entry.version),
                          `v${entry.version}${entry.message ? ` · ${entry.message.slice(0, 60)}` : ""}`,
                        ]),
                      )}
                    </Select>
                  )}
                </Field>
              ) : (
                <Field label="From the label">
                  {(field) => (
                    <Select {...field} value={from} onPick={(value) => setParams({ from: value })}>
                      {options([LATEST, ...known].map((label) => [label, label]))}
                    </Select>
                  )}
                </Field>
              )}
              <Field
                label={of ? "Label" : "To the label"}
                error={to ? fault : null}
                hint={to ? undefined : <Told of="label name" />}
              >
                {(field) => (
                  <Input
                    {...field}
                    aria-invalid={fault ? true : undefined}
                    mono
                    value={to}
                    onText={(text) => setParams({ to: text })}
                    list="labels"
                    autocomplete="off"
                    spellcheck={false}
                  />
                )}
              </Field>
              <datalist id="labels">
                {known.map((label) => (
                  <option key={label} value={label} />
                ))}
              </datalist>
            </div>
            {moved && <Fault>{moved}</Fault>}
            <Failure what="It cannot be moved." error={refused} retry={() => setAgain((n) => n + 1)} />
            {!plan && refused === null && !fault && <Skeleton rows={4} />}
            {changes.length > 0 && same.length > 0 && (
              <p class="prose">
                Not moved, as {to} is there already:{" "}
                {same.length > 20
                  ? plural(same.length, "agent")
                  : list(same.map(({ agent_id }) => isolated(byId.get(agent_id)?.display_name ?? agent_id)))}
                .
              </p>
            )}
            {plan && changes.length === 0 && (
              <p class="prose">
                {plan.moves.length
                  ? `${to} is on ${plan.moves.length === 1 ? `v${plan.moves[0]!.to}` : "these versions"} already.`
                  : `No agent bears ${from}.`}
              </p>
            )}
            {chosen.length > 0 && <Checks moves={chosen} plan={plan!} byId={byId} label={to} />}
            <MessageField value={message} onText={(message) => setDecided({ left, message })} />
            {changes.length > 0 && (
              <Table
                name="What moves"
                kind="moves-table"
                columns={[["Agent"], ["From and to", "c-move"], ["Change", "c-gap right"]]}
              >
                {changes.map((change) => (
                  <MoveRow
                    key={change.agent_id}
                    move={change}
                    agent={byId.get(change.agent_id)}
                    open={change === open}
                    {...(changes.length > 1
                      ? {
                          on: !left.has(change.agent_id),
                          onTick: (on: boolean) => {
                            const next = new Set(left);
                            next[on ? "delete" : "add"](change.agent_id);
                            setDecided({ left: next, message });
                          },
                        }
                      : {})}
                  />
                ))}
              </Table>
            )}
            <Failure what="Nothing has moved." error={error} />
          </div>
          <div class="stack">
            {open && byId.get(open.agent_id) ? (
              <Change
                key={open.agent_id}
                agent={byId.get(open.agent_id)!}
                move={open}
                inline={inline}
                step={changes.length > 1 ? show : null}
              />
            ) : (
              agents.error !== null && (
                <Failure what="The agents could not be read." error={agents.error} retry={() => void agents.reload()} />
              )
            )}
          </div>
        </div>
        <SaveBar
          what={plan ? plural(chosen.length, "agent") : "Nothing yet"}
          more={unseen > 0 && `${unseen} ${unseen === 1 ? "is" : "are"} not looked at yet`}
        >
          <LinkButton to={of ? href("agent", { id: of, tab: "labels" }) : href("releases")}>Cancel</LinkButton>
          <Button kind="primary" busy={busy} blocked={blocked || !plan} onClick={submit}>
            {of ? (changes[0]?.from ? `Move ${to || "label"}` : `Set ${to || "label"}`) : `Promote to ${to || "…"}`}
          </Button>
        </SaveBar>
      </div>
    </Page>
  );
}

function MoveRow({
  move,
  agent,
  open,
  on,
  onTick,
}: {
  move: Move;
  agent: Agent | undefined;
  open: boolean;
  on?: boolean;
  onTick?: (on: boolean) => void;
}) {
  const name = agent?.display_name ?? move.agent_id;
  return (
    <tr
      class={cx("follow", open && "ticked")}
      onClick={(event) => !(event.target as Element).closest("input, a, button") && setParams({ agent: move.agent_id })}
    >
      <td>
        <div class="agent-cell">
          {onTick && (
            <input
              type="checkbox"
              aria-label={`Move ${name}`}
              checked={on}
              onChange={(event) => onTick(event.currentTarget.checked)}
            />
          )}
          <Avatar of={agent} id={move.agent_id} />
          <div class="two-lines">
            <button
              type="button"
              class="bare-button clip block strong"
              aria-pressed={open}
              onClick={() => setParams({ agent: move.agent_id })}
            >
              {name}
            </button>
            <code class="clip block">{move.agent_id}</code>
          </div>
        </div>
      </td>
      <td class="c-move">
        <FromTo from={move.from} to={move.to} />
      </td>
      <td class="right">{agent && <Between agent={agent} from={move.from} to={move.to!} />}</td>
    </tr>
  );
}

/** What a move changes for one agent: the messages of the versions between, fields, persona. */
function Change({
  agent,
  move,
  inline,
  step,
}: {
  agent: Agent;
  move: Move;
  inline: boolean;
  step: ((by: number) => void) | null;
}) {
  const names = useNames();
  const history = useHistory(agent.agent_id).data ?? [];
  const [least, most] = [Math.min(move.from ?? 0, move.to!), Math.max(move.from ?? 0, move.to!)];
  const between = history.filter(({ version }) => version > least && version <= most);
  const back = move.from !== null && move.to! < move.from;
  return (
    <>
      <div class="row wrap">
        <Avatar of={agent} size={32} />
        <div class="grow">
          <h2 class="clip" dir="auto">
            {agent.display_name}
          </h2>
          <p class="hint">{move.from === null ? `Not set yet, then v${move.to}` : `v${move.from} now, v${move.to} then`}</p>
        </div>
        <Views inline={inline} usual="inline" />
        {step && (
          <>
            <Button icon="up" label="Previous agent" onClick={() => step(-1)} />
            <Button icon="down" label="Next agent" onClick={() => step(1)} />
          </>
        )}
      </div>
      {between.length > 0 && (
        <div class="card">
          <header>
            <h2>{back ? `${plural(between.length, "version")} taken back` : plural(between.length, "version")}</h2>
            <a class="link small-text" href={href("agent", { id: agent.agent_id, tab: "history", from: move.from, to: move.to })}>
              Open in History
            </a>
          </header>
          <ul class="between">
            {between.slice(0, 20).map((entry) => (
              <li key={entry.version}>
                <b>v{entry.version}</b>
                <span class="grow clip">
                  <Message of={entry} />
                </span>
                <span class="dim second">
                  {names(entry.actor)} · <Time at={entry.created_at} />
                </span>
              </li>
            ))}
            {between.length > 20 && <li class="dim">{plural(between.length - 20, "more version")} in the history</li>}
          </ul>
        </div>
      )}
      {move.from === null ? (
        <p class="prose">
          <Told of="not set" />
        </p>
      ) : (
        <Compared agent={agent} from={move.from} to={move.to} inline={inline} />
      )}
    </>
  );
}
