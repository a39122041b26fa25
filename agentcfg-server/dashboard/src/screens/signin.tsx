/** Sign-in: by a one-time link, by a session token, or with the identity provider of the server. */
import { signal } from "../base/signals";
import { useEffect, useState } from "preact/hooks";
import { isStatus, root } from "../base/api";
import { LOGIN_LINK, phase, signInWithCode, signInWithToken } from "../base/session";
import { Button, Skeleton } from "../parts/base";
import { Banner, Failure, useSending } from "../parts/feedback";
import { Area, Field, Form } from "../parts/fields";

interface Login {
  code: string;
  user: string | null;
}

/** The code of the link, kept in memory and taken out of the address at once. */
export const login = signal<Login | null>(takeCode());

function takeCode(): Login | null {
  const fragment = new URLSearchParams(location.hash.slice(1));
  const code = fragment.get("login");
  if (!code) return null;
  history.replaceState(null, "", location.pathname + location.search);
  return { code, user: userOf(code) };
}

/** A code ends with the id of its user, in the URL-safe form of base64. */
function userOf(code: string): string | null {
  try {
    const text = code
      .slice(code.indexOf("-") + 1)
      .replaceAll("-", "+")
      .replaceAll("_", "/");
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    return code.includes("-") ? new TextDecoder("utf-8", { fatal: true }).decode(bytes) || null : null;
  } catch {
    return null;
  }
}

addEventListener("hashchange", () => {
  const found = takeCode();
  if (found) login.value = found;
});

/** Asks whether the server has a provider to sign in with: it would redirect to it. */
async function offered(): Promise<boolean> {
  try {
    const response = await fetch(new URL("ui/sign-in", root), { method: "HEAD", redirect: "manual" });
    return response.type === "opaqueredirect";
  } catch {
    return false;
  }
}

export function SignIn() {
  const [token, setToken] = useState("");
  const { busy, error, send, clear } = useSending("Not signed in.");
  const [provider, setProvider] = useState(false);
  const code = login.value;
  const user = code?.user ?? null;

  useEffect(() => {
    document.title = "Sign in · agentcfg";
    void offered().then(setProvider);
  }, []);

  const run = (sign: () => Promise<void>): Promise<void> => send(() => sign().then(() => void (login.value = null)));

  const problem = isStatus(error, 401) ? (
    <Banner tone="bad" title={code ? "This link was used or is too old." : "This token is not valid."}>
      {code ? "" : "It may have expired. "}Make a new one.
    </Banner>
  ) : (
    <Failure what="Not signed in." error={error} />
  );

  return (
    <main class="door">
      <div class="door-card">
        <img
          src={new URL("icon.svg", document.querySelector<HTMLScriptElement>("script[src]")!.src).href}
          alt=""
          width="40"
          height="40"
        />
        <h1>{user ? `Sign in as ${user}` : "Sign in to agentcfg"}</h1>
        {code ? (
          <>
            <p class="prose">The link works once. Continue only if you asked for it yourself.</p>
            {problem}
            <div class="row">
              <Button kind="primary" busy={busy} data-first onClick={() => void run(() => signInWithCode(code.code))}>
                Continue{user ? ` as ${user}` : ""}
              </Button>
              <Button
                onClick={() => {
                  login.value = null;
                  clear();
                }}
              >
                Cancel
              </Button>
            </div>
          </>
        ) : (
          <>
            {provider ? (
              <a class="button primary" href={new URL("ui/sign-in", root).href} data-leave>
                Continue with your identity provider
              </a>
            ) : (
              <p class="prose">
                With a link: run <code>{LOGIN_LINK} ada</code> on the server and open what it prints. It works once, for 5
                minutes.
              </p>
            )}
            <Form class="stack" onSend={() => token.trim() && void run(() => signInWithToken(token.trim()))}>
              <Field
                label="Session token"
                hint={
                  <>
                    From {provider ? "your identity provider" : <code>agentcfg-server token --user ada</code>}, or from your app.
                    It is sent once and kept nowhere in this browser.
                  </>
                }
              >
                {(field) => (
                  <Area {...field} value={token} onText={setToken} mono rows={3} autocomplete="off" spellcheck={false} />
                )}
              </Field>
              {problem}
              <div class="row">
                <Button type="submit" kind={provider ? undefined : "primary"} busy={busy} blocked={!token.trim()}>
                  Sign in
                </Button>
              </div>
            </Form>
          </>
        )}
      </div>
    </main>
  );
}

export function Starting() {
  return phase.value === "loading" ? (
    <main class="door starting">
      <h1 class="hidden">agentcfg</h1>
      <div class="door-card">
        <Skeleton rows={4} tall />
      </div>
    </main>
  ) : null;
}
