/** One webhook: its deliveries, tests, replay, and the end of it. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { call } from "../base/api";
import { invalidate, update } from "../base/cache";
import { useWebhooks } from "../base/data";
import { go, href, route } from "../base/route";
import { disabledWhy } from "../base/attention";
import { hookName } from "../base/audit-words";
import { can } from "../base/session";
import { date, now, number, utc } from "../base/text";
import type { Delivery, Webhook } from "../base/types";
import { Badge, Button, Empty, LinkButton, Time, Told } from "../parts/base";
import { Confirm, Menu } from "../parts/dialog";
import { attempt, badToast, Banner, Reading, toast } from "../parts/feedback";
import { Page } from "../parts/page";
import { OpeningRow, Table } from "../parts/rows";
import { arrived, Edit, query, showSecret, State, useDeliveries } from "./webhooks";

/** How often the deliveries are read while they are shown. */
const AGAIN = 4_000;

export function WebhookScreen() {
  const hooks = useWebhooks();
  const open = hooks.data?.find((hook) => hook.id === route.value.params.get("id"));
  if (open) return <One hook={open} />;
  return (
    <Page title="Webhook" trail={[{ label: "Webhooks", to: href("webhooks") }]}>
      {hooks.data ? (
        <Empty
          icon="webhook"
          title="There is no such webhook"
          action={<LinkButton to={href("webhooks")}>Show all webhooks</LinkButton>}
        />
      ) : (
        <Reading of={hooks} what="The webhook" rows={5} tall />
      )}
    </Page>
  );
}

/** What there is to say of a thing, a line each; what is empty has none. */
function Facts({ rows }: { rows: [name: string, content: ComponentChildren][] }) {
  return (
    <dl class="facts-table">
      {rows.map(
        ([name, content]) =>
          content && (
            <div key={name}>
              <dt>{name}</dt>
              <dd>{content}</dd>
            </div>
          ),
      )}
    </dl>
  );
}

function One({ hook }: { hook: Webhook }) {
  const may = can("webhooks:manage");
  const deliveries = useDeliveries(hook, AGAIN);
  const [asking, setAsking] = useState<"edit" | "delete" | "rotate" | null>(null);
  const [replaying, setReplaying] = useState<Delivery | "all" | null>(null);
  const [opened, setOpened] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const name = hookName(hook.url);
  const done = (): void => invalidate("webhooks", "audit");

  const once = async (failed: string, run: () => Promise<void>): Promise<void> => {
    setBusy(true);
    await attempt(failed, run);
    setBusy(false);
  };
  const test = (): Promise<void> =>
    once("The test was not sent.", async () => {
      const { data } = await call<Delivery>("POST", "api/webhooks/test", { query: query(hook) });
      if (arrived(data)) toast(`The test arrived: ${data.status} after ${number(data.duration_ms)} ms.`);
      else badToast(`The test failed: ${data.error ?? `the receiver answered ${data.status}`}.`);
      done();
    });
  const enable = (enabled: boolean): Promise<void> =>
    once("Not changed.", async () => {
      await call("PATCH", "api/webhooks", { query: query(hook), body: { enabled } });
      toast(`${name} is ${enabled ? "enabled" : "disabled"}.`);
      done();
    });
  return (
    <Page
      title={name}
      trail={[{ label: "Webhooks", to: href("webhooks") }]}
      buttons={
        may && (
          <>
            <Button busy={busy} onClick={() => void test()}>
              Send a test
            </Button>
            <Menu
              label={`Actions for ${name}`}
              items={[
                { label: "Edit", icon: "edit", run: () => setAsking("edit") },
                {
                  label: hook.enabled ? "Disable" : "Enable",
                  icon: hook.enabled ? "stop" : "play",
                  run: () => void enable(!hook.enabled),
                },
                { label: "Replay all events", icon: "back", run: () => setReplaying("all") },
                { label: "Rotate secret", icon: "key", run: () => setAsking("rotate") },
                { label: "Delete webhook", icon: "trash", danger: true, run: () => setAsking("delete") },
              ]}
            />
          </>
        )
      }
    >
      {!hook.enabled && hook.disabled_reason && (
        <Banner
          tone="bad"
          title={`This webhook was disabled on ${date(Date.parse(hook.updated_at))}.`}
          action={
            may && (
              <Button small busy={busy} onClick={() => void enable(true)}>
                Enable
              </Button>
            )
          }
        >
          {disabledWhy(hook)}
        </Banner>
      )}
      <Facts
        rows={[
          ["Address", <code>{hook.url}</code>],
          ["Events", <code>{hook.types.join(" ")}</code>],
          ["Description", hook.description],
          ["Order", hook.ordered ? "One after the other" : "Several at a time"],
          ["State", <State hook={hook} />],
        ]}
      />
      <h2 class="section">Deliveries</h2>
      {!deliveries.data ? (
        <Reading of={deliveries} what="The deliveries" rows={5} />
      ) : deliveries.data.length === 0 ? (
        <div class="card">
          <Empty icon="webhook" title="Nothing was sent yet" />
        </div>
      ) : (
        <Table
          name="The last deliveries"
          kind="deliveries-table"
          columns={[
            ["Event"],
            ["Attempt", "c-attempt second"],
            ["Answer"],
            ["Next attempt", "third"],
            ["When", "right second c-changed"],
            may && ["Replay", "c-act", true],
          ]}
        >
          {deliveries.data.map((one) => {
            const key = `${one.id} ${one.attempt} ${one.at}`;
            const next = one.next_attempt_at;
            // An attempt that was due is in a line of its own.
            const planned = next && Date.parse(next) > now.value && <Time planned at={next} />;
            return (
              <OpeningRow
                key={key}
                open={opened === key}
                toggle={() => setOpened(opened === key ? null : key)}
                first={
                  <span>
                    <code>{one.type}</code>
                    {one.revision !== null && <span class="dim"> {number(one.revision)}</span>}
                  </span>
                }
                details={() => (
                  <Facts
                    rows={[
                      ["Error", one.error],
                      ["Response", one.response],
                      ["Event id", <code>{one.id}</code>],
                      ["Sent", `${utc(one.at)}, attempt ${one.attempt}, ${number(one.duration_ms)} ms`],
                      ["Next attempt", planned],
                    ]}
                  />
                )}
                columns={may ? [6, 5, 3] : [5, 4, 2]}
              >
                <td class="second">{one.attempt}</td>
                <td title={one.error ?? one.response ?? undefined}>
                  {one.status !== null && <Badge tone={one.status < 300 ? "ok" : "bad"}>{one.status}</Badge>}{" "}
                  <span class="dim">{one.status === null ? one.error : `${number(one.duration_ms)} ms`}</span>
                </td>
                <td class="third dim">{planned}</td>
                <td class="right dim second">
                  <Time at={one.at} />
                </td>
                {may && (
                  <td class="right">
                    {one.revision !== null && (
                      <Button small onClick={() => setReplaying(one)}>
                        Replay
                      </Button>
                    )}
                  </td>
                )}
              </OpeningRow>
            );
          })}
        </Table>
      )}
      {asking === "edit" && <Edit hook={hook} onClose={() => setAsking(null)} />}
      {asking === "delete" && (
        <Confirm
          title={`Delete ${name}?`}
          verb="Delete webhook"
          onClose={() => setAsking(null)}
          run={async () => {
            await call("DELETE", "api/webhooks", { query: query(hook) });
            toast(`${name} is deleted.`);
            // Its row would read deliveries that are no more.
            update("api/webhooks", hook);
            go(href("webhooks"));
            setTimeout(done);
          }}
        >
          Its list of deliveries goes, too. This cannot be undone.
        </Confirm>
      )}
      {asking === "rotate" && (
        <Confirm
          title="Rotate the secret?"
          verb="Rotate secret"
          danger={false}
          onClose={() => setAsking(null)}
          run={async () => {
            const { data } = await call<Webhook>("POST", "api/webhooks/rotate-secret", { query: query(hook) });
            done();
            showSecret(data, "Copy the new secret now");
          }}
        >
          <Told of="rotate secret" />
        </Confirm>
      )}
      {replaying && (
        <Replay hook={hook} from={replaying === "all" ? null : replaying.revision} onClose={() => setReplaying(null)} />
      )}
    </Page>
  );
}

/** The cursor of the feed before a revision. Cursors are opaque, so it is looked up in the feed. */
async function cursorBefore({ workspace_id }: Webhook, revision: number): Promise<string> {
  let cursor = "start";
  for (;;) {
    const { data, headers } = await call<{ cursor: string; revision: number }[]>("GET", "api/changes", {
      query: { workspace_id, after: cursor, limit: 1000 },
    });
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
        await call("POST", "api/webhooks/replay", {
          query: query(hook),
          body: { after: from === null ? "start" : await cursorBefore(hook, from) },
        });
        toast("The events are sent again.");
        invalidate("webhooks", "audit");
      }}
    >
      {from === null ? "Every matching event since the workspace exists" : "This event and every matching one after it"} is sent
      again, with the same ids.
    </Confirm>
  );
}
