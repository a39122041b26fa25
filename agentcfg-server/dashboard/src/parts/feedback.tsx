/** What the page says about itself: toasts, banners, errors. */
import { signal } from "../base/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, Unreachable } from "../base/api";
import type { Resource } from "../base/cache";
import { listening } from "../base/listening";
import { capital, plural } from "../base/text";
import { Button, cx, heldBy, Icon, Skeleton } from "./base";

interface ToastData {
  id: number;
  text: string;
  bad: boolean;
  action?: { label: string; run: () => void };
}

export const toasts = signal<ToastData[]>([]);
let next = 0;

export function toast(text: string, action?: ToastData["action"]): void {
  toasts.value = [...toasts.value.slice(-2), { id: (next += 1), text, bad: false, ...(action ? { action } : {}) }];
}

export function badToast(text: string): void {
  toasts.value = [...toasts.value.slice(-2), { id: (next += 1), text, bad: true }];
}

const remove = (id: number): void => {
  toasts.value = toasts.value.filter((shown) => shown.id !== id);
};

const SHOWN = 5_000;
const SHOWN_WITH_ACTION = 10_000;

function Toast({ data }: { data: ToastData }) {
  const [held, setHeld] = useState(false);
  useEffect(() => {
    if (held || data.bad) return;
    const timer = setTimeout(() => remove(data.id), data.action ? SHOWN_WITH_ACTION : SHOWN);
    return () => clearTimeout(timer);
  }, [held]);
  return (
    <div class={cx("toast", data.bad && "bad")} {...heldBy(setHeld)}>
      <Icon name={data.bad ? "warn" : "check"} />
      <span class="grow">{data.text}</span>
      {data.action && (
        <Button
          kind="quiet"
          small
          onClick={() => {
            data.action!.run();
            remove(data.id);
          }}
        >
          {data.action.label}
        </Button>
      )}
      <Button kind="quiet" small icon="close" label="Close" onClick={() => remove(data.id)} />
    </div>
  );
}

export function Toasts() {
  const list = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const toToasts = (event: KeyboardEvent): void => {
      const button = list.current?.querySelector("button");
      if (event.key !== "F6" || !button) return;
      event.preventDefault();
      button.focus();
    };
    return listening("keydown", toToasts);
  }, []);
  return (
    <div class="toasts" role="status" ref={list}>
      {toasts.value.map((data) => (
        <Toast key={data.id} data={data} />
      ))}
    </div>
  );
}

type Tone = "warn" | "bad" | "ok";

export function Banner({
  tone,
  icon,
  title,
  children,
  action,
}: {
  tone?: Tone;
  icon?: string;
  title?: ComponentChildren;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class={cx("banner", tone)} role={tone === "bad" ? "alert" : "status"}>
      <Icon name={icon ?? (tone === "ok" ? "done" : tone ? "warn" : "info")} />
      <div class="grow">
        {title && <b>{title} </b>}
        {children}
      </div>
      {action}
    </div>
  );
}

/** The text of an error: the server's own message. */
export function errorText(error: unknown): string {
  if (error instanceof ApiError) {
    // A name of the API, or an id, is written as it is.
    const message = /^[a-z]+[ ,]/.test(error.message) ? capital(error.message) : error.message;
    const wait = error.status === 429 && error.retryAfter ? ` Try again in ${plural(error.retryAfter, "second")}.` : "";
    return (/[.!?]$/.test(message) ? message : `${message}.`) + wait;
  }
  return error instanceof Unreachable ? error.message : "This page failed. Reload it.";
}

/** What failed, and why. Where no answer came to a change, its outcome is not known: that is said instead. */
const outcome = (what: string, error: unknown): [what: string, why: string] =>
  error instanceof Unreachable && error.perhapsDone
    ? ["No answer came:", "it may have been done all the same. Check before you try again."]
    : [what, errorText(error)];

/** Runs what has no place for an error on the page: a toast says what failed. */
export const attempt = (what: string, run: () => Promise<unknown>): Promise<void> =>
  run().then(
    () => undefined,
    (error) => badToast(outcome(what, error).join(" ")),
  );

const SLOW = 5_000;

/**
 * Sends something, once at a time, and keeps the error of the last try until it is cleared. Where the page has moved on before
 * the answer, a toast says what failed. `slow` is true while an answer takes long.
 */
export function useSending(failed: string) {
  const [busy, setBusy] = useState(false);
  const [slow, setSlow] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const gone = useRef(false);
  useEffect(() => () => void (gone.current = true), []);
  useEffect(() => {
    if (!busy) return setSlow(false);
    const timer = setTimeout(() => setSlow(true), SLOW);
    return () => clearTimeout(timer);
  }, [busy]);
  const send = async (run: () => Promise<void>): Promise<void> => {
    if (busy) return;
    setBusy(true);
    setError(null);
    await run().catch((error) => (gone.current ? attempt(failed, () => Promise.reject(error)) : setError(error)));
    setBusy(false);
  };
  return { busy, slow, error, send, clear: () => setError(null) };
}

/** What failed, if it did, and what still holds, with the request id for the server's log. */
export function Failure({
  what,
  error,
  retry,
  kept,
}: {
  what: string;
  error: unknown;
  retry?: (() => void) | undefined;
  kept?: string;
}) {
  if (error === null) return null;
  const id = error instanceof ApiError ? error.requestId : null;
  const [title, why] = outcome(what, error);
  return (
    <Banner
      tone="bad"
      title={title}
      action={
        retry && (
          <Button small onClick={retry}>
            Try again
          </Button>
        )
      }
    >
      {why} {kept}
      {id && (
        <details class="details">
          <summary>Details</summary>Request <code>{id}</code>
        </details>
      )}
    </Banner>
  );
}

/** In the place of what is read: why it could not be, or that it is on its way. */
export function Reading({ of, what, rows, tall }: { of: Resource<unknown>; what: string; rows?: number; tall?: boolean }) {
  if (of.error !== null) return <Failure what={`${what} could not be read.`} error={of.error} retry={() => void of.reload()} />;
  return of.data === undefined ? (
    <div class={tall ? undefined : "card"}>
      <Skeleton rows={rows} tall={tall} />
    </div>
  ) : null;
}
