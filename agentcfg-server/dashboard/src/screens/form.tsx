/** The fields of an agent, used for a new one and for a change. */
import { useRef, useState } from "preact/hooks";
import {
  jsonNumber,
  LIMITS,
  MOST,
  NAMES,
  parameterFaults,
  tagsOf,
  type Draft,
  type Faults,
  type Parameter,
} from "../base/config";
import { PROVIDERS, useModels } from "../base/data";
import { count, number } from "../base/text";
import type { Config, Model, Provider } from "../base/types";
import { Avatar, Button, cx, Icon, SWATCHES } from "../parts/base";
import { Area, Choices, Fault, Field, Input, Select } from "../parts/fields";

export interface FormProps {
  id: string;
  draft: Draft;
  onChange: (draft: Draft) => void;
  faults: Faults;
  /** Whether the error of a field is shown already. */
  touched: (name: string) => boolean;
  touch: (name: string) => void;
  changed: ReadonlySet<keyof Config>;
  /** The parameters that were stored, for the mark of a change. */
  stored: Config["parameters"];
  readOnly: boolean;
}

export function Persona({ draft, onChange, faults, changed, readOnly }: FormProps) {
  return (
    <Field
      label={NAMES.persona_prompt}
      changed={changed.has("persona_prompt")}
      counted={{ text: draft.persona_prompt, limit: LIMITS.persona_prompt }}
      error={faults.persona_prompt}
      hint="Sent as the system message where a call has none."
    >
      {(field) => (
        <Area
          {...field}
          class="persona"
          mono
          rows={21}
          spellcheck={false}
          readOnly={readOnly}
          value={draft.persona_prompt}
          onText={(persona_prompt) => onChange({ ...draft, persona_prompt })}
        />
      )}
    </Field>
  );
}

const SAID: Record<Model["credential"], (provider: string) => string> = {
  workspace: (provider) => `Paid with your ${provider} key.`,
  managed: () => "Paid with the server's managed key.",
  none: (provider) => `No ${provider} key here: calls are refused until one is added.`,
};

const OTHER = "\0other";

export function ModelField({ draft, onChange, faults, changed, readOnly }: FormProps) {
  const models = useModels().data;
  const known = models?.find((model) => model.id === draft.model);
  const [typing, setTyping] = useState(false);
  const free = typing || (draft.model !== "" && models !== undefined && !known);
  const providers = [...new Set(models?.map(({ provider }) => provider))] as Provider[];
  const said = known
    ? known.status === "coming_soon"
      ? "Coming soon: calls are refused until it is there."
      : SAID[known.credential](PROVIDERS[known.provider])
    : draft.model
      ? "Not in the catalogue. Calls pass it on as it is."
      : "Calls name the model themselves.";
  return (
    <>
      <Field label={NAMES.model} changed={changed.has("model")} hint={free ? undefined : said}>
        {(field) => (
          <Select
            {...field}
            disabled={readOnly}
            value={free ? OTHER : draft.model}
            onPick={(value) => {
              setTyping(value === OTHER);
              if (value !== OTHER) onChange({ ...draft, model: value });
            }}
          >
            <option value="">None</option>
            {providers.map((provider) => (
              <optgroup key={provider} label={PROVIDERS[provider] ?? provider}>
                {models!
                  .filter((model) => model.provider === provider)
                  .map((model) => (
                    <option key={model.id} value={model.id} disabled={model.status === "coming_soon" && model.id !== draft.model}>
                      {model.display_name}
                      {model.status === "coming_soon" ? " (coming soon)" : ""}
                    </option>
                  ))}
              </optgroup>
            ))}
            <option value={OTHER}>Another model…</option>
          </Select>
        )}
      </Field>
      {free && (
        <Field label="Model id" counted={{ text: draft.model, limit: LIMITS.model }} error={faults.model} hint={said}>
          {(field) => (
            <Input
              {...field}
              mono
              readOnly={readOnly}
              value={draft.model}
              onText={(model) => onChange({ ...draft, model })}
              spellcheck={false}
            />
          )}
        </Field>
      )}
    </>
  );
}

/** Whether a number is a share between 0 and 1: its slider has this range, others go from 0 to 100. */
const isShare = (value: unknown): boolean => /\./.test(String(value)) && Math.abs(Number(value)) <= 1;

export function Parameters({ draft, onChange, touched, touch, stored, changed, readOnly, faults }: FormProps) {
  const box = useRef<HTMLDivElement>(null);
  const rowFaults = parameterFaults(draft.parameters);
  const set = (index: number, row: Partial<Parameter>): void =>
    onChange({ ...draft, parameters: draft.parameters.map((old, i) => (i === index ? { ...old, ...row } : old)) });
  const add = (): void => {
    onChange({ ...draft, parameters: [...draft.parameters, { name: "", value: "50" }] });
    requestAnimationFrame(() => [...(box.current?.querySelectorAll<HTMLElement>("[data-new]") ?? [])].at(-1)?.focus());
  };
  const remove = (index: number): void => {
    onChange({ ...draft, parameters: draft.parameters.filter((_, i) => i !== index) });
    requestAnimationFrame(() =>
      (
        box.current?.querySelectorAll<HTMLElement>("input[type=range]")[index] ?? box.current?.querySelector<HTMLElement>(".add")
      )?.focus(),
    );
  };
  return (
    <div class="group-box" ref={box} style={{ "--digits": Math.max(0, ...draft.parameters.map((row) => row.value.length)) }}>
      <div class="label">
        <h2 class={cx("as-label", changed.has("parameters") && "changed")}>
          {NAMES.parameters}
          {changed.has("parameters") && <span class="hidden">, changed</span>}
        </h2>
        <span class="count">
          {draft.parameters.length > 80 ? `${draft.parameters.length} of ${MOST}` : "Numbers your apps read"}
        </span>
      </div>
      {draft.parameters.map((row, index) => {
        const value = jsonNumber(row.value);
        // The range stays while the slider moves, also where it is at a whole number.
        const fine = (row.fine || isShare(stored[row.name]) || isShare(value)) && !(Math.abs(Number(value)) > 1);
        const top = fine ? 1 : 100;
        const numeric = Math.max(0, Math.min(top, Number(value ?? 0)));
        const old = Object.hasOwn(stored, row.name);
        const differs = !old || String(stored[row.name]) !== (value ?? row.value);
        const fault = rowFaults[index]!;
        const seen = touched(`parameter ${index}`);
        const name = row.name || "new parameter";
        return (
          <div class="parameter" key={index}>
            <div class="slider">
              {old && !fault.name ? (
                <span class={cx("clip", differs && "changed")} title={row.name}>
                  {row.name}
                  {differs && <span class="hidden">, changed</span>}
                </span>
              ) : (
                <Input
                  value={row.name}
                  onText={(text) => set(index, { name: text })}
                  onBlur={() => touch(`parameter ${index}`)}
                  aria-label="Name of the parameter"
                  placeholder="Name"
                  aria-invalid={seen && fault.name ? true : undefined}
                  readOnly={readOnly}
                  data-new
                />
              )}
              <input
                type="range"
                min="0"
                max={top}
                step={top / 100}
                value={numeric}
                disabled={readOnly}
                aria-label={name}
                style={{ "--part": `${(100 * numeric) / top}%` }}
                onInput={(event) => set(index, { value: String(Number(event.currentTarget.value)), fine })}
              />
              <Input
                value={row.value}
                inputMode="decimal"
                onText={(text) => set(index, { value: text })}
                onBlur={() => touch(`parameter ${index}`)}
                aria-label={`${name}, number`}
                aria-invalid={fault.value ? true : undefined}
                readOnly={readOnly}
              />
              {!readOnly && <Button kind="quiet" small icon="close" label={`Remove ${name}`} onClick={() => remove(index)} />}
            </div>
            {fault.value && <Fault>{fault.value}</Fault>}
            {seen && fault.name && <Fault>{fault.name}</Fault>}
          </div>
        );
      })}
      {draft.parameters.length > MOST && <Fault>{faults.parameters}</Fault>}
      {!readOnly && draft.parameters.length < MOST && (
        <div>
          <Button kind="quiet" small icon="plus" class="add" onClick={add}>
            Add parameter
          </Button>
        </div>
      )}
    </div>
  );
}

export function Identity(props: FormProps) {
  const { id, draft, onChange, faults, touched, touch, changed, readOnly } = props;
  const shown = (name: keyof Config): string | undefined => (touched(name) ? faults[name] : undefined);
  return (
    <>
      <div class="two">
        <Field
          label={NAMES.display_name}
          changed={changed.has("display_name")}
          error={shown("display_name")}
          {...(draft.display_name.length > 80 ? { counted: { text: draft.display_name, limit: LIMITS.display_name } } : {})}
        >
          {(field) => (
            <Input
              {...field}
              readOnly={readOnly}
              value={draft.display_name}
              onText={(display_name) => onChange({ ...draft, display_name })}
              onBlur={() => touch("display_name")}
            />
          )}
        </Field>
        <Field
          label={NAMES.role}
          changed={changed.has("role")}
          error={faults.role}
          {...(draft.role.length > 80 ? { counted: { text: draft.role, limit: LIMITS.role } } : {})}
        >
          {(field) => <Input {...field} readOnly={readOnly} value={draft.role} onText={(role) => onChange({ ...draft, role })} />}
        </Field>
      </div>
      <div class="two">
        <div class={cx("field", changed.has("agent_type") && "has-change")}>
          <Choices
            label={NAMES.agent_type}
            value={draft.agent_type}
            onPick={(agent_type) => onChange({ ...draft, agent_type })}
            disabled={readOnly}
            choices={[
              { value: "ai", label: "AI" },
              { value: "human", label: "Human" },
            ]}
          />
        </div>
        <Field label={NAMES.color} changed={changed.has("color")} error={shown("color")}>
          {(field) => (
            <div class="row">
              <Avatar id={id} name={draft.display_name || "?"} color={draft.color} type={draft.agent_type} size={32} />
              <Input
                {...field}
                mono
                readOnly={readOnly}
                placeholder="By the id"
                value={draft.color}
                onText={(color) => onChange({ ...draft, color })}
                onBlur={() => touch("color")}
                spellcheck={false}
              />
            </div>
          )}
        </Field>
      </div>
      {!readOnly && (
        <div class="swatches" role="group" aria-label="Colours">
          {SWATCHES.map((color) => (
            <button
              key={color}
              type="button"
              aria-label={color}
              aria-pressed={draft.color.toLowerCase() === color}
              onClick={() => onChange({ ...draft, color })}
            >
              <svg viewBox="0 0 20 20" aria-hidden="true">
                <rect width="20" height="20" rx="5" fill={color} />
              </svg>
            </button>
          ))}
        </div>
      )}
    </>
  );
}

export function Description({ draft, onChange, faults, changed, readOnly }: FormProps) {
  return (
    <Field
      label={NAMES.description}
      changed={changed.has("description")}
      counted={{ text: draft.description, limit: LIMITS.description }}
      error={faults.description}
    >
      {(field) => (
        <Area
          {...field}
          rows={4}
          readOnly={readOnly}
          value={draft.description}
          onText={(description) => onChange({ ...draft, description })}
        />
      )}
    </Field>
  );
}

export function Capabilities({ draft, onChange, changed, readOnly, faults }: FormProps) {
  const [said, setSaid] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const { capabilities: tags, entry } = draft;
  const all = tagsOf(draft);

  const add = (): void => {
    const added = all.slice(tags.length);
    if (!added.length || added.some((tag) => count(tag) > LIMITS.tag)) return;
    onChange({ ...draft, capabilities: all, entry: "" });
    setSaid(`${added.join(", ")} added`);
  };
  const remove = (index: number): void => {
    setSaid(`${tags[index]} removed`);
    onChange({ ...draft, capabilities: tags.filter((_, i) => i !== index) });
    requestAnimationFrame(() => {
      const buttons = box.current?.querySelectorAll<HTMLElement>("button");
      (buttons?.[Math.min(index, buttons.length - 1)] ?? box.current?.querySelector("input"))?.focus();
    });
  };
  const keys = (event: KeyboardEvent): void => {
    const stops = [...box.current!.querySelectorAll<HTMLElement>("button, input")];
    const at = stops.indexOf(event.target as HTMLElement);
    const input = event.target instanceof HTMLInputElement;
    const start = input && event.target.selectionStart === 0 && event.target.selectionEnd === 0;
    if (input && (event.key === "Enter" || event.key === ",")) {
      event.preventDefault();
      add();
    } else if (
      (!input && event.key === "ArrowLeft") ||
      (start && (event.key === "ArrowLeft" || (event.key === "Backspace" && !entry)))
    ) {
      if (at > 0) event.preventDefault();
      stops[at - 1]?.focus();
    } else if (!input && event.key === "ArrowRight") {
      event.preventDefault();
      stops[at + 1]?.focus();
    } else if (!input && (event.key === "Delete" || event.key === "Backspace")) {
      event.preventDefault();
      remove(at);
    }
  };
  return (
    <Field
      label={NAMES.capabilities}
      changed={changed.has("capabilities")}
      aside={
        <span class={cx("count", all.length > MOST && "over")}>
          {number(all.length)} of {MOST}
        </span>
      }
      error={faults.capabilities}
      hint={readOnly ? undefined : "Enter or a comma adds a tag."}
    >
      {(field) => (
        <div class="tag-input" ref={box} onKeyDown={keys}>
          {tags.map((tag, index) => (
            <span class="tag" key={`${index} ${tag}`}>
              <span class="clip">{tag}</span>
              {!readOnly && (
                <button type="button" tabIndex={-1} aria-label={`Remove ${tag}`} onClick={() => remove(index)}>
                  <Icon name="close" small />
                </button>
              )}
            </span>
          ))}
          {!readOnly && (
            <input
              {...field}
              value={entry}
              onInput={(event) => onChange({ ...draft, entry: event.currentTarget.value })}
              onBlur={add}
              placeholder="Add a tag"
              autocomplete="off"
            />
          )}
          <span class="hidden" role="status">
            {said}
          </span>
        </div>
      )}
    </Field>
  );
}
