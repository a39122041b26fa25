/** Webhooks: creation, the one showing of the secret, deliveries, tests, replay. */
import { useEffect, useState } from "preact/hooks";
import { call, isStatus } from "../base/api";
import { invalidate, useResource } from "../base/cache";
import { useWebhooks } from "../base/data";
import { go, href, route, setParams } from "../base/route";
import { ACTIONS } from "../base/said";
import { can, workspace } from "../base/session";
import { date, number, plural } from "../base/text";
import type { Delivery, Webhook } from "../base/types";
import { Badge, Button, Empty, LinkButton, Skeleton, Time } from "../parts/base";
import { Confirm, Dialog, Menu } from "../parts/dialog";
import { badToast, Banner, errorText, Failure, toast } from "../parts/feedback";
import { Area, Check, Field, Input } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { secret } from "../parts/secret";

const MOST = 20;
/** How often the deliveries are read while they are shown. */
const AGAIN = 4_000;
const DEFAULT_TYPES = ["agent.*", "agents.*", "label.*"];

const hostOf = (url: string): string => {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
};

export function WebhookScreen() {
  const hooks = useWebhooks();
  const open = hooks.data?.find((hook) => hook.id === route.value.params.get("id"));
  if (open) return <One hook={open} />;
  return (
    <Page title="Webhook" crumbs={[{ label: "Webhooks", to: href("webhooks") }]}>
      {hooks.data || hooks.absent ? <Empty icon="webhook" title="There is no such webhook" action={<LinkButton to={href("webhooks")}>Show all webhooks</LinkButton>} />
      : hooks.error !== null ? <Failure what="The webhook could not be read." error={hooks.error} retry={() => void hooks.reload()} /> : <Skeleton rows={5} tall />}
    </Page>
  );
}

export function Webhooks() {
  const hooks = useWebhooks();
  const may = can("webhooks:manage") && !hooks.absent;
  const full = (hooks.data?.length ?? 0) >= MOST;
  return (
    <Page title="Webhooks" crumbs={[{ label: "Settings" }, { label: "Integrations" }]} actions={may && !full && <Button kind="primary" icon="plus" onClick={() => setParams({ new: 1 }, false)}>Add webhook</Button>}>
      <Lead>Events of this workspace, sent to your own servers and signed with a secret. Each is delivered at least once.</Lead>
      {hooks.absent ? <div class="card"><Empty icon="webhook" title="This server has no webhooks" /></div>
      : hooks.error !== null ? <Failure what="The webhooks could not be read." error={hooks.error} retry={() => void hooks.reload()} />
      : !hooks.data ? <div class="card"><Skeleton rows={3} /></div>
      : hooks.data.length === 0 ? <div class="card"><Empty icon="webhook" title="No webhooks yet" action={may && <Button icon="plus" onClick={() => setParams({ new: 1 }, false)}>Add webhook</Button>}>A webhook tells another server about each change, such as a new version of an agent.</Empty></div>
      : (
        <>
          <div class="table-box">
            <table class="hooks-table">
              <caption class="hidden">Webhooks</caption>
              <thead><tr><th scope="col">Address</th><th scope="col" class="third">Events</th><th scope="col" class="second">Description</th><th scope="col" class="c-state">State</th><th scope="col" class="right second c-changed">Changed</th></tr></thead>
              <tbody>
                {hooks.data.map((hook) => (
                  <tr key={hook.id}>
                    <td><a class="strong" href={href("webhook", { id: hook.id })} title={hook.url}>{hostOf(hook.url)}</a></td>
                    <td class="third"><code>{hook.types.join(" ")}</code></td>
                    <td class="second dim">{hook.description}</td>
                    <td><State hook={hook} /></td>
                    <td class="right dim second"><Time at={hook.updated_at} /></td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
          <p class="table-foot">{plural(hooks.data.length, "webhook")}{full && `. At most ${MOST} are possible.`}</p>
        </>
      )}
      {may && route.value.params.get("new") !== null && <Edit hook={null} onClose={() => setParams({ new: null })} />}
    </Page>
  );
}

function State({ hook }: { hook: Webhook }) {
  if (hook.enabled) return <Badge tone="ok">Enabled</Badge>;
  return <Badge tone={hook.disabled_reason ? "bad" : undefined}>{hook.disabled_reason ? "Disabled by the server" : "Disabled"}</Badge>;
}

const query = (hook: Webhook) => ({ webhook_id: hook.id });

function showSecret(hook: Webhook, what: string): void {
  secret.value = {
    title: what,
    text: "This is the only time it is shown. Your server checks the signatures of events with it.",
    secret: hook.secret!,
    what: "the secret",
    facts: [hostOf(hook.url), ...hook.types],
  };
}

function One({ hook }: { hook: Webhook }) {
  const may = can("webhooks:manage");
  const deliveries = useResource<Delivery[]>("webhooks", "api/webhooks/deliveries", query(hook));
  const [asking, setAsking] = useState<"edit" | "delete" | "rotate" | null>(null);
  const [replaying, setReplaying] = useState<Delivery | "all" | null>(null);
  const [testing, setTesting] = useState(false);
  const host = hostOf(hook.url);
  const done = (): void => invalidate("webhooks", "audit");
  // Deliveries are no events of the feed.
  useEffect(() => {
    const timer = setInterval(() => document.hidden || void deliveries.reload(), AGAIN);
    return () => clearInterval(timer);
  }, [hook.id]);

  const test = async (): Promise<void> => {
    setTesting(true);
    try {
      const { data } = await call<Delivery>("POST", "api/webhooks/test", { query: query(hook) });
      if (data.status !== null && data.status < 300 && !data.error) toast(`The test arrived: ${data.status} after ${number(data.duration_ms)} ms.`);
      else badToast(`The test failed: ${data.error ?? `the receiver answered ${data.status}`}.`);
      done();
    } catch (error) {
      badToast(`The test was not sent. ${errorText(error)}`);
    }
    setTesting(false);
  };
  const enable = async (enabled: boolean): Promise<void> => {
    try {
      await call("PATCH", "api/webhooks", { query: query(hook), body: { enabled } });
      toast(`${host} is ${enabled ? "enabled" : "disabled"}.`);
      done();
    } catch (error) {
      badToast(`Not changed. ${errorText(error)}`);
    }
  };
  return (
    <Page
      title={host}
      crumbs={[{ label: "Webhooks", to: href("webhooks") }]}
      actions={may && <>
        <Button busy={testing} onClick={() => void test()}>Send a test</Button>
        <Menu label={`Actions for ${host}`} items={[
          { label: "Edit", icon: "edit", run: () => setAsking("edit") },
          { label: hook.enabled ? "Disable" : "Enable", icon: hook.enabled ? "stop" : "play", run: () => void enable(!hook.enabled) },
          { label: "Replay all events", icon: "back", run: () => setReplaying("all") },
          { label: "Rotate secret", icon: "key", run: () => setAsking("rotate") },
          { label: "Delete webhook", icon: "trash", danger: true, run: () => setAsking("delete") },
        ]} />
      </>}
    >
      {!hook.enabled && hook.disabled_reason && (
        <Banner tone="bad" title={`This webhook was disabled on ${date(Date.parse(hook.updated_at))}.`} action={may && <Button small onClick={() => void enable(true)}>Enable</Button>}>
          {hook.disabled_reason === "gone" ? "The receiver answered 410 Gone." : "No delivery succeeded for five days."} Its place is kept: when you enable it, it goes on from there.
        </Banner>
      )}
      <dl class="facts-table">
        <div><dt>Address</dt><dd><code>{hook.url}</code></dd></div>
        <div><dt>Events</dt><dd><code>{hook.types.join(" ")}</code></dd></div>
        {hook.description && <div><dt>Description</dt><dd>{hook.description}</dd></div>}
        <div><dt>Order</dt><dd>{hook.ordered ? "One after the other" : "Several at a time"}</dd></div>
        <div><dt>State</dt><dd><State hook={hook} /></dd></div>
      </dl>
      <h2 class="section">Deliveries</h2>
      {deliveries.error !== null ? <Failure what="The deliveries could not be read." error={deliveries.error} retry={() => void deliveries.reload()} />
      : !deliveries.data ? <div class="card"><Skeleton rows={5} /></div>
      : deliveries.data.length === 0 ? <div class="card"><Empty icon="webhook" title="Nothing was sent yet">The next event that matches is sent at once.</Empty></div>
      : (
        <div class="table-box">
          <table class="deliveries-table">
            <caption class="hidden">The last deliveries</caption>
            <thead><tr><th scope="col">Event</th><th scope="col" class="c-attempt second">Attempt</th><th scope="col">Answer</th><th scope="col" class="third">Next attempt</th><th scope="col" class="right second c-changed">When</th>{may && <th class="c-act"><span class="hidden">Replay</span></th>}</tr></thead>
            <tbody>
              {deliveries.data.map((one) => (
                <tr key={`${one.id} ${one.attempt} ${one.at}`}>
                  <td><code>{one.type}</code>{one.revision !== null && <span class="dim"> {number(one.revision)}</span>}</td>
                  <td class="second">{one.attempt}</td>
                  <td title={one.response ?? undefined}>{one.status !== null && <Badge tone={one.status < 300 ? "ok" : "bad"}>{one.status}</Badge>} <span class="dim">{one.error ?? `${number(one.duration_ms)} ms`}</span></td>
                  <td class="third dim">{one.next_attempt_at ? <Time at={one.next_attempt_at} /> : ""}</td>
                  <td class="right dim second"><Time at={one.at} /></td>
                  {may && <td class="right">{one.revision !== null && <Button small onClick={() => setReplaying(one)}>Replay</Button>}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {asking === "edit" && <Edit hook={hook} onClose={() => setAsking(null)} />}
      {asking === "delete" && (
        <Confirm title={`Delete ${host}?`} verb="Delete webhook" onClose={() => setAsking(null)} run={async () => {
          await call("DELETE", "api/webhooks", { query: query(hook) });
          toast(`${host} is deleted.`);
          go(href("webhooks"));
          // Not before this screen is gone: it would read deliveries that are no more.
          setTimeout(done);
        }}>Nothing is sent to it any more, and its list of deliveries goes. This cannot be undone.</Confirm>
      )}
      {asking === "rotate" && (
        <Confirm title="Rotate the secret?" verb="Rotate secret" danger={false} onClose={() => setAsking(null)} run={async () => {
          const { data } = await call<Webhook>("POST", "api/webhooks/rotate-secret", { query: query(hook) });
          done();
          setTimeout(() => showSecret(data, "Copy the new secret now"));
        }}>You get a new secret. For 24 hours each event is signed with both, so that your server can change over.</Confirm>
      )}
      {replaying && <Replay hook={hook} from={replaying === "all" ? null : replaying.revision} onClose={() => setReplaying(null)} />}
    </Page>
  );
}

/** The cursor of the feed before a revision. Cursors are opaque, so it is looked up in the feed. */
async function cursorBefore(revision: number): Promise<string> {
  let cursor = "start";
  for (;;) {
    const { data, headers } = await call<{ cursor: string; revision: number }[]>("GET", "api/changes", { query: { workspace_id: workspace.value!.id, after: cursor, limit: 1000 } });
    for (const event of data) {
      if (event.revision >= revision) return cursor;
      cursor = event.cursor;
    }
    if (!data.length) return headers.get("Change-Cursor") ?? cursor;
  }
}

function Replay({ hook, from, onClose }: { hook: Webhook; from: number | null; onClose: () => void }) {
  return (
    <Confirm
      title={from === null ? "Replay all events?" : `Replay from revision ${number(from)}?`}
      verb="Replay"
      danger={false}
      onClose={onClose}
      run={async () => {
        await call("POST", "api/webhooks/replay", { query: query(hook), body: { after: from === null ? "start" : await cursorBefore(from) } });
        toast("The events are sent again.");
        invalidate("webhooks", "audit");
      }}
    >
      {from === null ? "Every matching event since the workspace exists" : "This event and every matching one after it"} is sent again, with the same ids, so that your server can tell that it has seen them.
    </Confirm>
  );
}

function Edit({ hook, onClose }: { hook: Webhook | null; onClose: () => void }) {
  const [url, setUrl] = useState(hook?.url ?? "");
  const [types, setTypes] = useState((hook?.types ?? DEFAULT_TYPES).join("\n"));
  const [description, setDescription] = useState(hook?.description ?? "");
  const [ordered, setOrdered] = useState(hook?.ordered ?? false);
  const [busy, setBusy] = useState(false);
  const [tried, setTried] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const named = types.split(/[\s,]+/).filter(Boolean);
  const urlFault = !url ? "A webhook needs an address." : URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? null : "Write a whole address, such as https://example.com/hooks.";
  const typesFault = named.length ? (named.find((type) => !ACTIONS.includes(type) && !/^[a-z_]+\.\*$/.test(type)) ?? null) : null;
  const save = async (): Promise<void> => {
    setTried(true);
    if (busy || urlFault || typesFault) return;
    setBusy(true);
    setError(null);
    const body = { url, types: named.length ? named : DEFAULT_TYPES, description: description || null, ordered };
    try {
      const { data } = hook ? await call<Webhook>("PATCH", "api/webhooks", { query: query(hook), body }) : await call<Webhook>("POST", "api/webhooks", { body: { workspace_id: workspace.value!.id, ...body } });
      invalidate("webhooks", "audit");
      onClose();
      if (data.secret) showSecret(data, "Copy the secret now");
      else toast(`${hostOf(data.url)} is saved.`);
    } catch (failed) {
      setError(failed);
      setBusy(false);
    }
  };
  return (
    <Dialog title={hook ? `Edit ${hostOf(hook.url)}` : "Add a webhook"} onClose={() => busy || onClose()} onSubmit={() => void save()} foot={<><Button onClick={onClose} blocked={busy}>Cancel</Button><Button type="submit" kind="primary" busy={busy}>{hook ? "Save webhook" : "Add webhook"}</Button></>}>
      <Field label="Address" hint="A public https address." error={tried ? urlFault : null}>{(field) => <Input {...field} mono type="url" value={url} onText={setUrl} autocomplete="off" spellcheck={false} data-first />}</Field>
      <Field label="Events" hint={<>Audit actions such as <code>agent.updated</code>, or families such as <code>agent.*</code>, one a line.</>} error={tried && typesFault ? `${typesFault} is no event.` : null}>{(field) => <Area {...field} mono rows={4} value={types} onText={setTypes} spellcheck={false} />}</Field>
      <Field label="Description" hint="Optional.">{(field) => <Input {...field} value={description} onText={setDescription} />}</Field>
      <Check checked={ordered} onCheck={setOrdered}>Wait for each event before the next one is sent</Check>
      {error !== null && <Failure what="Not saved." error={error} {...(isStatus(error, 422) ? { kept: `At most ${MOST} webhooks are possible.` } : {})} />}
    </Dialog>
  );
}
