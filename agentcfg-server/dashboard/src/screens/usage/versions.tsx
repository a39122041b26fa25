/** The versions of an agent that were called, and what their calls cost. */
import { href, route } from "../../base/route";
import { date, DAY, moment, now, number, time } from "../../base/text";
import { brief, costOf, HOUR, percent, price, took } from "../../base/usage";
import { callCost, FEW, type Band, type byVersion } from "../../base/usage-versions";
import { cx, LabelBadge } from "../../parts/base";
import { Table } from "../../parts/rows";

export function VersionsTable({
  rows,
  bands,
  label,
}: {
  rows: ReturnType<typeof byVersion>;
  bands: Band[];
  label: string | undefined;
}) {
  const most = Math.max(...rows.map(({ row }) => callCost(row) ?? 0)) || 1;
  const current = bands.at(-1)?.version;
  const id = route.value.params.get("id");
  return (
    <Table
      name="Versions"
      kind="usage-versions"
      columns={[
        ["Version", "c-version"],
        [label ? `In ${label}` : "In use", "third"],
        ["Calls", "right c-number"],
        ["Errors", "right second c-number"],
        ["Tokens a call", "right large c-tokens"],
        ["p95", "right second c-number"],
        ["Cost of a call", "c-bar second"],
        ["Of a call", "right c-number", true],
        ["Cost", "right c-number"],
      ]}
    >
      {rows.map(({ version, row }) => {
        const cost = callCost(row);
        const band = bands.findLast((one) => one.version === version);
        return (
          <tr key={version} class={cx(row.calls < FEW && "few")}>
            <td>
              <span class="row">
                <a
                  class="strong"
                  href={href("agent", { id, tab: "history", from: version > 1 ? version - 1 : null, to: version })}
                >
                  v{number(version)}
                </a>
                {label && version === current && (
                  <span class="second">
                    <LabelBadge label={label} />
                  </span>
                )}
              </span>
            </td>
            <td class="third">{band ? bandText(band, now.value) : "–"}</td>
            <td class="right">{number(row.calls)}</td>
            <td class={cx("right second", row.errors / row.calls > 0.01 && row.calls >= FEW && "bad-text")}>
              {percent(row.errors / row.calls)}
            </td>
            <td class="right large">
              {brief(row.input_tokens / row.calls)} / {brief(row.output_tokens / row.calls)}
            </td>
            <td class="right second">{row.p95_ms === null ? "–" : took(row.p95_ms)}</td>
            <td class="second">
              <svg class="cost-bar" height="8" aria-hidden="true">
                <rect
                  {...(row.calls < FEW ? { fill: "url(#hatch)" } : { class: "s1" })}
                  width={`${((cost ?? 0) / most) * 100}%`}
                  height="8"
                  rx="1.5"
                />
              </svg>
            </td>
            <td class="right strong">{cost === null ? "–" : price(cost)}</td>
            <td class="right">{costOf(row)}</td>
          </tr>
        );
      })}
    </Table>
  );
}

/** "17 Nov to 22 Nov", "since 14:11" */
const bandText = ({ from, to }: Band, at: number): string => {
  const words = (when: number): string => (at - when < DAY ? time(when) : date(when));
  if (to >= at) return `since ${words(from)}`;
  return to - from < DAY ? `${moment(from)}, ${Math.max(1, Math.round((to - from) / HOUR))} h` : `${words(from)} to ${words(to)}`;
};
