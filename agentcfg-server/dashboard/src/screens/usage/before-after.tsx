/** Two versions beside each other: what a release changed. */
import { route, setParams } from "../../base/route";
import { number } from "../../base/text";
import { change, percent, price, took } from "../../base/usage";
import { FEW, MEANS, usualPair, type byVersion, type Mean } from "../../base/usage-versions";
import { cx, Icon, options, Told } from "../../parts/base";
import { Select } from "../../parts/fields";

const WRITE: Record<Mean["kind"], (value: number) => string> = {
  price,
  number: (value) => number(Math.round(value)),
  time: took,
  share: (value) => percent(value),
};
/** A smaller change is none. */
const SAME = 0.01;

export function BeforeAfter({ rows }: { rows: ReturnType<typeof byVersion> }) {
  const params = route.value.params;
  const usual = usualPair(rows);
  if (!usual) return null;
  const pick = (name: "a" | "b", other: number) => rows.find(({ version }) => version === Number(params.get(name) ?? other));
  const before = pick("a", usual[0]) ?? rows[1]!;
  const after = pick("b", usual[1]) ?? rows[0]!;
  const choices = rows.map(({ version }) => [String(version), `v${version}`] as const);
  const few = [before, after].filter(({ row }) => row.calls < FEW);
  return (
    <section class="card">
      <header>
        <h2 class="grow clip">Before and after</h2>
        <Select tool aria-label="Before" value={String(before.version)} onPick={(a) => setParams({ a })}>
          {options(choices)}
        </Select>
        <Icon name="arrow" small />
        <Select tool aria-label="After" value={String(after.version)} onPick={(b) => setParams({ b })}>
          {options(choices)}
        </Select>
      </header>
      <ul class="dumbbells">
        {MEANS.map(({ label, of, kind }) => {
          const [was, is] = [of(before.row), of(after.row)];
          if (was === null || is === null) return null;
          const ratio = was > 0 ? is / was : is > 0 ? 2 : 1;
          const tone = few.length ? "few" : Math.abs(ratio - 1) < SAME ? "same" : ratio < 1 ? "good" : "warn";
          const at = `${Math.min(98, Math.max(2, 50 * ratio))}%`;
          return (
            <li key={label}>
              <div class="row">
                <span class="grow">{label}</span>
                <span class="sums">
                  <span class="dim">{WRITE[kind](was)}</span> <span aria-hidden="true">→</span>
                  <span class="hidden"> to </span> <b>{WRITE[kind](is)}</b>
                </span>
              </div>
              <div class="row">
                <svg class={cx("dumbbell grow", tone)} height="12" aria-hidden="true">
                  <line class="track" x1="0" x2="100%" y1="6" y2="6" />
                  <line class="way" x1="50%" x2={at} y1="6" y2="6" />
                  <circle class="before" cx="50%" cy="6" r="4" />
                  <circle class="after" cx={at} cy="6" r="4" />
                </svg>
                <span class={cx("hint delta", /good|warn/.test(tone) && `${tone}-text`)}>
                  {was > 0 ? change(is, was) : is > 0 ? "new" : "±0 %"}
                </span>
              </div>
            </li>
          );
        })}
      </ul>
      <p class="card-foot hint">
        <Told of="means" />
        {few.length > 0 &&
          ` ${few.map(({ version }) => `v${version}`).join(" and ")} had fewer than ${FEW} calls: that says little.`}
      </p>
    </section>
  );
}
