/** Who is signed in, and what the session may do in the workspace that is shown. */
import { derived, signal } from "./signals";
import { setLimits } from "./agent-fields";
import { ApiError, call, ended, isStatus, root, session, type Options } from "./api";
import { forget } from "./cache";
import { discard, handOver } from "./drafts";
import { shownWorkspace } from "./route";
import type { Whoami, Workspace } from "./types";

/** Prints a link that signs a user in, where no identity provider does. */
export const LOGIN_LINK = "agentcfg-server login-link --user";

export type Phase = "loading" | "signed-out" | "ready" | "failed";

export const phase = signal<Phase>("loading");
export const failedWith = signal<unknown>(null);
export const me = signal<Whoami | null>(null);

export const workspace = derived<Workspace | null>(() => {
  const all = me.value?.workspaces ?? [];
  return (shownWorkspace.value ? all.find(({ id }) => id === shownWorkspace.value) : all[0]) ?? null;
});

export const can = (permission: string): boolean => workspace.value?.permissions.includes(permission) ?? false;

/** Asks the server who is signed in. Throws what is no refusal of the session. */
export async function refresh(): Promise<void> {
  try {
    // A server that accepts the connection and does not answer counts as lost.
    const { data } = await call<Whoami>("GET", "api/whoami", { signal: AbortSignal.timeout(10_000) });
    const before = me.peek();
    if (before?.id !== data.id) {
      forget();
      handOver(before?.id, data.id);
    }
    setLimits(data.workspaces[0]?.limits);
    me.value = data;
    ended.value = false;
    phase.value = "ready";
  } catch (error) {
    if (isStatus(error, 401)) {
      if (!me.peek()) {
        ended.value = false;
        phase.value = "signed-out";
      }
      return;
    }
    if (!me.peek()) {
      failedWith.value = error;
      phase.value = "failed";
    }
    throw error;
  }
}

session.same = async () => {
  const shown = me.peek()?.id;
  const check = (): void => {
    if (me.peek()?.id !== shown) throw new ApiError(0, "another user is signed in here", null, null);
  };
  if (shown) await refresh();
  check();
  return check;
};

/** Asks again who is signed in; that the server cannot be reached is shown by the connection. */
export const recheck = (): Promise<void> => refresh().catch(() => undefined);

/** Takes a workspace out of the session before the server is asked again, so that nothing of it is read any more. */
export function without(id: string): void {
  const now = me.peek();
  if (now) me.value = { ...now, workspaces: now.workspaces.filter((workspace) => workspace.id !== id) };
}

/** Tells the other tabs of a session that begins or ends, so that they do not go on with the one before. */
const tabs = new BroadcastChannel(`agentcfg ${root.pathname}`);
tabs.onmessage = () => void (me.peek() && recheck());

async function begin(options: Options): Promise<void> {
  await call("POST", "api/sessions", options);
  tabs.postMessage(null);
  await refresh();
}

export const signInWithCode = (code: string): Promise<void> => begin({ body: { code }, bearer: "" });
export const signInWithToken = (token: string): Promise<void> => begin({ bearer: token });

export async function signOut(): Promise<void> {
  await call("DELETE", "api/sessions").catch((error) => {
    // A session that has ended needs no end.
    if (!isStatus(error, 401)) throw error;
  });
  tabs.postMessage(null);
  leave();
}

export function leave(): void {
  me.value = null;
  ended.value = false;
  forget();
  discard();
  phase.value = "signed-out";
}
