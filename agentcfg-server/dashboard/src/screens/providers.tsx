/** Provider keys of the workspace, and who pays for each model. */
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../base/api";
import { invalidate } from "../base/cache";
import { useAgents, useModels, useProviderKeys } from "../base/data";
import { PROVIDERS, providerName } from "../base/providers";
import { can, workspace } from "../base/session";
import { capital, date, list, number, plural } from "../base/text";
import type { Agent, Model, ProviderKey } from "../base/types";
import { Badge, Button, Told } from "../parts/base";
import { Confirm } from "../parts/dialog";
import { attempt, badToast, Banner, Failure, Reading, toast, useSending } from "../parts/feedback";
import { Field, Form, Input } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { Table } from "../parts/rows";

const PAYS: Record<Model["credential"], string> = {
  workspace: "Your key",
  managed: "Managed by the server",
  none: "No key, refused",
};

export function Providers() {
  const keys = useProviderKeys();
  const models = useModels();
  const agents = useAgents().data ?? [];
  const { name, plan } = workspace.value!;
  const free = plan === "free";
  const stored = keys.data?.map(({ provider }) => providerName(provider)) ?? [];
  /** Each server has the first ones; that it has further ones is known by their models and keys. */
  const providers = [
    ...new Set([...Object.keys(PROVIDERS), ...[...(models.data ?? []), ...(keys.data ?? [])].map(({ provider }) => provider)]),
  ];
  const managed = providers
    .filter((provider) => models.data?.some((model) => model.provider === provider && model.credential === "managed"))
    .map(providerName);
  const uses = (model: string): Agent[] => agents.filter((agent) => agent.model === model);
  return (
    <Page title="AI providers" trail={[{ label: "Settings" }, { label: "Integrations" }]}>
      <Lead>
        <Told of="providers" />
      </Lead>
      {free && (
        <Banner icon="lock" title="Your own provider keys need Pro, Team or Enterprise.">
          {name} is on {capital(plan)}
          {managed.length > 0 && `: calls of ${list(managed)} models use the server's managed keys`}. Ask an operator of this
          server to change the plan.
          {stored.length > 0 && ` Your ${list(stored)} key stays stored and works again after an upgrade.`}
        </Banner>
      )}
      <Reading of={keys.data ? models : keys} what="The provider keys" />
      {keys.data && models.data && (
        <>
          <div class="providers">
            {providers.map((provider) => {
              const own = models.data!.filter((model) => model.provider === provider);
              return (
                <ProviderCard
                  key={provider}
                  provider={provider}
                  stored={keys.data!.find((key) => key.provider === provider)}
                  models={own}
                  used={own.flatMap(({ id }) => uses(id)).length}
                  free={free}
                />
              );
            })}
          </div>
          <Table
            name="Models"
            kind="models-table"
            columns={[
              ["Model"],
              ["Id", "third"],
              ["Provider", "third"],
              ["Next call is paid by"],
              ["Used by", "second"],
              ["Status", "right c-state"],
            ]}
          >
            {models.data.map((model) => {
              const count = uses(model.id).length;
              const soon = model.status === "coming_soon";
              return (
                <tr key={model.id} class={soon ? "over" : undefined}>
                  <td class="strong">{model.display_name}</td>
                  <td class="third">
                    <code>{model.id}</code>
                  </td>
                  <td class="third">{providerName(model.provider)}</td>
                  <td>{soon ? "No calls yet" : PAYS[model.credential]}</td>
                  <td class="second">{count ? plural(count, "agent") : "None"}</td>
                  <td class="right">{soon ? <Badge>Coming soon</Badge> : "Available"}</td>
                </tr>
              );
            })}
          </Table>
        </>
      )}
    </Page>
  );
}

function ProviderCard({
  provider,
  stored,
  models,
  used,
  free,
}: {
  provider: string;
  stored: ProviderKey | undefined;
  models: Model[];
  used: number;
  free: boolean;
}) {
  const name = providerName(provider);
  const may = can("provider_keys:manage");
  const [replacing, setReplacing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const [key, setKey] = useState("");
  const card = useRef<HTMLElement>(null);
  useEffect(() => {
    if (replacing) card.current!.querySelector("input")?.focus();
  }, [replacing]);
  const { busy, error, send, clear } = useSending("Not saved.");
  const pays = models.find(({ status }) => status === "available")?.credential ?? "none";
  const fault = key && !/^[\x21-\x7e]{1,500}$/.test(key) ? "1–500 visible characters without spaces." : null;
  const save = async (): Promise<void> => {
    await call("PUT", "api/provider-keys", { query: { workspace_id: workspace.value!.id, provider }, body: { api_key: key } });
    setKey("");
    setReplacing(false);
    invalidate("providers", "audit");
    toast(`Your ${name} key is saved.`);
  };
  const test = (): Promise<void> =>
    attempt("Not tested.", async () => {
      const { data } = await call<{ ok: boolean; message: string }>("POST", "api/provider-keys/test", {
        query: { workspace_id: workspace.value!.id, provider },
      });
      if (data.ok) toast(`The ${name} key is valid.`);
      else badToast(`The ${name} key failed: ${data.message}`);
    });
  const entering = may && !free && (!stored || replacing);
  return (
    <section ref={card} class="card provider" aria-label={name}>
      <div class="row">
        <span class="provider-mark" aria-hidden="true">
          {name[0]}
        </span>
        <div class="grow">
          <h2>{name}</h2>
          <p class="dim small-text">
            {plural(models.length, "model")}
            {used > 0 && `, used by ${plural(used, "agent")}`}
          </p>
        </div>
        {stored && !free ? (
          <Badge tone="ok" icon="lock">
            Your key
          </Badge>
        ) : pays === "managed" ? (
          <Badge>Managed</Badge>
        ) : (
          <Badge tone="warn">No key</Badge>
        )}
      </div>
      {stored && (
        <p class="prose">
          Saved {date(Date.parse(stored.updated_at))}, fingerprint <code>{stored.fingerprint}</code>.{" "}
          {free ? "Not used on this plan." : `The next call of each ${name} model is paid with it.`}
        </p>
      )}
      {!stored && !entering && (
        <p class="prose">
          {pays === "managed"
            ? `The server's managed key pays for ${name} models.`
            : `Calls of ${name} models are refused: there is no key for them.`}
        </p>
      )}
      {entering && (
        <Form onSend={() => key && !fault && void send(save)}>
          <Field label={`Your ${name} key`} error={fault}>
            {(field) => (
              <div class="row">
                <Input
                  {...field}
                  mono
                  type="password"
                  value={key}
                  onText={(text) => setKey(text.trim())}
                  autocomplete="off"
                  spellcheck={false}
                />
                <Button type="submit" busy={busy} blocked={!key || fault !== null}>
                  Save key
                </Button>
                {replacing && (
                  <Button
                    kind="quiet"
                    onClick={() => {
                      setReplacing(false);
                      setKey("");
                      clear();
                    }}
                  >
                    Cancel
                  </Button>
                )}
              </div>
            )}
          </Field>
        </Form>
      )}
      <Failure what="Not saved." error={error} />
      {stored && may && !replacing && (
        <div class="row">
          <Button onClick={() => void test()}>Test key</Button>
          {!free && <Button onClick={() => setReplacing(true)}>Replace key</Button>}
          <Button kind="quiet danger" onClick={() => setDeleting(true)}>
            Delete key
          </Button>
        </div>
      )}
      {deleting && (
        <Confirm
          title={`Delete the ${name} key?`}
          verb="Delete key"
          onClose={() => setDeleting(false)}
          run={async () => {
            await call("DELETE", "api/provider-keys", { query: { workspace_id: workspace.value!.id, provider } });
            invalidate("providers", "audit");
            toast(`Your ${name} key is deleted.`);
          }}
        >
          From the next call on, the server's managed key pays for the {number(models.length)} {name} models. Where the server has
          none, their calls are refused.{used > 0 && ` ${plural(used, "agent uses", "agents use")} them.`}
        </Confirm>
      )}
    </section>
  );
}
