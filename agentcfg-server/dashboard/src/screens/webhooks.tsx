/** Webhooks: creation, the one showing of the secret, deliveries, tests, replay. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { call } from "../base/api";
import { invalidate, type Resource, useResource } from "../base/cache";
import { useWebhooks } from "../base/data";
import { closePart, href, openPart, route } from "../base/route";
import { ACTIONS, DID, hookName, TYPES } from "../base/audit-words";
import { can, workspace } from "../base/session";
import { list, plural } from "../base/text";
import type { Delivery, Webhook } from "../base/types";
import { Badge, Button, Empty, Time, Told } from "../parts/base";
import { FormDialog } from "../parts/dialog";
import { Reading, toast } from "../parts/feedback";
import { Check, Fault, Field, Input } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { reveal } from "../parts/secret";
import { Table } from "../parts/rows";

const MOST = 20;
/** Families that are not called as their targets. */
const FAMILY: Record<string, string> = { agents: "Many agents at once", label: "Labels" };
export const DEFAULT_TYPES = ["agent.*", "agents.*", "label.*"];

export function Webhooks() {
  const hooks = useWebhooks();
  const may = can("webhooks:manage");
  const full = (hooks.data?.length ?? 0) >= MOST;
  return (
    <Page
      title="Webhooks"
      trail={[{ label: "Settings" }, { label: "Integrations" }]}
      buttons={
        may &&
        !full && (
          <Button kind="primary" icon="plus" onClick={() => openPart("new")}>
            Add webhook
          </Button>
        )
      }
    >
      <Lead>
        <Told of="webhooks" />
      </Lead>
      {!hooks.data ? (
        <Reading of={hooks} what="The webhooks" rows={3} />
      ) : hooks.data.length === 0 ? (
        <div class="card">
          <Empty
            icon="webhook"
            title="No webhooks yet"
            action={
              may && (
                <Button icon="plus" onClick={() => openPart("new")}>
                  Add webhook
                </Button>
              )
            }
          />
        </div>
      ) : (
        <>
          <Table
            name="Webhooks"
            kind="hooks-table"
            columns={[
              ["Address", "c-name"],
              ["Events", "large"],
              ["Description", "third"],
              ["State", "c-state"],
              ["Changed", "right second c-changed"],
            ]}
          >
            {hooks.data.map((hook) => (
              <tr key={hook.id}>
                <td title={hook.url}>
                  <a class="strong" href={href("webhook", { id: hook.id })}>
                    {hookName(hook.url)}
                  </a>
                </td>
                <td class="large">
                  <code>{hook.types.join(" ")}</code>
                </td>
                <td class="third dim">{hook.description}</td>
                <td>
                  <State hook={hook} />
                </td>
                <td class="right dim second">
                  <Time at={hook.updated_at} />
                </td>
              </tr>
            ))}
          </Table>
          <p class="table-foot">
            {plural(hooks.data.length, "webhook")}
            {full && `. At most ${MOST} are possible.`}
          </p>
        </>
      )}
      {may && route.value.params.get("new") !== null && <Edit hook={null} onClose={() => closePart("new")} />}
    </Page>
  );
}

export const query = (hook: Webhook) => ({ webhook_id: hook.id });
/** Deliveries are no events of the feed: they are read again and again. */
export const useDeliveries = (hook: Webhook, every = 15_000): Resource<Delivery[]> =>
  useResource("webhooks", "api/webhooks/deliveries", query(hook), every);
export const arrived = ({ status, error }: Delivery): boolean => status !== null && status < 300 && !error;

/** What the last delivery says about a webhook that is on. */
export function State({ hook }: { hook: Webhook }) {
  const last = useDeliveries(hook).data?.[0];
  if (hook.enabled) return last && !arrived(last) ? <Badge tone="bad">Failing</Badge> : <Badge tone="ok">Enabled</Badge>;
  return (
    <Badge tone={hook.disabled_reason ? "bad" : undefined}>{hook.disabled_reason ? "Disabled by the server" : "Disabled"}</Badge>
  );
}

export function showSecret(hook: Webhook, what: string): void {
  reveal({
    title: what,
    text: "This is the only time it is shown. Your server checks the signatures of events with it.",
    secret: hook.secret!,
    what: "the secret",
    facts: [hookName(hook.url), ...hook.types],
  });
}

export function Edit({ hook, onClose }: { hook: Webhook | null; onClose: () => void }) {
  // As it was when the dialog was opened: what others have changed since is not sent.
  const [first] = useState<Partial<Webhook>>(hook ?? {});
  const [url, setUrl] = useState(first.url ?? "");
  const [types, setTypes] = useState<readonly string[]>(first.types ?? DEFAULT_TYPES);
  const [description, setDescription] = useState(first.description ?? "");
  const [ordered, setOrdered] = useState(first.ordered ?? false);
  const [tried, setTried] = useState(false);
  const urlFault = !url
    ? "A webhook needs an address."
    : URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)
      ? null
      : "Write a whole address, such as https://example.com/hooks.";
  /** An event, or all of a family. */
  const event = (type: string, children: ComponentChildren) => (
    <Check
      key={type}
      checked={types.includes(type)}
      onCheck={(on) => setTypes(on ? [...types, type] : types.filter((one) => one !== type))}
    >
      {children}
    </Check>
  );
  const save = async (): Promise<void> => {
    const typed = Object.entries({ url, types, description: description || null, ordered });
    const body = Object.fromEntries(typed.filter(([name, value]) => value !== first[name as keyof Webhook]));
    const { data } = hook
      ? await call<Webhook>("PATCH", "api/webhooks", { query: query(hook), body })
      : await call<Webhook>("POST", "api/webhooks", { body: { workspace_id: workspace.value!.id, ...body } });
    invalidate("webhooks", "audit");
    if (data.secret) showSecret(data, "Copy the secret now");
    else toast(`${hookName(data.url)} is saved.`);
  };
  return (
    <FormDialog
      title={hook ? `Edit ${hookName(hook.url)}` : "Add a webhook"}
      verb={hook ? "Save webhook" : "Add webhook"}
      check={() => {
        setTried(true);
        return !urlFault && types.length > 0;
      }}
      run={save}
      failed="Not saved."
      onClose={onClose}
    >
      <Field label="Address" hint={<Told of="webhook address" />} error={tried ? urlFault : null}>
        {(field) => (
          <Input {...field} mono type="url" value={url} onText={setUrl} autocomplete="off" spellcheck={false} data-first />
        )}
      </Field>
      <fieldset class="field">
        <legend class="as-label">Events</legend>
        {Object.entries(DID).map(([family, did]) =>
          event(
            `${family}.*`,
            <>
              {FAMILY[family] ?? TYPES[family]}{" "}
              <span class="hint">{list(did.split(" ").map((done) => done.replace("_", " ")))}</span>
            </>,
          ),
        )}
        <details>
          <summary>Single events</summary>
          <div class="permissions">{ACTIONS.map((type) => event(type, <code>{type}</code>))}</div>
        </details>
        {tried && !types.length && <Fault>A webhook needs an event.</Fault>}
      </fieldset>
      <Field label="Description" hint="Optional.">
        {(field) => <Input {...field} value={description} onText={setDescription} />}
      </Field>
      <Check checked={ordered} onCheck={setOrdered}>
        Wait for each event before the next one is sent
      </Check>
    </FormDialog>
  );
}
