/** Creation of an agent. */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, isStatus } from "../base/api";
import { invalidate } from "../base/cache";
import {
  changedFields,
  configOf,
  draftFaults,
  emptyDraft,
  LIMITS,
  textFault,
  toBody,
  toConfig,
  toDraft,
  type Draft,
} from "../base/config";
import { useAgent } from "../base/data";
import { go, href, route } from "../base/route";
import { refresh, workspace } from "../base/session";
import type { Agent, Config } from "../base/types";
import { Button, LinkButton } from "../parts/base";
import { Banner, Failure, toast } from "../parts/feedback";
import { Field, focusFault, Input, useTouched } from "../parts/fields";
import { Page } from "../parts/page";
import { placesLeft } from "./agents";
import { Capabilities, Description, Identity, ModelField, Parameters, Persona } from "./form";

/** What is typed, kept while the page is open. */
const typed = signal<{ id: string; own: boolean; draft: Draft } | null>(null);

/** An id from a name: "Code reviewer" gives "code-reviewer". */
export const slug = (name: string): string =>
  name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, LIMITS.agent_id);

const NOTHING: Config = toConfig(emptyDraft());

export function NewAgent() {
  const source = route.value.params.get("from");
  const copied = useAgent(source ?? "").data?.[0];
  const { touch, touched, touchAll } = useTouched();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const form = useRef<HTMLDivElement>(null);
  const { id, own, draft } = typed.value ?? { id: "", own: false, draft: emptyDraft() };
  const places = placesLeft();

  useEffect(() => {
    if (source && copied && !typed.peek()) {
      const name = `${copied.display_name} copy`;
      typed.value = {
        id: slug(`${copied.agent_id}-copy`),
        own: true,
        draft: { ...toDraft(configOf(copied)), display_name: name },
      };
    }
  }, [source, copied]);

  const change = (next: Draft): void => {
    typed.value = { id: own ? id : slug(next.display_name), own, draft: next };
  };
  const faults = draftFaults(draft);
  const idFault = textFault("agent_id", id);
  const create = async (): Promise<void> => {
    if (idFault || Object.keys(faults).length) {
      touchAll();
      focusFault(form.current);
      return;
    }
    setBusy(true);
    setError(null);
    try {
      const { data } = await call<Agent>("POST", "api/agents/configs", {
        body: {
          workspace_id: workspace.value!.id,
          agent_id: id,
          ...toBody(draft, ["display_name", ...changedFields(NOTHING, draft).filter((field) => field !== "display_name")]),
        },
      });
      typed.value = null;
      invalidate("agents", "status", "versions", "audit");
      void refresh().catch(() => undefined);
      toast(`${data.display_name} is created.`);
      go(href("agent", { id: data.agent_id }), true);
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };

  const props = {
    id: id || "new",
    draft,
    onChange: change,
    faults,
    touched,
    touch,
    changed: new Set<keyof Config>(),
    stored: {},
    readOnly: false,
  };
  return (
    <Page
      title="New agent"
      crumbs={[{ label: "Agents", to: href("agents") }]}
      actions={
        <>
          <LinkButton to={href("agents")}>Cancel</LinkButton>
          <Button kind="primary" busy={busy} blocked={places.full} onClick={() => void create()}>
            Create agent
          </Button>
        </>
      }
    >
      {places.full && (
        <Banner tone="warn" icon="lock" title="No place for another agent.">
          {places.text}
        </Banner>
      )}
      {error !== null &&
        (isStatus(error, 409) ? (
          <Failure what={`The id ${id} is taken.`} error={error} kept="Choose another one." />
        ) : (
          <Failure what="Not created." error={error} kept="Your text is still here." />
        ))}
      <div class="editor" ref={form}>
        <div>
          <div class="group">
            <Identity {...props} />
            <Field
              label="Id"
              counted={{ text: id, limit: LIMITS.agent_id }}
              error={touched("agent_id") ? idFault : null}
              hint="Apps use it to find the agent. It cannot change later."
            >
              {(field) => (
                <Input
                  {...field}
                  mono
                  value={id}
                  onText={(text) => (typed.value = { id: text, own: text !== "", draft })}
                  onBlur={() => id && touch("agent_id")}
                  spellcheck={false}
                  autocomplete="off"
                />
              )}
            </Field>
          </div>
          <Persona {...props} />
        </div>
        <div>
          <div class="group">
            <ModelField {...props} />
          </div>
          <div class="group">
            <Parameters {...props} />
          </div>
          <div class="group">
            <Capabilities {...props} />
            <Description {...props} />
          </div>
        </div>
      </div>
    </Page>
  );
}
