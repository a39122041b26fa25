/** The workspace itself: name, plan, export, end. */
import { batch } from "../base/signals";
import { useState } from "preact/hooks";
import { address, call } from "../base/api";
import { forget } from "../base/cache";
import { textFault } from "../base/config";
import { useKeys } from "../base/data";
import { useTyped } from "../base/drafts";
import { go, href, shownWorkspace } from "../base/route";
import { can, refresh, without, workspace } from "../base/session";
import { capital, isolated, now, number, plural } from "../base/text";
import type { Workspace } from "../base/types";
import { Button, Told } from "../parts/base";
import { Confirm, FormDialog } from "../parts/dialog";
import { Failure, toast, useSending } from "../parts/feedback";
import { Field, Form, Input } from "../parts/fields";
import { Page } from "../parts/page";
import { CopyButton } from "../parts/secret";
import { isLive } from "./keys";

const LIMIT = 100;
const nameFault = (name: string): string | null => textFault(name, LIMIT, "A workspace needs a name.");

export function WorkspaceScreen() {
  const { id, plan, active_agents: active, agent_limit: limit, role } = workspace.value!;
  const may = can("workspace:manage");
  const [erasing, setErasing] = useState(false);
  return (
    <Page title="Workspace" trail={[{ label: "Settings" }]} width="form">
      <Rename key={id} />
      <section class="group">
        <h2>Plan</h2>
        <p class="prose">
          {capital(plan)}
          {active !== undefined &&
            `, ${limit ? `${number(active)} of ${number(limit)} agents in use` : `${plural(active, "agent")}, without a limit`}`}
          . <Told of="plan" />
        </p>
      </section>
      <section class="group">
        <h2>Id</h2>
        <div class="row">
          <code class="clip">{id}</code>
          <CopyButton text={id} what="Copy id" />
        </div>
        {role && <p class="hint">Your role is {role}.</p>}
      </section>
      {may && (
        <section class="group">
          <h2>Export</h2>
          <p class="prose">
            <Told of="export" />
          </p>
          <div>
            <Export />
          </div>
        </section>
      )}
      {may && (
        <section class="group">
          <h2>Erase</h2>
          <p class="prose">
            <Told of="erase" />
          </p>
          <div>
            <Button kind="quiet danger" class="outlined" onClick={() => setErasing(true)}>
              Erase workspace
            </Button>
          </div>
        </section>
      )}
      {erasing && <Erase onClose={() => setErasing(false)} />}
    </Page>
  );
}

function Export() {
  const { id, name } = workspace.value!;
  const file = `${name.replace(/[^\p{L}\p{N}_-]+/gu, "-")}-${new Date().toISOString().slice(0, 10)}.ndjson`;
  return (
    <a class="button" href={address("api/workspaces/export", { workspace_id: id }).href} download={file}>
      Export workspace
    </a>
  );
}

function Rename() {
  const current = workspace.value!;
  const [typed, setTyped] = useTyped<{ name: string; safe?: false }>(`name ${current.id}`);
  // What was not typed is the name of now, also after another session has changed it.
  const name = typed?.name ?? current.name;
  const { busy, error, send } = useSending("Not saved.");
  const may = can("workspace:manage");
  const fault = nameFault(name);
  const save = async (): Promise<void> => {
    await call("PATCH", "api/workspaces", { query: { workspace_id: current.id }, body: { name } });
    await refresh();
    setTyped(null);
    toast("The name is saved.");
  };
  return (
    <Form class="group" onSend={() => !fault && name !== current.name && void send(save)}>
      <Field label="Name" error={fault} {...(name.length > 80 ? { counted: { text: name, limit: LIMIT } } : {})}>
        {(field) => (
          <div class="row">
            <Input {...field} value={name} onText={(name) => setTyped(name === current.name ? null : { name })} readOnly={!may} />
            {may && (
              <Button type="submit" kind="primary" busy={busy} blocked={fault !== null || name === current.name}>
                Save
              </Button>
            )}
          </div>
        )}
      </Field>
      <Failure what="Not saved." error={error} />
    </Form>
  );
}

function Erase({ onClose }: { onClose: () => void }) {
  const { id, name } = workspace.value!;
  const keys = useKeys().data?.filter((key) => isLive(key, now.value)).length ?? 0;
  const run = async (): Promise<void> => {
    await call("DELETE", "api/workspaces", { query: { workspace_id: id, confirm: name } });
    batch(() => {
      without(id);
      forget();
      shownWorkspace.value = null;
      go(new URL(href("overview"), location.origin).pathname, true);
    });
    await refresh();
    toast(`${isolated(name)} is erased.`);
  };
  return (
    <Confirm
      title={`Erase ${isolated(name)}?`}
      verb="Erase workspace"
      run={run}
      onClose={onClose}
      extra={<Export />}
      typed={{ text: name, why: `Type ${name} to erase it.` }}
    >
      {keys > 0 ? (keys === 1 ? "Its key stops working" : `All ${number(keys)} keys stop working`) : "Its keys stop working"}, all
      members lose access and webhooks stop, at once. Agents, versions and audit log are then removed for good. Export first: it
      cannot be brought back.
    </Confirm>
  );
}

export function NewWorkspace({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [tried, setTried] = useState(false);
  const fault = nameFault(name);
  const create = async (): Promise<void> => {
    const { data } = await call<Workspace>("POST", "api/workspaces", { body: { name } });
    await refresh();
    go(href("overview", { workspace: data.id }));
    toast(`${isolated(data.name)} is created.`);
  };
  return (
    <FormDialog
      narrow
      title="New workspace"
      verb="Create workspace"
      check={() => {
        setTried(true);
        return !fault;
      }}
      run={create}
      failed="Not created."
      onClose={onClose}
    >
      <Field label="Name" hint={<Told of="owner" />} error={tried ? fault : null}>
        {(field) => <Input {...field} value={name} onText={setName} autocomplete="off" data-first />}
      </Field>
    </FormDialog>
  );
}
