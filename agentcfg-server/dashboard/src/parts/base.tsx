/** Small parts: icons, avatars, buttons, times, statuses, badges. */
import type { ComponentChildren, JSX } from "preact";
import { isDark } from "../base/look";
import { now, second, ago, ahead, utc } from "../base/text";
import { type Help, useTexts } from "../base/texts";
import type { Actor, Agent, AgentType, Status, Version } from "../base/types";

export const cx = (...names: (string | false | null | undefined)[]): string => names.filter(Boolean).join(" ");

export function Icon({ name, small }: { name: string; small?: boolean }) {
  return (
    <svg class={small ? "icon small" : "icon"} aria-hidden="true">
      <use href={`#i-${name}`} />
    </svg>
  );
}

type ButtonProps = Omit<JSX.IntrinsicElements["button"], "icon" | "size"> & {
  kind?: "primary" | "danger" | "quiet" | "quiet danger" | undefined;
  icon?: string | undefined;
  small?: boolean | undefined;
  busy?: boolean | undefined;
  /** Why it cannot be used: the reason stands beside it. */
  blocked?: boolean | undefined;
  label?: string;
};

export function Button({ kind, icon, small, busy, blocked, label, class: extra, children, onClick, ...rest }: ButtonProps) {
  const off = busy || blocked;
  return (
    <button
      type="button"
      {...rest}
      class={cx("button", kind, small && "small", icon && !children && "square", extra as string)}
      aria-label={label}
      aria-busy={busy || undefined}
      aria-disabled={off || undefined}
      onClick={(event) => {
        if (off) {
          event.preventDefault();
          return;
        }
        onClick?.(event);
      }}
    >
      {busy ? <span class="spinner" aria-hidden="true" /> : icon && <Icon name={icon} small />}
      {children}
    </button>
  );
}

export function LinkButton({
  to,
  kind,
  icon,
  small,
  children,
  ...rest
}: { to: string; kind?: "primary"; icon?: string; small?: boolean; children: ComponentChildren } & {
  class?: string;
  "aria-label"?: string;
}) {
  return (
    <a href={to} {...rest} class={cx("button", kind, small && "small")}>
      {icon && <Icon name={icon} small />}
      {children}
    </a>
  );
}

/** Sentences of texts.json; what stands between backquotes is code. */
export const Told = ({ of }: { of: Help }) => (
  <>
    {useTexts()
      .data?.help[of].split("`")
      .map((part, i) => (i % 2 ? <code key={i}>{part}</code> : part))}
  </>
);

/** Tells whether an element has the pointer or the focus. */
export const heldBy = (set: (held: boolean) => void) => ({
  onMouseEnter: () => set(true),
  onMouseLeave: () => set(false),
  onFocusIn: () => set(true),
  onFocusOut: () => set(false),
});

/** The fills of agents without a colour, and the swatches of the picker. */
export const SWATCHES = [
  "#cc3f28",
  "#e0a11b",
  "#4c7a12",
  "#2b7a68",
  "#0f7288",
  "#3567a8",
  "#6a45c9",
  "#8a4fbf",
  "#b5386c",
  "#5b6677",
];

const pick = (id: string): string => {
  let hash = 0;
  for (const char of id) hash = (hash * 31 + char.codePointAt(0)!) >>> 0;
  return SWATCHES[hash % SWATCHES.length]!;
};

/** The channels of `#rgb`, `#rgba`, `#rrggbb` or `#rrggbbaa` on the surface of the page. */
function channels(color: string): number[] {
  const digits = color.slice(1);
  const wide = digits.length < 5 ? [...digits].map((digit) => digit + digit).join("") : digits;
  const parts = wide.match(/../g)!.map((pair) => parseInt(pair, 16));
  const alpha = (parts[3] ?? 255) / 255;
  const surface = isDark() ? [19, 21, 25] : [255, 255, 255];
  return [0, 1, 2].map((i) => parts[i]! * alpha + surface[i]! * (1 - alpha));
}

function ink(color: string): string {
  const [red, green, blue] = channels(color).map((value) => {
    const share = value / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  const light = 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
  return light > 0.179 ? "#000" : "#fff";
}

const validColor = (color: string | null): color is string =>
  !!color && /^#([0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})$/i.test(color);

function initials(name: string): string {
  const words = name.split(/[\s._@\u202a-\u202e\u2066-\u2069-]+/u).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const letters = words.length > 1 ? words.slice(0, 2).map((word) => [...word][0]) : [...(words[0] ?? name)].slice(0, 2);
  return letters.join("").toUpperCase();
}

/** The mark of an agent, or of what has an id and a name. */
export function Avatar({
  of,
  id = of!.agent_id,
  name = of?.display_name ?? id,
  color = of?.color ?? null,
  type = of?.agent_type ?? "ai",
  size = 24,
}: {
  of?: Agent | undefined;
  id?: string;
  name?: string;
  color?: string | null;
  type?: AgentType;
  size?: 20 | 24 | 32 | 44;
}) {
  const fill = validColor(color) ? color : pick(id);
  const radius = type === "ai" ? 8 : 15.5;
  return (
    <svg class={`avatar s${size}`} viewBox="0 0 32 32" aria-hidden="true">
      <rect x=".5" y=".5" width="31" height="31" rx={radius} fill={fill} stroke="currentColor" stroke-opacity=".12" />
      <text x="16" y="20.5" text-anchor="middle" font-size="12.5" font-weight="600" fill={ink(fill)}>
        {initials(name)}
      </text>
    </svg>
  );
}

/** Who did something: a person, a key, or the server itself. */
export function ActorMark({ actor, name }: { actor: Actor | null; name: string }) {
  if (!actor || actor.type === "user" || actor.type === "operator")
    return <Avatar id={actor?.id ?? ""} name={name} type="human" />;
  return (
    <span class="mark">
      <Icon name={actor.type === "api_key" ? "key" : "webhook"} small />
    </span>
  );
}

export const STATUS: Record<Status, string> = { working: "Working", idle: "Idle", offline: "Offline" };

export function StatusShape({ status }: { status: Status }) {
  return (
    <svg class={`shape ${status}`} aria-hidden="true">
      <use href={`#i-${status}`} />
    </svg>
  );
}

export function StatusPill({ status }: { status: Status }) {
  return (
    <span class={`pill ${status}`}>
      <StatusShape status={status} />
      {STATUS[status]}
    </span>
  );
}

export function Badge({
  tone,
  icon,
  children,
}: {
  tone?: "ok" | "warn" | "bad" | "accent" | undefined;
  icon?: string;
  children: ComponentChildren;
}) {
  return (
    <span class={cx("badge", tone)}>
      {icon && <Icon name={icon} />}
      {children}
    </span>
  );
}

/** A label; where its version is not the current one it says so. That of the users is marked where it is behind. */
export function LabelBadge({
  label,
  version,
  current = version,
  behind,
}: {
  label: string;
  version?: number;
  current?: number | null | undefined;
  behind?: boolean;
}) {
  return (
    <Badge tone={label !== "production" ? undefined : behind ? "warn" : "accent"}>
      {label}
      {version !== current && ` v${version}`}
    </Badge>
  );
}

/** The message of a version. */
export const Message = ({ of: { message, restored_from: from } }: { of: Version }) =>
  message || (from ? `Back to v${from}` : <span class="dim">No message</span>);

/** A time: its age below 24 hours, else the date; UTC under the pointer. What is planned says how long it takes until then. */
export function Time({ at, precise, planned }: { at: string; precise?: boolean; planned?: boolean }) {
  const clock = precise ? second.value : now.value;
  return (
    <time dateTime={at} title={utc(at)}>
      {(planned ? ahead : ago)(Date.parse(at), clock)}
    </time>
  );
}

/** The choices of a list: value and text of each. */
export const options = (rows: readonly (readonly [string, string])[]) =>
  rows.map(([value, text]) => (
    <option key={value} value={value}>
      {text}
    </option>
  ));

export function Skeleton({ rows = 8, tall }: { rows?: number | undefined; tall?: boolean | undefined }) {
  return (
    <div class={cx("skeleton", tall && "tall")} aria-busy="true">
      <span class="hidden">Loading</span>
      {Array.from({ length: rows }, (_, i) => (
        <i key={i} class={`w${i % 4}`} />
      ))}
    </div>
  );
}

export function Empty({
  icon,
  title,
  children,
  action,
}: {
  icon: string;
  title: string;
  children?: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <Icon name={icon} />
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      {action}
    </div>
  );
}
