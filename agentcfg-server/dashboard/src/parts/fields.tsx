/** Parts of forms: fields with label, hint, count and error; inputs. */
import type { AllHTMLAttributes, ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { LIMITS, messageFault } from "../base/config";
import { route, setParams } from "../base/route";
import { count, number } from "../base/text";
import type { Agent } from "../base/types";
import { cx, Icon } from "./base";

export interface FieldProps {
  id: string;
  "aria-describedby": string | undefined;
  "aria-invalid": boolean | undefined;
}

interface Around {
  label: ComponentChildren;
  hint?: ComponentChildren;
  error?: ComponentChildren;
  /** The text whose length is shown, and the limit. */
  counted?: { text: string; limit: number };
  changed?: boolean;
  /** Something at the right of the label in place of a count. */
  aside?: ComponentChildren;
  class?: string;
  children: (field: FieldProps) => ComponentChildren;
}

export function Field({ label, hint, error, counted, changed, aside, class: extra, children }: Around) {
  const id = useId();
  const length = counted ? count(counted.text) : 0;
  const described = [error && `${id}e`, hint && `${id}h`].filter(Boolean).join(" ");
  return (
    <div class={cx("field", extra)}>
      <div class="label">
        <label for={id} class={cx(changed && "changed")}>
          {label}
          {changed && <span class="hidden">, changed</span>}
        </label>
        {aside}
        {counted && (
          <span class={cx("count", length > counted.limit && "over")}>
            {number(length)} of {number(counted.limit)}
          </span>
        )}
      </div>
      {children({ id, "aria-describedby": described || undefined, "aria-invalid": error ? true : undefined })}
      {error && <Fault id={`${id}e`}>{error}</Fault>}
      {hint && (
        <p class="hint" id={`${id}h`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** A form that this page sends itself. */
export function Form({ onSend, ...rest }: JSX.IntrinsicElements["form"] & { onSend?: (form: Element) => void }) {
  return (
    <form
      noValidate
      {...rest}
      onSubmit={(event) => {
        event.preventDefault();
        onSend?.(event.currentTarget);
      }}
    />
  );
}

export function Fault({ id, children }: { id?: string; children: ComponentChildren }) {
  return (
    <p class="fault" id={id} role="alert">
      <Icon name="warn" small />
      {children}
    </p>
  );
}

type InputProps = Omit<AllHTMLAttributes<HTMLInputElement>, "onInput" | "value" | "label"> & {
  value: string;
  onText: (text: string) => void;
  mono?: boolean;
};

export function Input({ value, onText, mono, class: extra, ...rest }: InputProps) {
  return (
    <input
      type="text"
      dir="auto"
      {...(rest as JSX.IntrinsicElements["input"])}
      class={cx("input", mono && "mono", extra as string)}
      value={value}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}

export type AreaProps = Omit<AllHTMLAttributes<HTMLTextAreaElement>, "onInput" | "value" | "label"> & {
  value: string;
  onText: (text: string) => void;
  mono?: boolean;
};

export function Area({ value, onText, mono, class: extra, ...rest }: AreaProps) {
  return (
    <textarea
      dir="auto"
      {...(rest as JSX.IntrinsicElements["textarea"])}
      class={cx("input area", mono && "mono", extra as string)}
      value={value}
      onInput={(event) => onText(event.currentTarget.value)}
    />
  );
}

/** The message of a change, for the history of an agent. */
export function MessageField({ why, ...rest }: AreaProps & { why?: boolean }) {
  return (
    <Field
      label="Message"
      hint={`${why ? "Why it changes, for the history. " : ""}Optional.`}
      counted={{ text: rest.value, limit: LIMITS.message }}
      error={messageFault(rest.value)}
    >
      {(field) => <Area {...field} {...rest} rows={2} />}
    </Field>
  );
}

type SelectProps = Omit<AllHTMLAttributes<HTMLSelectElement>, "onChange" | "value" | "label"> & {
  value: string;
  onPick: (value: string) => void;
  children: ComponentChildren;
  tool?: boolean;
};

export function Select({ value, onPick, children, tool, ...rest }: SelectProps) {
  return (
    <span class={cx("select", tool && "tool")}>
      <select
        {...(rest as JSX.IntrinsicElements["select"])}
        class="input"
        value={value}
        onChange={(event) => {
          onPick(event.currentTarget.value);
          // It shows what holds: the choice may be refused, or asked about first.
          event.currentTarget.value = value;
        }}
      >
        {children}
      </select>
      <Icon name="down" small />
    </span>
  );
}

export type Choice<T extends string> = readonly [value: T, label: string, count?: number | undefined];

/** A filter: one of several buttons is pressed. */
export function Segments<T extends string>({
  label,
  value,
  choices,
  onPick,
}: {
  label: string;
  value: T;
  choices: Choice<T>[];
  onPick: (value: T) => void;
}) {
  const strip = useRef<HTMLDivElement>(null);
  // On narrow windows the chosen one may be out of sight. The strip alone moves: the keyboard keeps its first stop.
  useEffect(() => {
    const box = strip.current!;
    const chosen = box.querySelector("[aria-pressed=true]");
    if (chosen) box.scrollLeft += chosen.getBoundingClientRect().right - box.getBoundingClientRect().right;
  }, [value]);
  return (
    <div class="segments" role="group" aria-label={label} ref={strip}>
      {choices.map(([one, text, count]) => (
        <button key={one} type="button" aria-pressed={one === value} onClick={() => onPick(one)}>
          {text}
          {count !== undefined && <span class="count">{number(count)}</span>}
        </button>
      ))}
    </div>
  );
}

/** A choice in a form: a radio group that looks like a row of buttons. */
export function Choices<T extends string>({
  label,
  value,
  choices,
  onPick,
  hidden,
  disabled,
}: {
  label: string;
  value: T | null;
  choices: Choice<T>[];
  onPick: (value: T) => void;
  hidden?: boolean;
  disabled?: boolean;
}) {
  const name = useId();
  return (
    <fieldset class="choices" disabled={disabled}>
      <legend class={hidden ? "hidden" : undefined}>{label}</legend>
      <div class="segments">
        {choices.map(([one, text]) => (
          <label key={one}>
            <input type="radio" name={name} value={one} checked={one === value} onChange={() => onPick(one)} />
            <span>{text}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

/** Shows errors of a field after it was left once, or when all are asked for. */
export function useTouched(): { touch: (name: string) => void; touched: (name: string) => boolean; touchAll: () => void } {
  const [names, setNames] = useState<ReadonlySet<string>>(new Set());
  return {
    touch: (name) => setNames((before) => (before.has(name) ? before : new Set(before).add(name))),
    touched: (name) => names.has(name) || names.has("*"),
    touchAll: () => setNames(new Set(["*"])),
  };
}

/** Puts the focus on the first field with an error, and the error in sight, which may be below a long box. */
export function focusFault(form: Element | null): void {
  requestAnimationFrame(() => {
    const field = form?.querySelector<HTMLElement>("[aria-invalid=true]");
    field?.focus();
    field?.closest(".field")?.querySelector(".fault")?.scrollIntoView({ block: "center" });
  });
}

/** What the filter of agents looks for; the address keeps it. */
export const asked = (): string => (route.value.params.get("q") ?? "").trim().toLowerCase();

export const finds = (query: string, { display_name, agent_id, role, capabilities }: Agent): boolean =>
  [display_name, agent_id, role ?? "", ...capabilities].some((text) => text.toLowerCase().includes(query));

/** The filter of agents. */
export function Search() {
  return (
    <div class="search">
      <Icon name="search" />
      <input
        class="input"
        type="search"
        aria-label="Filter agents"
        placeholder="Filter by name, role or tag"
        value={route.value.params.get("q") ?? ""}
        onInput={(event) => setParams({ q: event.currentTarget.value })}
        onKeyDown={({ key }) => {
          // To the first row that was found, or to what it names.
          const name = document.querySelector<HTMLElement>("[data-name]");
          if (key === "ArrowDown") name?.focus();
          else if (key === "Enter") name?.click();
        }}
        data-search
      />
    </div>
  );
}

export function Check({
  checked,
  onCheck,
  children,
}: {
  checked: boolean;
  onCheck: (checked: boolean) => void;
  children: ComponentChildren;
}) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onCheck(event.currentTarget.checked)} />
      <span>{children}</span>
    </label>
  );
}
