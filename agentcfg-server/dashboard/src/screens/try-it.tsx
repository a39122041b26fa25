/** A trial: one streamed model call with the agent's persona and model. */
import { useEffect, useRef, useState } from "preact/hooks";
import { failure, send } from "../base/api";
import { type AgentState, agentQuery, PROVIDERS, useModels } from "../base/data";
import { useTyped } from "../base/drafts";
import { events } from "../base/events";
import { route, setParams } from "../base/route";
import { plural, span } from "../base/text";
import type { Provider } from "../base/types";
import { Button } from "../parts/base";
import { Banner, Failure } from "../parts/feedback";
import { Area, Field, Select } from "../parts/fields";

interface Outcome {
  text: string;
  running: boolean;
  error: unknown;
  stopped: boolean;
  cut: boolean;
  version: string | null;
  tokens: number | null;
  took: number;
}

interface Chunk {
  type?: string;
  delta?: { text?: string };
  choices?: { delta?: { content?: string | null } }[];
  usage?: { output_tokens?: number; completion_tokens?: number } | null;
  error?: { message?: string };
}

const MOST_TOKENS = 1024;

/** What the provider is asked: both ways of asking stream. The server adds the agent's persona. */
const REQUESTS: Record<Provider, { path: string; body: (text: string, model: string) => unknown }> = {
  anthropic: {
    path: "v1/messages",
    body: (text, model) => ({ model, max_tokens: MOST_TOKENS, stream: true, messages: [{ role: "user", content: text }] }),
  },
  openai: {
    path: "v1/chat/completions",
    body: (text, model) => ({
      model,
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "user", content: text }],
    }),
  },
};

export function TryIt({ state }: { state: AgentState }) {
  const { agent, labels, history } = state;
  const models = useModels().data;
  // It stays for the next trial; what was sent already may go with the page.
  const [typed, setTyped] = useTyped<{ text: string; safe: boolean }>(`try ${agent.id}`);
  const text = typed?.text ?? "";
  const [picked, setPicked] = useState("");
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const stop = useRef<AbortController | null>(null);
  const selector = route.value.params.get("of") ?? "";
  const own = models?.find((model) => model.id === agent.model);
  const model = picked || agent.model || "";
  const known = models?.find(({ id }) => id === model);
  const provider: Provider = known?.provider ?? (model.startsWith("claude") ? "anthropic" : "openai");

  useEffect(() => () => stop.current?.abort(), []);

  const run = async (): Promise<void> => {
    if (!text.trim() || outcome?.running || !model) return;
    const control = new AbortController();
    stop.current = control;
    const started = performance.now();
    let answer: Outcome = {
      text: "",
      running: true,
      error: null,
      stopped: false,
      cut: false,
      version: null,
      tokens: null,
      took: 0,
    };
    const show = (change: Partial<Outcome>): void => {
      answer = { ...answer, ...change, took: performance.now() - started };
      setOutcome(answer);
    };
    show({});
    setTyped({ text, safe: true });
    try {
      const request = REQUESTS[provider];
      const [kind, name] = selector.split(" ");
      const body = request.body(text, model) as Record<string, unknown>;
      // With a selector the version's own model is used, unless another one was picked.
      if (selector && !picked) delete body["model"];
      const response = await send("POST", `api/agents/model-calls/${provider}/${request.path}`, {
        query: { ...agentQuery(agent), ...(kind ? { [kind]: name } : {}) },
        body,
        signal: control.signal,
      });
      if (!response.ok) throw await failure(response, response.headers.get("WWW-Authenticate") !== null);
      show({ version: response.headers.get("Agent-Version") });
      for await (const data of events(response)) {
        if (data === "[DONE]") break;
        const chunk = JSON.parse(data) as Chunk;
        if (chunk.error) throw new Error(chunk.error.message ?? "The provider ended the answer with an error.");
        const piece = chunk.delta?.text ?? chunk.choices?.[0]?.delta?.content ?? "";
        const tokens = chunk.usage?.output_tokens ?? chunk.usage?.completion_tokens;
        if (piece || tokens) show({ text: answer.text + piece, ...(tokens ? { tokens } : {}) });
      }
      show({ running: false });
    } catch (error) {
      if (control.signal.aborted) show({ running: false, stopped: true });
      else if (answer.text) show({ running: false, cut: true });
      else show({ running: false, error });
    }
  };

  if (!models) return null;
  return (
    <div class="stack pad-top trial">
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void run();
        }}
      >
        <div class="two">
          <Field label="Version">
            {(field) => (
              <Select {...field} value={selector} onPick={(of) => setParams({ of })}>
                <option value="">Current{state.version ? ` (v${state.version})` : ""}</option>
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
            )}
          </Field>
          <Field
            label="Model"
            hint={
              model
                ? `${PROVIDERS[provider]}${known?.credential === "none" ? ": there is no key for it" : known?.credential === "workspace" ? ", paid with your key" : known ? ", paid with the server's key" : ""}`
                : "The agent names no model."
            }
          >
            {(field) => (
              <Select {...field} value={picked} onPick={setPicked}>
                {agent.model ? (
                  <option value="">The agent's: {own?.display_name ?? agent.model}</option>
                ) : (
                  <option value="">Choose a model</option>
                )}
                {models
                  .filter(({ id, status }) => id !== agent.model && status === "available")
                  .map(({ id, display_name }) => (
                    <option key={id} value={id}>
                      {display_name}
                    </option>
                  ))}
              </Select>
            )}
          </Field>
        </div>
        <Field label="Message" hint="A real call: it is paid as said above. What is stored is used, not unsaved changes.">
          {(field) => (
            <Area
              {...field}
              rows={4}
              value={text}
              onText={(text) => setTyped({ text, safe: !text.trim() })}
              onKeyDown={(event) => {
                if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
                  event.preventDefault();
                  void run();
                }
              }}
            />
          )}
        </Field>
        <div class="row">
          {outcome?.running ? (
            <Button icon="stop" onClick={() => stop.current?.abort()}>
              Stop
            </Button>
          ) : (
            <Button type="submit" kind="primary" icon="play" blocked={!text.trim() || !model || known?.status === "coming_soon"}>
              Send
            </Button>
          )}
          <span class="hint" role="status">
            {outcome &&
              (outcome.running
                ? "Answering"
                : outcome.error
                  ? ""
                  : [
                      `${outcome.stopped ? "Stopped after" : "Answered in"} ${outcome.took < 1000 ? `${Math.round(outcome.took)} ms` : span(outcome.took)}`,
                      outcome.tokens && plural(outcome.tokens, "token"),
                      outcome.version && `with v${outcome.version}`,
                    ]
                      .filter(Boolean)
                      .join(", "))}
          </span>
        </div>
      </form>
      {outcome &&
        outcome.error !== null &&
        (outcome.error instanceof Error && outcome.error.name === "Error" ? (
          <Banner tone="bad" title="The call failed.">
            {outcome.error.message}
          </Banner>
        ) : (
          <Failure what="The call failed." error={outcome.error} />
        ))}
      {outcome && (outcome.text || outcome.running) && (
        <div class="answer" tabIndex={0} role="group" aria-label="Answer" aria-busy={outcome.running}>
          {outcome.text}
          {outcome.running && <span class="caret" aria-hidden="true" />}
        </div>
      )}
      {outcome?.cut && (
        <Banner tone="warn" title="The answer is not complete.">
          The provider ended it early.
        </Banner>
      )}
    </div>
  );
}
