/** API keys: creation, the one showing of the key, rotation, revocation. */
import { useState } from "preact/hooks";
import { call, root } from "../base/api";
import { KEY_SOON } from "../base/attention";
import { invalidate } from "../base/cache";
import { tooLong } from "../base/config";
import { useKeys } from "../base/data";
import { closePart, href, openPart, route } from "../base/route";
import { can, workspace } from "../base/session";
import { ago, capital, count, date, DAY, isolated, moment, now, number, until, utc } from "../base/text";
import type { ApiKey, NewApiKey } from "../base/types";
import { Badge, Button, cx, Empty, options, Time, Told } from "../parts/base";
import { Confirm, copyId, FormDialog, Menu } from "../parts/dialog";
import { Banner, Reading, toast } from "../parts/feedback";
import { Check, Choices, Field, Input, Select } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { reveal } from "../parts/secret";
import { Table } from "../parts/rows";
import { LimitFields, limitFaults, limitParts, limitsBody, limitTitle, NO_LIMITS } from "./key-limits";

export const isLive = (key: ApiKey, at: number): boolean =>
  key.revoked_at === null && (key.expires_at === null || Date.parse(key.expires_at) > at);

/** Rotation ends the old key a number of whole seconds after the creation of the new one, to the millisecond. */
export const isReplaced = (key: ApiKey, all: ApiKey[]): boolean =>
  all.some(({ name, created_at }) => {
    const overlap = Date.parse(key.expires_at ?? "") - Date.parse(created_at);
    return name === key.name && overlap >= 0 && overlap % 1000 === 0;
  });

const PREFIX = { production: "svc_live_", development: "svc_test_" } as const;

function Shown({ apiKey: { environment, id } }: { apiKey: ApiKey }) {
  return (
    <code>
      {PREFIX[environment]}
      {id.slice(0, 4)}…
    </code>
  );
}

function Expiry({ apiKey }: { apiKey: ApiKey }) {
  const { revoked_at: revoked, expires_at: expires } = apiKey;
  if (revoked) return <span title={utc(revoked)}>Revoked {date(Date.parse(revoked))}</span>;
  if (!expires) return <>Never</>;
  const left = Date.parse(expires) - now.value;
  if (left <= 0) return <span title={utc(expires)}>Expired {date(Date.parse(expires))}</span>;
  if (left < KEY_SOON)
    return (
      <span title={utc(expires)}>
        <Badge tone="warn" icon="clock">
          in {until(left)}
        </Badge>
      </span>
    );
  return (
    <time dateTime={expires} title={utc(expires)}>
      {date(Date.parse(expires))}
    </time>
  );
}

export function Keys() {
  const keys = useKeys();
  const [revoking, setRevoking] = useState<ApiKey | null>(null);
  const [rotating, setRotating] = useState<ApiKey | null>(null);
  const may = can("api_keys:manage");
  const creating = may && route.value.params.get("new") !== null;
  const sorted =
    keys.data &&
    [...keys.data].sort(
      (a, b) => Number(isLive(b, now.value)) - Number(isLive(a, now.value)) || b.created_at.localeCompare(a.created_at),
    );
  const live = sorted?.filter((key) => isLive(key, now.value)).length ?? 0;
  const ended = (sorted?.length ?? 0) - live;
  return (
    <Page
      title="API keys"
      trail={[{ label: "Settings" }]}
      buttons={
        may && (
          <Button kind="primary" icon="plus" onClick={() => openPart("new")}>
            Create key
          </Button>
        )
      }
    >
      <Lead>
        <Told of="keys" />
      </Lead>
      <Reading of={keys} what="The keys" />
      {!sorted ? null : sorted.length === 0 ? (
        <div class="card">
          <Empty
            icon="key"
            title="No API keys yet"
            action={
              may && (
                <Button icon="plus" onClick={() => openPart("new")}>
                  Create key
                </Button>
              )
            }
          />
        </div>
      ) : (
        <>
          <Table
            name="API keys"
            kind="keys-table"
            columns={[
              ["Name", "c-name"],
              ["Key", "c-key third"],
              ["Environment", "c-env large"],
              ["Scope", "c-scope"],
              ["Per minute", "c-rate large right"],
              ["Last used", "c-used second"],
              ["Expires", "c-end"],
              ["Actions", "c-menu", true],
            ]}
          >
            {sorted.map((key) => {
              const on = isLive(key, now.value);
              const replaced = on && isReplaced(key, sorted);
              return (
                <tr key={key.id} class={cx(!on && "over")}>
                  <td class="strong" title={key.name}>
                    <div class="row wrap">
                      <span class="clip">{key.name}</span>
                      {replaced && <Badge>Replaced</Badge>}
                    </div>
                    <span class="below">
                      <Shown apiKey={key} />
                    </span>
                  </td>
                  <td class="third">
                    <Shown apiKey={key} />
                  </td>
                  <td class="large">{capital(key.environment)}</td>
                  <td title={limitTitle(key)}>
                    {key.scope}
                    {limitParts(key).map((part) => (
                      <span key={part} class="hint block clip">
                        {part}
                      </span>
                    ))}
                  </td>
                  <td class="large right">{number(key.rate_limit)}</td>
                  <td class="second">{key.last_used_at ? <Time at={key.last_used_at} /> : "Never"}</td>
                  <td>
                    <Expiry apiKey={key} />
                  </td>
                  <td class="c-menu">
                    <Menu
                      small
                      label={`Actions for ${key.name}`}
                      items={[
                        copyId(key.id),
                        may && on && !replaced ? { label: "Rotate key", icon: "back", run: () => setRotating(key) } : null,
                        may && on ? { label: "Revoke key", icon: "close", danger: true, run: () => setRevoking(key) } : null,
                      ]}
                    />
                  </td>
                </tr>
              );
            })}
          </Table>
          <p class="table-foot">
            {number(live)} active{ended > 0 && `, ${number(ended)} ended`}. Last use may lag by a minute.
          </p>
        </>
      )}
      {creating && <Create onClose={() => closePart("new")} />}
      {rotating && <Rotate apiKey={rotating} onClose={() => setRotating(null)} />}
      {revoking && <Revoke apiKey={revoking} onClose={() => setRevoking(null)} />}
    </Page>
  );
}

const PRESETS = [
  ["7", "In 7 days"],
  ["30", "In 30 days"],
  ["90", "In 90 days"],
  ["365", "In 1 year"],
  ["never", "Never"],
  ["date", "On a date"],
] as const;
const MOST_RATE = 1_000_000;

/** Shows a key, once, with a command that works as it is. */
function show(key: NewApiKey, old?: string): void {
  const limits = limitParts(key);
  // A limited key may not be able to read agents.
  const { href } = new URL(limits[0] ? "api/whoami" : `api/agents/configs?workspace_id=${key.workspace_id}`, root);
  reveal({
    title: "Copy your new key now",
    text: "This is the only time it is shown. We keep a hash of it, not the key.",
    secret: key.key,
    what: "the key",
    facts: [
      key.name,
      `Scope ${key.scope}`,
      capital(key.environment),
      `${number(key.rate_limit)} a minute`,
      key.expires_at ? `Expires ${date(Date.parse(key.expires_at))}` : "Never expires",
      ...limits,
      ...(old ? [old] : []),
    ],
    command: `export AGENTCFG_API_KEY='${key.key}'\ncurl '${href}' \\\n  -H "Authorization: Bearer $AGENTCFG_API_KEY"`,
  });
}

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [environment, setEnvironment] = useState<ApiKey["environment"]>("production");
  // Who sends people here for model calls says the scope that these need.
  const [scope, setScope] = useState<ApiKey["scope"]>(route.value.params.get("new") === "write" ? "write" : "read");
  const [expiry, setExpiry] = useState<string>("90");
  const [day, setDay] = useState("");
  const [rate, setRate] = useState("100");
  const [limited, setLimited] = useState(false);
  const [limits, setLimits] = useState(NO_LIMITS);
  const [tried, setTried] = useState(false);
  const nameFault = !name ? "A key needs a name." : tooLong(name, 100);
  const rateFault =
    /^\d+$/.test(rate) && Number(rate) >= 1 && Number(rate) <= MOST_RATE
      ? null
      : `A whole number from 1 to ${number(MOST_RATE)}.`;
  // A date means the end of that day, in local time.
  const end =
    expiry === "never"
      ? null
      : expiry === "date"
        ? day
          ? new Date(`${day}T23:59:59`).getTime()
          : NaN
        : Date.now() + Number(expiry) * DAY;
  const dayFault = end !== null && !(end > Date.now()) ? "Choose a day in the future." : null;
  const check = (): boolean => {
    setTried(true);
    return !nameFault && !rateFault && !dayFault && !(limited && Object.values(limitFaults(limits, scope)).some(Boolean));
  };
  const create = async (): Promise<void> => {
    const { data } = await call<NewApiKey>("POST", "api/api-keys", {
      body: {
        workspace_id: workspace.value!.id,
        name,
        environment,
        scope,
        rate_limit: Number(rate),
        ...(limited ? limitsBody(limits, scope) : {}),
        ...(end === null ? {} : { expires_at: new Date(end).toISOString() }),
      },
    });
    invalidate("keys", "audit");
    show(data);
  };
  return (
    <FormDialog title="Create an API key" verb="Create key" check={check} run={create} failed="Not created." onClose={onClose}>
      <div class="stack">
        <Field label="Name" hint={<Told of="key name" />} error={tried || count(name) > 100 ? nameFault : null}>
          {(field) => <Input {...field} value={name} onText={setName} autocomplete="off" data-first />}
        </Field>
        <Choices
          label="Environment"
          value={environment}
          onPick={setEnvironment}
          choices={[
            ["production", "Production"],
            ["development", "Development"],
          ]}
        />
        <div class="field">
          <Choices
            label="Scope"
            value={scope}
            onPick={setScope}
            choices={[
              ["read", "Read"],
              ["write", "Write"],
              ["admin", "Admin"],
            ]}
          />
          <p class="hint" role="status">
            <Told of={`scope ${scope}`} />
          </p>
        </div>
        <div class="two">
          <Field label="Expires" hint={end && !dayFault ? date(end) : end === null ? "Works until it is revoked." : undefined}>
            {(field) => (
              <Select {...field} value={expiry} onPick={setExpiry}>
                {options(PRESETS)}
              </Select>
            )}
          </Field>
          <Field label="Requests per minute" error={tried || rateFault ? rateFault : null}>
            {(field) => <Input {...field} inputMode="numeric" value={rate} onText={setRate} />}
          </Field>
        </div>
        {expiry === "date" && (
          <Field label="Last day" error={tried ? dayFault : null}>
            {(field) => (
              <Input
                {...field}
                type="date"
                value={day}
                onText={setDay}
                min={new Date(Date.now() - new Date().getTimezoneOffset() * 60_000).toISOString().slice(0, 10)}
              />
            )}
          </Field>
        )}
        <Check checked={limited} onCheck={setLimited}>
          Limit it to some permissions, agents or a label
        </Check>
        {limited && <LimitFields limits={limits} onChange={setLimits} scope={scope} tried={tried} />}
      </div>
    </FormDialog>
  );
}

const OVERLAPS = [
  ["0", "no time"],
  ["3600", "1 hour"],
  ["86400", "24 hours"],
  ["604800", "7 days"],
] as const;

export function Rotate({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const [overlap, setOverlap] = useState("86400");
  const run = async (): Promise<void> => {
    const { data } = await call<NewApiKey>("POST", "api/api-keys/rotate", {
      query: { key_id: apiKey.id },
      body: { overlap_seconds: Number(overlap) },
    });
    invalidate("keys", "audit");
    const wanted = Date.now() + Number(overlap) * 1000;
    const end = apiKey.expires_at === null ? wanted : Math.min(wanted, Date.parse(apiKey.expires_at));
    show(data, overlap === "0" ? "The old key has ended" : `The old key ends ${moment(end)}`);
  };
  return (
    <Confirm title={`Rotate ${isolated(apiKey.name)}?`} verb="Rotate key" danger={false} run={run} onClose={onClose}>
      <p>
        <Told of="rotate key" />
      </p>
      <Field label="Keep the old one working for" hint={<Told of="overlap" />}>
        {(field) => (
          <Select {...field} value={overlap} onPick={setOverlap}>
            {options(OVERLAPS)}
          </Select>
        )}
      </Field>
    </Confirm>
  );
}

function Revoke({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const used = apiKey.last_used_at !== null && Date.now() - Date.parse(apiKey.last_used_at) < DAY;
  const run = async (): Promise<void> => {
    await call("DELETE", "api/api-keys", { query: { key_id: apiKey.id } });
    invalidate("keys", "audit");
    toast(`${isolated(apiKey.name)} is revoked.`);
  };
  return (
    <Confirm
      title={`Revoke ${isolated(apiKey.name)}?`}
      verb="Revoke key"
      run={run}
      onClose={onClose}
      typed={
        used
          ? {
              text: apiKey.name,
              why: `It was last used ${ago(Date.parse(apiKey.last_used_at!), Date.now())}. Type ${apiKey.name} to revoke it.`,
            }
          : null
      }
    >
      The very next request with <Shown apiKey={apiKey} /> is refused. This cannot be undone.
    </Confirm>
  );
}

/** Sends people without keys to the page that makes them. */
export function KeyHint() {
  const keys = useKeys().data;
  return keys && keys.length === 0 && can("api_keys:manage") ? (
    <Banner
      title="No API key yet."
      action={
        <a class="button small" href={href("api-keys", { new: "write" })}>
          Create key
        </a>
      }
    >
      The commands below need one.
    </Banner>
  ) : null;
}
