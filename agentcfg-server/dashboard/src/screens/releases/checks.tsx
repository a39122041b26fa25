/** What is worth a look before a label moves. */
import { useModels } from "../../base/data";
import { plural } from "../../base/text";
import type { Agent, Model } from "../../base/types";
import { money } from "../../base/usage";
import { Icon } from "../../parts/base";
import type { Move, Plan } from "./moves";

const MODELS = 3;

export function Checks({
  moves,
  plan,
  byId,
  label,
}: {
  moves: Move[];
  plan: Plan;
  byId: ReadonlyMap<string, Agent>;
  label: string;
}) {
  const models = useModels().data;
  const name = (id: string): string => byId.get(id)?.display_name ?? id;
  const back = moves.filter(({ from, to }) => from !== null && to! < from);
  const changed = moves.flatMap((move) => {
    const [from, to] = [plan.models.get(`${move.agent_id} ${move.from}`), plan.models.get(`${move.agent_id} ${move.to}`)];
    return from !== undefined && to !== undefined && from !== to ? [{ ...move, was: from, will: to }] : [];
  });
  const priced = (id: string | null) => {
    const { input_price: into, output_price: out } = models?.find((model: Model) => model.id === id) ?? {};
    return (
      <>
        <code>{id ?? "none"}</code>
        {into != null && out != null && ` (${money(into)} in, ${money(out)} out a million tokens)`}
      </>
    );
  };
  const without = moves.filter(({ agent_id, to }) => {
    const model = models?.find(({ id }: Model) => id === plan.models.get(`${agent_id} ${to}`));
    return model?.credential === "none";
  });
  const rows: [tone: "warn" | "ok", text: preact.ComponentChildren][] = [];
  for (const { agent_id, from, to } of back.slice(0, MODELS))
    rows.push([
      "warn",
      <>
        <b>{name(agent_id)}</b> goes back: v{from} to v{to}.
      </>,
    ]);
  if (back.length > MODELS) rows.push(["warn", `An older version for ${plural(back.length - MODELS, "more agent")}.`]);
  for (const { agent_id, was, will } of changed.slice(0, MODELS))
    rows.push([
      "warn",
      <>
        <b>{name(agent_id)}</b> changes its model: {priced(was)} to {priced(will)}.
      </>,
    ]);
  if (changed.length > MODELS) rows.push(["warn", `Another model for ${plural(changed.length - MODELS, "more agent")}.`]);
  for (const { agent_id, to } of without.slice(0, MODELS))
    rows.push([
      "warn",
      <>
        <b>{name(agent_id)}</b>: there is no key for <code>{plan.models.get(`${agent_id} ${to}`)}</code>, its calls are refused.
      </>,
    ]);
  rows.push(["ok", `Nothing has moved yet: ${label} moves on ${plural(moves.length, "agent")}.`]);
  return (
    <div class="card">
      <header>
        <h2>Before it moves</h2>
        <span class="dim small-text">{plural(rows.length, "check")}</span>
      </header>
      <ul class="checks">
        {rows.map(([tone, text], i) => (
          <li key={i} class={tone}>
            <Icon name={tone === "ok" ? "done" : "warn"} />
            <span>{text}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}
