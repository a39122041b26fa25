/** How far a budget is used, and where it is going. */
import { money, outlookLine, percent, PERIODS, type Budget, type Outlook } from "../base/usage";
import { cx } from "./base";

/** The limit stands at this part of the width. */
const LIMIT = 80;

export function BudgetBar({ name, look }: { name: string; look: Outlook }) {
  const { spent, reserved, limit, end, tone } = look;
  const at = (value: number): number => (limit > 0 ? Math.min(100, (value / limit) * LIMIT) : LIMIT);
  const used = at(spent + reserved);
  const label = [
    `${name}: ${money(spent)} spent`,
    reserved > 0 && `${money(reserved)} reserved`,
    `limit ${money(limit)}`,
    end !== null && `${money(end)} expected at the end`,
  ];
  return (
    <svg class={cx("budget-bar", tone)} height="20" role="img" aria-label={label.filter(Boolean).join(", ")}>
      <rect class="track" y="6" width={`${LIMIT}%`} height="8" rx="2" />
      <rect class="spent" y="6" width={`${at(spent)}%`} height="8" rx="2" />
      {reserved > 0 && <rect fill="url(#hatch)" x={`${at(spent)}%`} y="6" width={`${used - at(spent)}%`} height="8" />}
      {[0.5, 0.8].map((of) => (
        <line key={of} class="tick" x1={`${of * LIMIT}%`} x2={`${of * LIMIT}%`} y1="16" y2="19" />
      ))}
      {end !== null && (
        <>
          <line class="way" x1={`${used}%`} x2={`${at(end)}%`} y1="10" y2="10" />
          <circle class="end" cx={`${Math.min(98.5, at(end))}%`} cy="10" r="3.5" />
        </>
      )}
      <line class="limit" x1={`${LIMIT}%`} x2={`${LIMIT}%`} y1="3" y2="17" />
    </svg>
  );
}

/** "Studio this month … $308.29 of $400" */
export function BudgetHead({ name, budget, look }: { name: string; budget: Budget; look: Outlook }) {
  return (
    <div class="row">
      <span class="clip grow">
        <b dir="auto">{name}</b> <span class="dim">{PERIODS[budget.period]}</span>
      </span>
      <span class="sums">
        <b>{money(look.spent)}</b> <span class="dim">of {money(look.limit).replace(/\.00$/, "")}</span>
      </span>
    </div>
  );
}

export function BudgetFoot({ budget, look }: { budget: Budget; look: Outlook }) {
  return (
    <div class="row hint grow">
      <span class={cx("grow", look.tone !== "ok" && `${look.tone}-text`)}>{outlookLine(budget, look)}</span>
      <span>{percent(look.used, 0)} used</span>
    </div>
  );
}
