/** The fields of an agent, used for a new one and for a change. */
import { Fragment, type ComponentType } from "preact";
import { useId, useRef, useState } from "preact/hooks";
import {
  FIELDS,
  jsonNumber,
  NAMES,
  parameterFaults,
  tagsOf,
  textOf,
  type Config,
  type Draft,
  type Faults,
  type FieldName,
  type Parameter,
  type Tags,
} from "../base/config";
import type { AgentField, Num, Section } from "../base/agent-fields";
import { useModels } from "../base/data";
import { providerName } from "../base/providers";
import { count, number } from "../base/text";
import type { Model } from "../base/types";
import { Avatar, Button, cx, Icon, SWATCHES, Told } from "../parts/base";
import { DefinitionView } from "../parts/definition";
import { LongArea } from "../parts/long-area";
import { Area, Choices, Fault, Field, Input, Select } from "../parts/fields";

export interface FormProps {
  id: string;
  draft: Draft;
  onChange: (draft: Draft) => void;
  faults: Faults;
  /** Whether the error of a field is shown already. */
  touched: (name: string) => boolean;
  touch: (name: string) => void;
  changed: ReadonlySet<FieldName>;
  /** What was stored, for the marks of changes within a field. */
  stored: Config;
  readOnly: boolean;
}

/** What a control gets: the draft of its field is of the type `D`. */
interface ControlProps<D> extends FormProps {
  name: FieldName;
  value: D;
  set: (value: D) => void;
}

function TextControl({ name, value, set, faults, touched, touch, changed, stored, readOnly }: ControlProps<string>) {
  const { label, hint, limit, long, mono, required, rows } = FIELDS[name];
  const props = {
    mono,
    readOnly,
    value,
    onText: set,
    onBlur: () => touch(name),
    spellcheck: mono && false,
  };
  return (
    <Field
      label={label}
      changed={changed.has(name)}
      // A short text has a count when it is almost full.
      counted={limit && (rows || value.length > 0.8 * limit) ? { text: value, limit } : undefined}
      error={!required || touched(name) ? faults[name] : undefined}
      hint={hint && <Told of={hint} />}
    >
      {(field) =>
        long ? (
          <LongArea {...field} {...props} rows={rows} stored={changed.has(name) ? textOf(name, stored[name]) : value} />
        ) : rows ? (
          <Area {...field} {...props} rows={rows} />
        ) : (
          <Input {...field} {...props} />
        )
      }
    </Field>
  );
}

const SAID: Record<Model["credential"], (provider: string) => string> = {
  workspace: (provider) => `Paid with your ${provider} key.`,
  managed: () => "Paid with the server's managed key.",
  none: (provider) => `No ${provider} key here: calls are refused until one is added.`,
};

const OTHER = "\0other";

function ModelControl({ name, value, set, faults, changed, readOnly }: ControlProps<string>) {
  const { label, limit } = FIELDS[name];
  const models = useModels().data;
  const known = models?.find((model) => model.id === value);
  const [typing, setTyping] = useState(false);
  const free = typing || (value !== "" && models !== undefined && !known);
  const providers = [...new Set(models?.map(({ provider }) => provider))];
  const said = known
    ? known.status === "coming_soon"
      ? "Coming soon: calls are refused until it is there."
      : SAID[known.credential](providerName(known.provider))
    : value
      ? "Not in the catalogue. Calls pass it on as it is."
      : "Calls name the model themselves.";
  return (
    <>
      <Field label={label} changed={changed.has(name)} hint={free ? undefined : said}>
        {(field) => (
          <Select
            {...field}
            disabled={readOnly}
            value={free ? OTHER : value}
            onPick={(picked) => {
              setTyping(picked === OTHER);
              if (picked !== OTHER) set(picked);
            }}
          >
            <option value="">None</option>
            {providers.map((provider) => (
              <optgroup key={provider} label={providerName(provider)}>
                {models!
                  .filter((model) => model.provider === provider)
                  .map((model) => (
                    <option key={model.id} value={model.id} disabled={model.status === "coming_soon" && model.id !== value}>
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
        <Field label="Model id" counted={{ text: value, limit: limit! }} error={faults[name]} hint={said}>
          {(field) => <Input {...field} mono readOnly={readOnly} value={value} onText={set} spellcheck={false} />}
        </Field>
      )}
    </>
  );
}

/** Whether a number is a share between 0 and 1: its slider has this range, others go from 0 to 100. */
const isShare = (value: unknown): boolean => /\./.test(String(value)) && Math.abs(Number(value)) <= 1;

function NumbersControl(props: ControlProps<Parameter[]>) {
  const { name: field, value: rows, set: setRows, touched, touch, changed, readOnly, faults } = props;
  const { label, hint, limit, most } = FIELDS[field];
  const stored = props.stored[field] as Record<string, Num>;
  const box = useRef<HTMLDivElement>(null);
  const id = useId();
  const rowFaults = parameterFaults(rows, limit!);
  const set = (index: number, row: Partial<Parameter>): void =>
    setRows(rows.map((old, i) => (i === index ? { ...old, ...row } : old)));
  const add = (): void => {
    setRows([...rows, { name: "", value: "50" }]);
    requestAnimationFrame(() => [...(box.current?.querySelectorAll<HTMLElement>("[data-new]") ?? [])].at(-1)?.focus());
  };
  const remove = (index: number): void => {
    setRows(rows.filter((_, i) => i !== index));
    requestAnimationFrame(() =>
      (
        box.current?.querySelectorAll<HTMLElement>("input[type=range]")[index] ?? box.current?.querySelector<HTMLElement>(".add")
      )?.focus(),
    );
  };
  return (
    <div class="group-box" ref={box} style={{ "--digits": Math.max(0, ...rows.map((row) => row.value.length)) }}>
      <div class="label">
        <h2 class={cx("as-label", changed.has(field) && "changed")}>
          {label}
          {changed.has(field) && <span class="hidden">, changed</span>}
        </h2>
        <span class="count">{rows.length > 80 ? `${rows.length} of ${most}` : <Told of={hint!} />}</span>
      </div>
      {rows.map((row, index) => {
        const value = jsonNumber(row.value);
        // The range stays while the slider moves, also where it is at a whole number.
        const fine = (row.fine || isShare(stored[row.name]) || isShare(value)) && !(Math.abs(Number(value)) > 1);
        const top = fine ? 1 : 100;
        const numeric = Math.max(0, Math.min(top, Number(value ?? 0)));
        const old = Object.hasOwn(stored, row.name);
        const differs = !old || String(stored[row.name]) !== (value ?? row.value);
        const fault = rowFaults[index]!;
        const seen = touched(`${field} ${index}`);
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
                  onBlur={() => touch(`${field} ${index}`)}
                  aria-label="Name of the parameter"
                  placeholder="Name"
                  aria-invalid={seen && fault.name ? true : undefined}
                  aria-describedby={`${id}${index}n`}
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
                onBlur={() => touch(`${field} ${index}`)}
                aria-label={`${name}, number`}
                aria-invalid={fault.value ? true : undefined}
                aria-describedby={`${id}${index}v`}
                readOnly={readOnly}
              />
              {!readOnly && <Button kind="quiet" small icon="close" label={`Remove ${name}`} onClick={() => remove(index)} />}
            </div>
            {fault.value && <Fault id={`${id}${index}v`}>{fault.value}</Fault>}
            {seen && fault.name && <Fault id={`${id}${index}n`}>{fault.name}</Fault>}
          </div>
        );
      })}
      {rows.length > most! && <Fault>{faults[field]}</Fault>}
      {!readOnly && rows.length < most! && (
        <div>
          <Button kind="quiet" small icon="plus" class="add" onClick={add}>
            Add parameter
          </Button>
        </div>
      )}
    </div>
  );
}

function ChoiceControl({ name, value, set, changed, readOnly }: ControlProps<string>) {
  const { label, choices } = FIELDS[name];
  return (
    <div class={cx("field", changed.has(name) && "has-change")}>
      <Choices label={label} value={value} onPick={set} disabled={readOnly} choices={Object.entries(choices!)} />
    </div>
  );
}

function ColorControl({ id, draft, name, value, set, faults, touched, touch, changed, readOnly }: ControlProps<string>) {
  return (
    <Field label={FIELDS[name].label} changed={changed.has(name)} error={touched(name) ? faults[name] : undefined}>
      {(field) => (
        <div class="row">
          <Avatar id={id} name={draft.display_name || "?"} color={value} type={draft.agent_type} size={32} />
          <Input
            {...field}
            mono
            readOnly={readOnly}
            placeholder="By the id"
            value={value}
            onText={set}
            onBlur={() => touch(name)}
            spellcheck={false}
          />
        </div>
      )}
    </Field>
  );
}

function Swatches({ value, set }: ControlProps<string>) {
  return (
    <div class="swatches" role="group" aria-label="Colours">
      {SWATCHES.map((color) => (
        <button
          key={color}
          type="button"
          aria-label={color}
          aria-pressed={value.toLowerCase() === color}
          onClick={() => set(color)}
        >
          <svg viewBox="0 0 20 20" aria-hidden="true">
            <rect width="20" height="20" rx="5" fill={color} />
          </svg>
        </button>
      ))}
    </div>
  );
}

function TagsControl({ name, value, set, changed, readOnly, faults }: ControlProps<Tags>) {
  const { label, limit, most } = FIELDS[name];
  const [said, setSaid] = useState("");
  const box = useRef<HTMLDivElement>(null);
  const { tags, entry } = value;
  const all = tagsOf(value);

  const add = (): void => {
    const added = all.slice(tags.length);
    if (!added.length || added.some((tag) => count(tag) > limit!)) return;
    set({ tags: all, entry: "" });
    setSaid(`${added.join(", ")} added`);
  };
  const remove = (index: number): void => {
    setSaid(`${tags[index]} removed`);
    set({ tags: tags.filter((_, i) => i !== index), entry });
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
      label={label}
      changed={changed.has(name)}
      aside={
        <span class={cx("count", all.length > most! && "over")}>
          {number(all.length)} of {most}
        </span>
      }
      error={faults[name]}
      hint={readOnly ? undefined : <Told of="tags" />}
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
              onInput={(event) => set({ tags, entry: event.currentTarget.value })}
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

function JsonControl(props: ControlProps<string>) {
  return (
    <>
      <TextControl {...props} />
      <DefinitionView id={props.id} text={props.value} persona={props.draft.persona_prompt} />
    </>
  );
}

const CONTROLS = {
  text: TextControl,
  model: ModelControl,
  color: ColorControl,
  choice: ChoiceControl,
  tags: TagsControl,
  numbers: NumbersControl,
  json: JsonControl,
} satisfies Record<AgentField["kind"], unknown>;

/** The controls of the fields of a section. */
export function Fields({ of, ...form }: FormProps & { of: Section }) {
  const lines: FieldName[][] = [];
  for (const name of NAMES) {
    if (FIELDS[name].section !== of) continue;
    // A person has no persona, model and definition, but what was stored stays in sight.
    if (form.draft.agent_type === "human" && /persona|model|defin/.test(name) && !form.draft[name]) continue;
    if (FIELDS[name].beside) lines.at(-1)!.push(name);
    else lines.push([name]);
  }
  const props = (name: FieldName) => ({
    ...form,
    name,
    value: form.draft[name],
    set: (value: unknown) => form.onChange({ ...form.draft, [name]: value }),
  });
  return (
    <>
      {lines.map((names) => {
        const controls = names.map((name) => {
          const Control = CONTROLS[FIELDS[name].kind] as ComponentType<ControlProps<unknown>>;
          return <Control key={name} {...props(name)} />;
        });
        const colored = names.find((name) => FIELDS[name].kind === "color");
        return (
          <Fragment key={names[0]}>
            {names.length > 1 ? <div class="two">{controls}</div> : controls}
            {colored && !form.readOnly && <Swatches {...(props(colored) as ControlProps<string>)} />}
          </Fragment>
        );
      })}
    </>
  );
}
