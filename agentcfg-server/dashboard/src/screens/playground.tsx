/** The playground: the same message to versions of an agent and models, side by side. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ask, type Message } from "../base/answer";
import { call } from "../base/api";
import { useResource } from "../base/cache";
import { toConfig } from "../base/config";
import { mustBeGiven, settingsOf, type Variable } from "../base/definition";
import { agentQuery, type AgentState, useModels } from "../base/data";
import { drafts, typed as texts, useTyped } from "../base/drafts";
import { pretty } from "../base/json-text";
import { providerName } from "../base/providers";
import { remembered } from "../base/remembered";
import { href, route } from "../base/route";
import { can, me } from "../base/session";
import { short } from "../base/text";
import type { Config, FullVersion, Model } from "../base/types";
import { Button, LinkButton, options, Told } from "../parts/base";
import { Dialog } from "../parts/dialog";
import { attempt } from "../parts/feedback";
import { Area, Field, Form, Input, Select } from "../parts/fields";
import { Snippet } from "../parts/secret";
import { TurnRow, type Column, type Turn } from "./turn";

/** What was sent in this tab, and to what: answers are paid for, and stay while other screens are shown. */
interface Trial {
  columns: Column[];
  turns: Turn[];
  values: Record<string, string>;
  safe: true;
}

const START: Trial = { columns: [{ id: 0, of: "", model: "" }], turns: [], values: {}, safe: true };

const MOST = 4;

/** What can be tried again: a message, and the values of the variables. */
type Case = [message: string, values: Record<string, string>];
const MOST_CASES = 30;

/** What of a version counts for a call. */
interface Source {
  config: Config;
  version: number | null;
}

const DRAFT = "draft";

function useSources(columns: Column[], { agent, version }: AgentState): (Source | null)[] {
  const draft = drafts.value.get(agent.id)?.draft;
  // At most so many columns: the number of hooks stays the same.
  const read = Array.from({ length: MOST }, (_, i) => {
    const [kind, name] = columns[i]?.of.split(" ") ?? [];
    return useResource<FullVersion>("versions", kind && name ? "api/agents/version" : null, {
      ...agentQuery(agent),
      ...(kind && name ? { [kind]: name } : {}),
    });
  });
  return columns.map(({ of }, i) =>
    of === DRAFT
      ? { config: toConfig(draft!), version: null }
      : of
        ? read[i]!.data
          ? { config: read[i]!.data!.config, version: read[i]!.data!.version }
          : null
        : { config: agent, version },
  );
}

/** Which model answers, who offers it, and who pays. */
function modelOf(column: Column, source: Source | null, models: Model[]) {
  const own = source?.config.model ?? null;
  const id = column.model || own;
  const known = models.find((model) => model.id === id);
  const provider = known?.provider ?? (id?.startsWith("claude") ? "anthropic" : "openai");
  return { own, id, known, provider, api: known?.provider_api ?? provider };
}

/** A persona with the values of its variables, by the rule of the server. */
const filled = (persona: string, declared: Record<string, Variable>, values: Record<string, string>): string =>
  persona.replace(/\{\{ *(\w+) *\}\}/g, (all, name: string) =>
    Object.hasOwn(declared, name) ? values[name] || declared[name]!.default || "" : all,
  );

export function Playground({ state }: { state: AgentState }) {
  const { agent, labels, history, version } = state;
  const models = useModels().data;
  // It stays for the next trial; what was sent already may go with the page.
  const [typed, setTyped] = useTyped<{ text: string; safe: boolean }>(`try ${agent.id}`);
  const text = typed?.text ?? "";
  const place = `trial ${agent.id}`;
  const [trial, setTrial] = useTyped<Trial>(place);
  const hold = (change: (now: Trial) => Partial<Trial>): void => {
    const now = (texts.peek()[place] ?? START) as Trial;
    setTrial({ ...now, ...change(now) });
  };
  const { turns, values } = trial ?? START;
  // A draft that was saved since is the current version.
  const columns = (trial ?? START).columns.map((column) =>
    column.of === DRAFT && !drafts.value.has(agent.id) ? { ...column, of: "" } : column,
  );
  const setColumns = (columns: Column[]): void => hold(() => ({ columns }));
  useLayoutEffect(() => {
    const of = route.value.params.get("of");
    if (of) setColumns([{ ...columns[0]!, of }, ...columns.slice(1)]);
  }, []);
  const [tried, setTried] = useState(false);
  const [sent, setSent] = useState<unknown>(null);
  const stop = useRef<AbortController | null>(null);
  const kept = useMemo(() => remembered(`cases ${me.peek()!.id} ${agent.id}`), []);
  const cases = JSON.parse(kept.value || "[]") as Case[];
  const isKept = cases.some(([message]) => message === text);
  const sources = useSources(columns, state);
  useEffect(() => () => stop.current?.abort(), []);
  if (!models) return null;

  const variables = new Map(
    sources.flatMap((source) => (source ? Object.entries(settingsOf(source.config).variables ?? {}) : [])),
  );
  const missing = (name: string): boolean => mustBeGiven(variables.get(name)!) && !values[name];
  const running = !!stop.current && turns.some(({ answers }) => Object.values(answers).some((answer) => answer.running));
  const used = columns.map((column, i) => modelOf(column, sources[i]!, models));
  const blocked = !text.trim() || used.some(({ id, known }) => !id || known?.status === "coming_soon");

  const change = (id: number, to: Partial<Column>): void =>
    setColumns(columns.map((column) => (column.id === id ? { ...column, ...to } : column)));
  /** What a column sends besides the messages. */
  const askedBy = (column: Column, i: number) => {
    const config = sources[i]!.config;
    const declared = settingsOf(config).variables ?? {};
    const [kind, name] = column.of.split(" ");
    const isDraft = kind === DRAFT;
    const settings = settingsOf(config).model_settings ?? {};
    return {
      query: { ...agentQuery(agent), ...(name ? { [kind!]: name } : {}) },
      model: column.model || (isDraft ? config.model : null),
      draft: isDraft ? { system: filled(config.persona_prompt ?? "", declared, values), settings } : null,
      limited: "max_tokens" in settings,
      variables: Object.fromEntries(Object.entries(isDraft ? {} : values).filter(([key, value]) => value && declared[key])),
    };
  };
  const show = (column: Column, i: number): Promise<void> =>
    attempt("Not read.", async () => {
      const { query, model, draft, variables } = askedBy(column, i);
      if (draft) return setSent({ model, system: draft.system, ...draft.settings });
      const { data } = await call<{ model: string | null; prompt: string | null; model_settings: object }>(
        "POST",
        "api/agents/prompt",
        { query, body: { variables } },
      );
      setSent({ model: model ?? data.model, system: data.prompt, ...data.model_settings });
    });
  const send = (): void => {
    if (running || blocked) return;
    setTried(true);
    if ([...variables.keys()].some(missing)) return;
    stop.current = new AbortController();
    const { signal } = stop.current;
    const at = turns.length;
    hold(() => ({ turns: [...turns, { text, answers: {} }] }));
    setTyped({ text, safe: true });
    columns.forEach((column, i) => {
      const before = turns.flatMap(({ text, answers }): Message[] => {
        const answer = answers[column.id];
        return answer?.text
          ? [
              { role: "user", content: text },
              { role: "assistant", content: answer.text },
            ]
          : [];
      });
      void ask(
        {
          ...askedBy(column, i),
          ...used[i]!,
          messages: [...before, { role: "user", content: text }],
        },
        signal,
        (answer) =>
          hold(({ turns }) => ({
            turns: turns.map((turn, j) => (j === at ? { ...turn, answers: { ...turn.answers, [column.id]: answer } } : turn)),
          })),
      );
    });
  };
  const add = (): void => {
    const shown = new Set(columns.map(({ of }) => of));
    const next = [
      ...labels.map(({ label }) => `label ${label}`),
      ...(history.data ?? []).slice(1).map((one) => `version ${one.version}`),
    ];
    setColumns([
      ...columns,
      { id: Math.max(...columns.map(({ id }) => id)) + 1, of: next.find((of) => !shown.has(of)) ?? "", model: "" },
    ]);
  };
  const several = columns.length > 1;
  const last = Object.values(turns.at(-1)?.answers ?? {});

  return (
    <Form
      class="stack pad-top playground"
      onSend={send}
      onKeyDown={(event) => {
        if (event.key === "Escape" && running) stop.current?.abort();
      }}
    >
      {variables.size > 0 && (
        <div class="variables">
          {[...variables].map(([name, variable]) => (
            <Field
              key={name}
              label={<code>{`{{${name}}}`}</code>}
              aside={<span class="count">{mustBeGiven(variable) && "required"}</span>}
              error={tried && missing(name) ? "The persona needs a value." : null}
            >
              {(field) => (
                <Input
                  {...field}
                  value={values[name] ?? ""}
                  placeholder={variable.default}
                  onText={(value) => hold(() => ({ values: { ...values, [name]: value } }))}
                />
              )}
            </Field>
          ))}
        </div>
      )}
      <div class="answers-box" tabIndex={several ? 0 : undefined} role="group" aria-label="Columns">
        <div class="answers" style={{ "--columns": columns.length }}>
          {columns.map((column, i) => {
            const { own, id, known, provider } = used[i]!;
            return (
              <div key={column.id} class="answers-head">
                <div class="row">
                  <Select tool aria-label="Version" value={column.of} onPick={(of) => change(column.id, { of })}>
                    <option value="">Current{version ? ` (v${version})` : ""}</option>
                    {drafts.value.has(agent.id) && <option value={DRAFT}>Your draft</option>}
                    {labels.map(({ label, version }) => (
                      <option key={label} value={`label ${label}`}>
                        {label} (v{version})
                      </option>
                    ))}
                    {history.data?.slice(1, 50).map(({ version }) => (
                      <option key={version} value={`version ${version}`}>
                        v{version}
                      </option>
                    ))}
                  </Select>
                  <Select tool aria-label="Model" value={column.model} onPick={(model) => change(column.id, { model })}>
                    <option value="">
                      {own ? (models.find((model) => model.id === own)?.display_name ?? own) : "Choose a model"}
                    </option>
                    {models
                      .filter((model) => model.id !== own && model.status === "available")
                      .map((model) => (
                        <option key={model.id} value={model.id}>
                          {model.display_name}
                        </option>
                      ))}
                  </Select>
                  {sources[i] && (
                    <Button kind="quiet" small icon="info" label="What is sent" onClick={() => void show(column, i)} />
                  )}
                  {several && (
                    <Button
                      kind="quiet"
                      small
                      icon="close"
                      label="Remove the column"
                      onClick={() => setColumns(columns.filter((one) => one !== column))}
                    />
                  )}
                </div>
                <p class="hint">
                  {!sources[i]
                    ? "Reading the version"
                    : !id
                      ? "The version names no model."
                      : `${column.model ? `Instead of ${own ?? "none"}` : "The version's own model"} · ${providerName(provider)}${known?.credential === "none" ? ": there is no key for it" : known?.credential === "workspace" ? ", paid with your key" : known ? ", paid with the server's key" : ""}`}
                </p>
              </div>
            );
          })}
          {turns.map((turn, j) => (
            <TurnRow
              key={j}
              turn={turn}
              place={j + 1}
              columns={columns}
              models={models}
              used={used.map(({ known }) => known)}
              compare={(compared) => hold(() => ({ turns: turns.map((one) => (one === turn ? { ...one, compared } : one)) }))}
            />
          ))}
          {can("agents:release") &&
            columns.map((column, i) => (
              <div key={column.id} class="answers-foot">
                {sources[i]?.version && (
                  <LinkButton
                    small
                    icon="label"
                    to={href("releases", { tab: "review", of: agent.agent_id, version: sources[i]!.version, to: "production" })}
                  >
                    Label v{sources[i]!.version}
                  </LinkButton>
                )}
              </div>
            ))}
        </div>
      </div>
      <Field label="Message" hint={<Told of="playground" />}>
        {(field) => (
          <Area
            {...field}
            rows={3}
            value={text}
            onText={(text) => setTyped({ text, safe: !text.trim() })}
            onKeyDown={(event) => {
              if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
                event.preventDefault();
                send();
              }
            }}
          />
        )}
      </Field>
      <div class="row wrap">
        {running ? (
          <Button icon="stop" onClick={() => stop.current?.abort()}>
            Stop
          </Button>
        ) : (
          <Button type="submit" kind="primary" icon="play" blocked={blocked}>
            {several ? `Send to ${columns.length}` : "Send"}
          </Button>
        )}
        {columns.length < MOST && (
          <Button icon="plus" onClick={add}>
            Add a column
          </Button>
        )}
        {cases.length > 0 && (
          <Select
            tool
            aria-label="Saved cases"
            value=""
            onPick={(place) => {
              const [text, values] = cases[Number(place)]!;
              setTyped({ text, safe: true });
              hold(() => ({ values }));
            }}
          >
            <option value="">Saved cases</option>
            {options(cases.map(([message], i) => [String(i), short(message, 40)]))}
          </Select>
        )}
        {text.trim() && (
          <Button
            kind="quiet"
            onClick={() => {
              const others = cases.filter(([message]) => message !== text);
              kept.value = JSON.stringify(isKept ? others : [[text, values], ...others].slice(0, MOST_CASES));
            }}
          >
            {isKept ? "Remove case" : "Save case"}
          </Button>
        )}
        {turns.length > 0 && !running && (
          <Button kind="quiet" onClick={() => hold(() => ({ turns: [] }))}>
            Start again
          </Button>
        )}
        <span class="hidden" role="status">
          {running ? "Answering" : !last[0] ? "" : last.every(({ error }) => error) ? "No call was answered" : "Answered"}
        </span>
      </div>
      {sent !== null && (
        <Dialog
          wide
          title="What is sent"
          onClose={() => setSent(null)}
          foot={<Button onClick={() => setSent(null)}>Close</Button>}
        >
          <Snippet title="Before your messages" text={pretty(sent)} />
        </Dialog>
      )}
    </Form>
  );
}
