/** Creation of an agent. */
import { useEffect, useState } from "preact/hooks";
import { isolated } from "../base/text";
import { call, isStatus } from "../base/api";
import {
  changedFields,
  configOf,
  draftFaults,
  FIELDS,
  LIMITS,
  NAMES,
  textFault,
  toBody,
  toConfig,
  toDraft,
  type Draft,
  type FieldName,
} from "../base/config";
import { agentsChanged, useAgent } from "../base/data";
import { useTyped } from "../base/drafts";
import { go, href, route } from "../base/route";
import { workspace } from "../base/session";
import type { Agent } from "../base/types";
import { Button, Told } from "../parts/base";
import { useConfirming } from "../parts/dialog";
import { Banner, Failure, toast, useSending } from "../parts/feedback";
import { Field, focusFault, Form, Input, useTouched } from "../parts/fields";
import { Page } from "../parts/page";
import { placesLeft } from "./restore";
import { Fields } from "./form";

interface Typed {
  id: string;
  /** The id was typed, and does not follow the name. */
  own: boolean;
  draft: Draft;
  safe?: false;
}

/** An id from a name: "Code reviewer" gives "code-reviewer". */
export const slug = (name: string): string =>
  name
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, LIMITS.agent_id);

const idFault = (id: string): string | null =>
  !id
    ? "An agent needs an id."
    : /^[a-z0-9_-]*$/.test(id)
      ? textFault(id, LIMITS.agent_id)
      : "Lowercase letters, digits, hyphens and underscores.";

/** The content of an agent of which nothing is known. */
const NOTHING = toConfig(toDraft({}));

export function NewAgent() {
  const source = route.value.params.get("from");
  const read = useAgent(source ?? "").data?.[0];
  const copied = source ? read : undefined;
  const { touch, touched, touchAll } = useTouched();
  const { busy, error, send } = useSending("Not created.");
  const [taken, setTaken] = useState<{ id: string; deleted: boolean } | null>(null);
  // A copy has a text of its own: it never shows what was typed for another new agent.
  const [typed, setTyped] = useTyped<Typed>(`new ${workspace.value!.id} ${source ?? ""}`);
  const { id, own, draft } = typed ?? {
    id: copied ? slug(`${copied.agent_id}-copy`) : "",
    own: copied !== undefined,
    draft: copied ? { ...toDraft(configOf(copied)), display_name: `${copied.display_name} copy` } : toDraft(NOTHING),
  };
  const places = placesLeft();
  useEffect(() => document.querySelector<HTMLElement>("#new-agent input")!.focus(), []);

  const change = (next: Draft): void => setTyped({ id: own ? id : slug(next.display_name), own, draft: next });
  const faults = draftFaults(draft);
  const wrongId =
    taken?.id === id ? (
      <>
        The id {id} is taken{taken.deleted && " by a deleted agent, which can be restored"}. Choose another one, or open{" "}
        <a class="link" href={href("agent", { id })}>
          the agent
        </a>
        .
      </>
    ) : (
      idFault(id)
    );
  const cancel = (): void => {
    const address = location.href;
    setTyped(null);
    go(href("agents"));
    if (typed)
      toast("The new agent is discarded.", {
        label: "Undo",
        run: () => {
          setTyped(typed);
          go(address);
        },
      });
  };
  const check = (form: Element): void => {
    if (wrongId || Object.keys(faults).length) {
      touchAll();
      focusFault(form);
    } else void send(() => create(form));
  };
  const create = async (form: Element): Promise<void> => {
    const changed = changedFields(NOTHING, draft);
    try {
      const { data } = await call<Agent>("POST", "api/agents/configs", {
        body: {
          workspace_id: workspace.value!.id,
          agent_id: id,
          ...toBody(
            draft,
            NAMES.filter((name) => FIELDS[name].required || changed.includes(name)),
          ),
        },
      });
      setTyped(null);
      agentsChanged();
      toast(`${isolated(data.display_name)} is created.`);
      go(href("agent", { id: data.agent_id }), true);
    } catch (failed) {
      if (isStatus(failed, 409)) {
        setTaken({ id, deleted: failed.message.includes("restored") });
        touch("agent_id");
        focusFault(form);
      } else {
        scrollTo(0, 0);
        throw failed;
      }
    }
  };

  const props = {
    id: id || "new",
    draft,
    onChange: change,
    faults,
    touched,
    // The name has the focus first: to leave it empty is no fault before anything was typed.
    touch: (name: string) => typed && touch(name),
    changed: new Set<FieldName>(),
    stored: NOTHING,
    readOnly: false,
  };
  // The button may be blocked or busy.
  useConfirming(() => document.querySelector<HTMLElement>("[form=new-agent]")!.click());
  return (
    <Page
      title="New agent"
      trail={[{ label: "Agents", to: href("agents") }]}
      buttons={
        <>
          <Button onClick={cancel}>Cancel</Button>
          <Button type="submit" form="new-agent" kind="primary" busy={busy} blocked={places.full}>
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
      <Failure what="Not created." error={error} kept="Your text is still here." />
      <Form id="new-agent" class="editor" onSend={check}>
        <div>
          <div class="group">
            <Fields {...props} of="identity" />
            <Field
              label="Id"
              counted={{ text: id, limit: LIMITS.agent_id }}
              error={touched("agent_id") ? wrongId : null}
              hint={<Told of="agent id" />}
            >
              {(field) => (
                <Input
                  {...field}
                  mono
                  value={id}
                  onText={(text) => setTyped({ id: text, own: text !== "", draft })}
                  onBlur={() => id && touch("agent_id")}
                  spellcheck={false}
                  autocomplete="off"
                />
              )}
            </Field>
          </div>
          <Fields {...props} of="persona" />
        </div>
        <div>
          <div class="group">
            <Fields {...props} of="model" />
          </div>
          <div class="group">
            <Fields {...props} of="parameters" />
          </div>
          <div class="group">
            <Fields {...props} of="capabilities" />
            <Fields {...props} of="description" />
          </div>
          <div class="group">
            <Fields {...props} of="definition" />
          </div>
        </div>
      </Form>
    </Page>
  );
}
