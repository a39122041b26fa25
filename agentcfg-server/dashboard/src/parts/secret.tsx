/** A secret that is shown once: a key of the API, the secret of a webhook. */
import { signal } from "../base/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { copy, selectText } from "../base/copy";
import { holding } from "../base/drafts";
import { listening } from "../base/listening";
import { Button } from "./base";
import { Dialog } from "./dialog";
import { Check } from "./fields";

export interface Secret {
  title: string;
  text: string;
  secret: string;
  /** What the secret is called in "I have stored … in a safe place". */
  what: string;
  facts: string[];
  command?: string;
}

/** The secret on show. It belongs to no screen, so navigation does not lose it. */
const secret = signal<Secret | null>(null);

/** Shows a secret after the dialog that asked for it has closed, so that focus comes back to the page. */
export function reveal(shown: Secret): void {
  holding.value = true;
  setTimeout(() => (secret.value = shown));
}

export function done(): void {
  secret.value = null;
  holding.value = false;
}

type Copied = "not" | "done" | "failed";

const SAID: Record<Copied, string> = {
  not: "Not copied yet",
  done: "Copied",
  failed: "Copying failed. It is selected: press Ctrl+C.",
};

export function SecretDialog() {
  const shown = secret.value;
  return shown && <Reveal shown={shown} />;
}

function Reveal({ shown }: { shown: Secret }) {
  const [copied, setCopied] = useState<Copied>("not");
  const [stored, setStored] = useState(false);
  const text = useRef<HTMLElement>(null);
  useEffect(() => {
    // The copying by hand counts, too.
    const byHand = (): void => {
      if (getSelection()?.toString().includes(shown.secret)) setCopied("done");
    };
    return listening("copy", byHand);
  }, []);
  const take = async (): Promise<void> => {
    const done = await copy(shown.secret);
    setCopied(done ? "done" : "failed");
    if (!done) selectText(text.current);
  };
  const ready = stored || copied === "done";
  return (
    <Dialog
      title={shown.title}
      locked
      onClose={() => undefined}
      note={
        <span role="status" class={copied === "failed" ? "fault" : "hint"}>
          {SAID[copied]}
        </span>
      }
      foot={
        <Button kind={copied === "done" ? "primary" : undefined} blocked={!ready} onClick={done}>
          Done
        </Button>
      }
    >
      <p class="prose">{shown.text}</p>
      <div class="secret">
        <code ref={text} data-secret>
          {shown.secret}
        </code>
        <Button
          kind={copied === "done" ? undefined : "primary"}
          icon={copied === "done" ? "check" : "copy"}
          onClick={() => void take()}
          data-first
        >
          Copy
        </Button>
      </div>
      {shown.facts.length > 0 && (
        <ul class="facts">
          {shown.facts.map((fact) => (
            <li key={fact}>{fact}</li>
          ))}
        </ul>
      )}
      {shown.command && <Snippet title="Try it" text={shown.command} done={() => setCopied("done")} />}
      <Check checked={stored} onCheck={setStored}>
        I have stored {shown.what} in a safe place
      </Check>
    </Dialog>
  );
}

/** Text to copy, such as a command. */
export function Snippet({ title, text, done }: { title: ComponentChildren; text: string; done?: () => void }) {
  const code = useRef<HTMLPreElement>(null);
  return (
    <div class="snippet">
      <div class="label">
        <h2 class="as-label">{title}</h2>
        <CopyButton text={text} what="Copy" done={done} failed={() => selectText(code.current)} />
      </div>
      <pre class="code" ref={code} tabIndex={0}>
        {text}
      </pre>
    </div>
  );
}

export function CopyButton({
  text,
  what,
  done,
  failed,
  small = true,
}: {
  text: string;
  what: string;
  /** Runs after the copy. */
  done?: (() => void) | undefined;
  failed?: () => void;
  small?: boolean;
}) {
  const [copied, setCopied] = useState<Copied>("not");
  const take = async (): Promise<void> => {
    const isDone = await copy(text);
    setCopied(isDone ? "done" : "failed");
    (isDone ? done : failed)?.();
    setTimeout(() => setCopied("not"), 4_000);
  };
  return (
    <>
      <Button kind="quiet" small={small} icon={copied === "done" ? "check" : "copy"} onClick={() => void take()}>
        {copied === "done" ? "Copied" : copied === "failed" ? "Copying failed" : what}
      </Button>
      <span class="hidden" role="status">
        {copied === "not" ? "" : SAID[copied]}
      </span>
    </>
  );
}
