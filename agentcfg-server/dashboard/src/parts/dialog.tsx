/** Modal dialogs, confirmations and menus, on the browser's own elements. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ended, isStatus } from "../base/api";
import { copy } from "../base/copy";
import { tryNow } from "../base/feed";
import { listening } from "../base/listening";
import { href } from "../base/route";
import { Button, cx, Icon } from "./base";
import { Field, focusFault, Form, Input } from "./fields";
import { badToast, Banner, Failure, toast, useSending } from "./feedback";

/** Ctrl S and Ctrl Enter, which open what is to be confirmed, and confirm it. */
export const isConfirming = ({ key, ctrlKey, metaKey, altKey }: KeyboardEvent): boolean =>
  (ctrlKey || metaKey) && !altKey && (key === "s" || key === "Enter");

/** Does something at these keys, while no dialog is open. */
export function useConfirming(run: () => void): void {
  useLayoutEffect(() =>
    listening("keydown", (event) => {
      if (!isConfirming(event) || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      run();
    }),
  );
}

interface DialogProps {
  title: ComponentChildren;
  children: ComponentChildren;
  /** The buttons, the main one last. */
  foot?: ComponentChildren;
  note?: ComponentChildren;
  onClose: () => void;
  onSubmit?: (form: Element) => void;
  narrow?: boolean;
  wide?: boolean;
  /** Ctrl S and Ctrl Enter send it. */
  keys?: boolean;
  /** Neither Escape nor anything but its own buttons closes it. */
  locked?: boolean;
  side?: boolean;
}

/** Opens a dialog; what it returns closes it, and gives the focus back. */
export function showModal(element: HTMLDialogElement): () => void {
  const opener = document.activeElement as HTMLElement | null;
  // A field that the browser itself gives the focus back to takes no text once the dialog is removed.
  opener?.blur();
  element.showModal();
  return () => {
    element.close();
    if (opener?.isConnected) opener.focus();
  };
}

export function Dialog({ title, children, foot, note, onClose, onSubmit, narrow, wide, locked, side, keys }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const element = dialog.current!;
    const end = showModal(element);
    (
      element.querySelector<HTMLElement>("[data-first]") ??
      element.querySelector<HTMLElement>("input, textarea, select, .dialog-foot button")
    )?.focus();
    return end;
  }, []);
  return (
    <dialog
      ref={dialog}
      class={cx(narrow && "narrow", wide && "wide", side && "side-dialog")}
      aria-labelledby={heading}
      {...{ closedby: locked ? "none" : "closerequest" }}
      onCancel={(event) => {
        event.preventDefault();
        if (!locked) onClose();
      }}
      onKeyDown={(event) => {
        // The second Escape in a row would close the dialog without asking.
        if (event.key === "Escape") {
          event.preventDefault();
          if (!locked) onClose();
        } else if (keys && isConfirming(event)) {
          event.preventDefault();
          if (!event.repeat) dialog.current!.querySelector("form")!.requestSubmit();
        }
      }}
    >
      <Form method="dialog" {...(onSubmit && { onSend: onSubmit })}>
        <div class="dialog-body">
          <h2 id={heading} class={side ? "hidden" : undefined}>
            {title}
          </h2>
          {children}
        </div>
        {foot && (
          <div class="dialog-foot">
            <div class="grow">{note}</div>
            {foot}
          </div>
        )}
      </Form>
    </dialog>
  );
}

/** Says that the session has ended, and how to go on in another one. */
export function Ended() {
  const [still, setStill] = useState(false);
  const again = async (): Promise<void> => {
    await tryNow();
    setStill(ended.value);
  };
  return (
    <Banner
      tone="warn"
      icon="lock"
      title="Your session has ended."
      action={
        <>
          <a class="button small" href={href("overview")} target="_blank" rel="noopener">
            Open sign-in
          </a>
          <Button small kind="primary" onClick={() => void again()}>
            Continue
          </Button>
        </>
      }
    >
      {still ? "There is no new session yet. " : ""}Sign in in a new tab and come back: this page and your unsaved text stay here.
    </Banner>
  );
}

interface FormDialogProps {
  title: ComponentChildren;
  children: ComponentChildren;
  /** The name of the button that sends the form. */
  verb: string;
  /** It cannot be sent: what was typed in it is not right. */
  blocked?: boolean | undefined;
  /** Whether it can be sent, asked when it is tried. */
  check?: () => boolean;
  danger?: boolean;
  /** The focus starts on the button that leaves all as it is. */
  careful?: boolean;
  /** Sends it. The dialog then closes, but where the answer is `false`. */
  run: () => Promise<boolean | void>;
  /** What is said of a failure, and what holds in spite of it. */
  failed: string;
  kept?: (error: unknown) => string | undefined;
  onClose: () => void;
  note?: ComponentChildren;
  narrow?: boolean;
  wide?: boolean;
}

/** A dialog that sends what is in it, and stays open with the error when that fails. */
export function FormDialog(props: FormDialogProps) {
  const { children, verb, blocked, check, danger, careful, run, failed, kept, onClose, ...rest } = props;
  const { busy, slow, error, send, clear } = useSending(failed);
  const left = useRef(false);
  const held = busy && !slow;
  const close = (): void => {
    if (held) return;
    left.current = true;
    onClose();
  };
  return (
    <Dialog
      {...rest}
      keys={!danger}
      onClose={close}
      onSubmit={(form) => {
        if (busy || blocked) return;
        if (check?.() === false) {
          clear();
          focusFault(form);
          return;
        }
        void send(async () => {
          // Where it was closed before the answer, another one may be open in its place.
          if ((await run()) !== false && !left.current) onClose();
        });
      }}
      foot={
        <>
          <Button onClick={close} blocked={held} {...(careful ? { "data-first": true } : {})}>
            {slow ? "Close" : "Cancel"}
          </Button>
          <Button type="submit" kind={danger ? "danger" : "primary"} busy={busy} blocked={blocked}>
            {verb}
          </Button>
        </>
      }
    >
      {children}
      {slow && (
        <p class="hint" role="status">
          No answer yet. You can close this: what comes of it is told on the page.
        </p>
      )}
      {/* What the page says of it is out of reach. */}
      {isStatus(error, 401) ? ended.value && <Ended /> : <Failure what={failed} error={error} kept={kept?.(error)} />}
    </Dialog>
  );
}

interface ConfirmProps {
  title: string;
  children: ComponentChildren;
  verb: string;
  blocked?: boolean;
  danger?: boolean;
  /** A text that must be typed first, and the sentence that asks for it. */
  typed?: { text: string; why: string } | null;
  run: () => Promise<void>;
  onClose: () => void;
  extra?: ComponentChildren;
}

/** A text as the page shows it, which is how it is typed after it. */
const shown = (text: string): string => text.trim().replace(/\s+/g, " ");

/** Asks before something is done. */
export function Confirm({ children, verb, blocked, danger = true, typed, run, onClose, extra, title }: ConfirmProps) {
  const [text, setText] = useState("");
  return (
    <FormDialog
      narrow
      title={title}
      verb={verb}
      blocked={blocked || (typed && shown(text) !== shown(typed.text)) || false}
      danger={danger}
      careful={danger && !typed}
      run={run}
      failed={`${verb}: not done.`}
      onClose={onClose}
      note={extra}
    >
      <div class="prose">{children}</div>
      {typed && (
        <Field label={typed.why}>
          {(field) => <Input {...field} value={text} onText={setText} mono autocomplete="off" spellcheck={false} />}
        </Field>
      )}
    </FormDialog>
  );
}

export interface Item {
  label: string;
  icon: string;
  run: () => void;
  danger?: boolean;
  /** Whether it is the one of several that holds, or a choice that is made. */
  on?: boolean;
}

export const copyId = (id: string): Item => ({
  label: "Copy id",
  icon: "copy",
  run: () => void copy(id).then((done) => (done ? toast("Id copied.") : badToast("Copying failed."))),
});

/** A button that opens a list of actions. */
export function Menu({
  label,
  items,
  small,
  children,
  align = "end",
}: {
  label: string;
  items: (Item | null)[];
  small?: boolean;
  children?: ComponentChildren;
  align?: "start" | "end";
}) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLSpanElement>(null);
  const id = useId();
  const shown = items.filter((item) => item !== null);

  useEffect(() => {
    if (!open) return;
    const element = box.current!;
    const place = opener.current!.getBoundingClientRect();
    element.showPopover();
    const { width, height } = element.getBoundingClientRect();
    const left = align === "end" ? place.right - width : place.left;
    element.style.setProperty("left", `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`);
    const below = place.bottom + 4 + height < innerHeight;
    element.style.setProperty("top", `${below ? place.bottom + 4 : Math.max(8, place.top - 4 - height)}px`);
    element.querySelector<HTMLElement>("[role^=menuitem]")?.focus();
    const close = (): void => setOpen(false);
    // What scrolls elsewhere, such as a chart that is loaded, leaves the button where it is.
    const away = (): void => {
      if (opener.current!.getBoundingClientRect().top !== place.top) close();
    };
    const ends = [listening("scroll", away, true), listening("resize", close)];
    return () => ends.forEach((end) => end());
  }, [open]);

  const close = (): void => {
    setOpen(false);
    opener.current?.querySelector("button")?.focus();
  };

  const move = (event: KeyboardEvent): void => {
    const all = [...box.current!.querySelectorAll<HTMLElement>("[role^=menuitem]")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    let to = -1;
    if (event.key === "ArrowDown") to = (at + 1) % all.length;
    else if (event.key === "ArrowUp") to = (at - 1 + all.length) % all.length;
    else if (event.key === "Home") to = 0;
    else if (event.key === "End") to = all.length - 1;
    else if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      event.stopPropagation();
      return close();
    } else if (event.key.length === 1 && event.key !== " ") {
      const wanted = event.key.toLowerCase();
      to =
        [...all.keys()]
          .map((i) => (at + 1 + i) % all.length)
          .find((i) => all[i]!.textContent.trim().toLowerCase().startsWith(wanted)) ?? -1;
    } else return;
    event.preventDefault();
    all[to]?.focus();
  };

  return (
    <span ref={opener} class="menu-opener">
      {children ? (
        <button
          type="button"
          class="bare-button"
          title={label}
          aria-haspopup="menu"
          aria-expanded={open}
          aria-controls={open ? id : undefined}
          onClick={() => setOpen(!open)}
        >
          {children}
        </button>
      ) : (
        <Button
          kind={small ? "quiet" : undefined}
          small={small}
          icon="more"
          label={label}
          aria-haspopup="menu"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        />
      )}
      {open && (
        <div
          id={id}
          ref={box}
          class="menu"
          popover="auto"
          role="menu"
          aria-label={label}
          onKeyDown={move}
          onToggle={(event) => (event as unknown as ToggleEvent).newState === "closed" && setOpen(false)}
        >
          {shown.map((item, i) => (
            <button
              key={item.label}
              type="button"
              role={item.on === undefined ? "menuitem" : "menuitemcheckbox"}
              aria-checked={item.on}
              tabIndex={-1}
              class={cx(item.danger && "danger", item.danger && i > 0 && !shown[i - 1]!.danger && "apart")}
              onClick={() => {
                close();
                item.run();
              }}
            >
              <Icon name={item.icon} />
              <span class="clip">{item.label}</span>
            </button>
          ))}
        </div>
      )}
    </span>
  );
}
