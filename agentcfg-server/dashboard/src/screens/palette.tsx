/** The palette: agents, actions, prompts and pages, found by typing. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { useAgents } from "../base/data";
import { PLACES } from "../base/places";
import { findPrompts, type Hit } from "../base/prompts";
import { recent } from "../base/recent";
import { go, href } from "../base/route";
import { can } from "../base/session";
import { sheet } from "../base/shortcuts";
import type { Agent } from "../base/types";
import { Avatar, Icon } from "../parts/base";
import { showModal } from "../parts/dialog";

interface Found {
  id: string;
  group: string;
  to: string;
  text: string;
  mark: ComponentChildren;
  hint?: string;
  line?: string;
}

/** Before the agents are read: always the same, as a new list would be looked through again and again. */
const NONE: Agent[] = [];
const AGENTS = 6;
const PROMPTS = 5;
/** Where nothing else is looked for. */
const MOST_PROMPTS = 50;
/** So many letters are looked for in prompts. */
const LEAST = 3;

const avatar = (agent: Agent) => <Avatar of={agent} size={20} />;

/** The first place of the query in a text is marked. */
function Marked({ text, query }: { text: string; query: string }) {
  const at = query ? text.toLowerCase().indexOf(query) : -1;
  if (at < 0) return <>{text}</>;
  return (
    <>
      {text.slice(0, at)}
      <mark>{text.slice(at, at + query.length)}</mark>
      {text.slice(at + query.length)}
    </>
  );
}

const ACTIONS: [label: string, icon: string, needs: string, screen: string, params?: Record<string, string>][] = [
  ["New agent", "plus", "agents:configure", "new-agent"],
  ["Create an API key", "key", "api_keys:manage", "api-keys", { new: "1" }],
  ["Add a member", "members", "members:manage", "members", { new: "1" }],
  ["Add a webhook", "webhook", "webhooks:manage", "webhooks", { new: "1" }],
  ["Set a budget", "usage", "budgets:manage", "usage", { budget: "new" }],
];

/** What can be done with the agent that was found first. */
const OF_AGENT: [label: (name: string) => string, icon: string, needs: string, tab: string][] = [
  [(name) => `Try ${name}`, "play", "models:invoke", "try"],
  [(name) => `Usage of ${name}`, "usage", "analytics:read", "usage"],
  [(name) => `History of ${name}`, "back", "agents:read", "history"],
];

function useFound(typed: string): { found: Found[]; query: string } {
  const agents = useAgents().data ?? NONE;
  const only = /^[>#]/.exec(typed)?.[0];
  const query = typed
    .slice(only ? 1 : 0)
    .trim()
    .toLowerCase();
  const [hits, setHits] = useState<Hit[]>([]);
  useEffect(() => {
    setHits([]);
    if (only === ">" || query.length < (only ? 1 : LEAST)) return;
    const stop = new AbortController();
    void findPrompts(agents, query, only ? MOST_PROMPTS : PROMPTS, stop.signal).then(
      (found) => !stop.signal.aborted && setHits(found),
    );
    return () => stop.abort();
  }, [query, only, agents]);
  const has = (text: string): boolean => text.toLowerCase().includes(query);
  const found = useMemo(() => {
    const rows: Found[] = [];
    const add = (group: string, text: string, to: string, mark: ComponentChildren, more: Partial<Found> = {}): void =>
      void rows.push({ id: `${group} ${to} ${text}`, group, text, to, mark, ...more });
    const named = query
      ? agents
          .filter((agent) => has(agent.display_name) || has(agent.agent_id) || agent.capabilities.some(has))
          .sort((a, b) => rank(b, query) - rank(a, query))
      : recent.peek().flatMap((id) => agents.find(({ agent_id }) => agent_id === id) ?? []);
    if (!only)
      for (const agent of named.slice(0, AGENTS))
        add(query ? "Agents" : "Visited last", agent.display_name, href("agent", { id: agent.agent_id }), avatar(agent), {
          hint: agent.agent_id,
        });
    const first = query ? named[0] : undefined;
    if (only !== "#") {
      if (first?.agent_type === "ai")
        for (const [label, icon, needs, tab] of OF_AGENT)
          if (can(needs))
            add("Actions", label(first.display_name), href("agent", { id: first.agent_id, tab }), <Icon name={icon} />);
      if (query || only)
        for (const [label, icon, needs, screen, params] of ACTIONS)
          if (can(needs) && has(label)) add("Actions", label, href(screen, params), <Icon name={icon} />);
    }
    if (!only)
      for (const [screen, { label, icon, needs }] of Object.entries(PLACES))
        if ((needs === null || can(needs)) && has(label)) add("Pages", label, href(screen), <Icon name={icon} />);
    for (const { agent, line, text } of hits)
      add(`Prompts that contain “${query}”`, agent.display_name, href("agent", { id: agent.agent_id }), avatar(agent), {
        line: text,
        hint: `line ${line}`,
      });
    return rows;
  }, [query, only, agents, hits]);
  return { found, query };
}

/** A name that begins with it comes first, then the id, then the rest. */
const rank = ({ display_name, agent_id }: Agent, query: string): number =>
  Number(display_name.toLowerCase().startsWith(query)) * 4 + Number(agent_id === query) * 8 + Number(agent_id.startsWith(query));

export function Palette() {
  const dialog = useRef<HTMLDialogElement>(null);
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const { found, query } = useFound(typed);
  const id = useId();
  const chosen = Math.min(at, found.length - 1);
  const close = (): void => void (sheet.value = null);
  // At once, so that no letter that is typed is lost.
  useLayoutEffect(() => showModal(dialog.current!), []);
  useEffect(() => {
    dialog.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen, found]);
  const open = (row: Found | undefined, beside: boolean): void => {
    if (!row) return;
    close();
    if (beside) window.open(row.to, "_blank", "noopener");
    else go(row.to);
  };
  const move = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setAt((chosen + 1) % found.length);
    else if (event.key === "ArrowUp") setAt((chosen - 1 + found.length) % found.length);
    else if (event.key === "Enter") open(found[chosen], event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  };
  const groups = [...new Set(found.map(({ group }) => group))];
  return (
    <dialog
      ref={dialog}
      class="palette"
      aria-label="Search or jump to"
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
      onClick={(event) => event.target === dialog.current && close()}
    >
      <div class="palette-entry">
        <Icon name="search" />
        <input
          type="text"
          role="combobox"
          aria-label="Search or jump to"
          aria-expanded="true"
          aria-controls={id}
          aria-autocomplete="list"
          aria-activedescendant={found.length ? `${id}${chosen}` : undefined}
          placeholder="An agent, a page, an action, or a text in a prompt"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            setAt(0);
          }}
          onKeyDown={move}
        />
        <kbd>Esc</kbd>
      </div>
      <div class="palette-list" id={id} role="listbox" aria-label="Found">
        {groups.map((group) => (
          <div key={group} role="group" aria-label={group}>
            <p class="palette-head" aria-hidden="true">
              {group}
            </p>
            {found.map(
              (row, i) =>
                row.group === group && (
                  <div
                    key={row.id}
                    id={`${id}${i}`}
                    class="option"
                    role="option"
                    aria-selected={i === chosen}
                    onPointerMove={() => setAt(i)}
                    onClick={(event) => open(row, event.ctrlKey || event.metaKey)}
                  >
                    {row.mark}
                    <span class="grow">
                      <span class="clip block" dir="auto">
                        <Marked text={row.text} query={row.line ? "" : query} />
                      </span>
                      {row.line !== undefined && (
                        <code class="clip block">
                          <Marked text={row.line.trim()} query={query} />
                        </code>
                      )}
                    </span>
                    {row.hint && <span class="hint">{row.hint}</span>}
                  </div>
                ),
            )}
          </div>
        ))}
      </div>
      {!found.length && (
        <p class="palette-none dim" role="status">
          {query ? `Nothing matches “${query}”.` : "Type to search."}
        </p>
      )}
      <div class="palette-foot" aria-hidden="true">
        <span>
          <kbd>↑</kbd> <kbd>↓</kbd> choose
        </span>
        <span>
          <kbd>↵</kbd> open
        </span>
        <span class="second">
          <kbd>Ctrl</kbd> <kbd>↵</kbd> in a new tab
        </span>
        <span>
          <kbd>&gt;</kbd> actions
        </span>
        <span>
          <kbd>#</kbd> prompts
        </span>
      </div>
    </dialog>
  );
}
