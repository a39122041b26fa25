/** What a change of many agents would do: a row for each agent, with its differences. */
import { useState } from "preact/hooks";
import type { Outcome } from "../base/apply";
import { configOf, FIELDS, NAMES, shown, type Config } from "../base/config";
import { useAgentsById } from "../base/data";
import { plural } from "../base/text";
import type { Agent } from "../base/types";
import { Badge } from "./base";
import { Comparison } from "./comparison";
import { OpeningRow, Table } from "./rows";

const ACTIONS = { create: "New", update: "Changed", restore: "Restored", deactivate: "Deleted", none: "Same" } as const;

/** The fields that change, short ones with both values. */
const summary = ({ changes }: Outcome): string =>
  NAMES.filter((name) => changes?.[name])
    .map((name) => {
      const { label, long, kind } = FIELDS[name];
      const { from, to } = changes![name]!;
      return long || kind === "numbers" ? label : `${label}: ${shown(from)} → ${shown(to)}`;
    })
    .join(", ");

/** A configuration with the values of one side. */
const side = (config: Partial<Config>, { changes }: Outcome, end: "from" | "to"): Config => {
  const content = Object.fromEntries(NAMES.map((name) => [name, config[name] ?? null]));
  for (const [name, change] of Object.entries(changes ?? {})) content[name] = change[end] as never;
  return content as unknown as Config;
};

export function PlanTable({ outcomes }: { outcomes: Outcome[] }) {
  const known = useAgentsById();
  const [open, setOpen] = useState<string | null>(null);
  const changed = outcomes.filter(({ action }) => action !== "none");
  const same = outcomes.length - changed.length;
  return (
    <>
      {changed.length > 0 && (
        <Table name="What changes" kind="plan-table" columns={[["Agent"], ["Change"]]}>
          {changed.map((outcome) => {
            const { agent_id: id, action, version } = outcome;
            const agent: Agent | undefined = known.get(id);
            const config = agent ? configOf(agent) : {};
            return (
              <OpeningRow
                key={id}
                open={open === id}
                toggle={() => setOpen(open === id ? null : id)}
                columns={[2, 2, 2]}
                first={
                  <span class="names">
                    <b class="clip" dir="auto">
                      {agent?.display_name ?? shown(outcome.changes?.["display_name"]?.to ?? id)}
                    </b>
                    <code class="clip">{id}</code>
                  </span>
                }
                details={() => (
                  <Comparison
                    before={side(config, outcome, "from")}
                    after={side(config, outcome, "to")}
                    from="Now"
                    to={`v${version}`}
                    inline
                    nothing="Its content stays as it is."
                  />
                )}
              >
                <td>
                  <Badge tone={action === "update" ? undefined : "accent"}>{ACTIONS[action]}</Badge>{" "}
                  {action === "create" ? "" : summary(outcome)}
                </td>
              </OpeningRow>
            );
          })}
        </Table>
      )}
      <p class="hint" role="status">
        {changed.length ? `${plural(changed.length, "agent")} would change` : "Nothing would change"}
        {same > 0 && changed.length > 0 && `, ${plural(same, "agent")} would stay as ${same === 1 ? "it is" : "they are"}`}.
      </p>
    </>
  );
}
