/** A definition for reading: its parts, and what is in each. */
import { useEffect } from "preact/hooks";
import { call, isStatus } from "../base/api";
import { definitionItems, refused, variableNotes } from "../base/definition";
import { object, Raw } from "../base/json-text";
import { workspace } from "../base/session";
import { Table } from "./rows";

const PAUSE = 250;

/** Asks the server about a definition while it is typed: its rules are not written down twice. */
function useRules(agentId: string, text: string): void {
  useEffect(() => {
    if (!object(text)) return;
    const timer = setTimeout(() => {
      call("POST", "api/agents/apply", {
        query: { workspace_id: workspace.peek()!.id, dry_run: true },
        body: { agents: [{ agent_id: agentId, display_name: "-", definition: new Raw(text) }] },
      }).catch((error) => {
        const why = isStatus(error, 400) && /(?<=agents\[0\]\.)definition[^;]+/.exec(error.message)?.[0];
        if (why) refused.value = { text, why: `${why}.` };
      });
    }, PAUSE);
    return () => clearTimeout(timer);
  }, [text]);
}

export function DefinitionView({ id, text, persona }: { id: string; text: string; persona: string }) {
  useRules(id, text);
  const definition = object(text);
  const items = definitionItems(definition ?? {});
  return (
    <>
      {/* What a text that is no JSON declares is not known. */}
      {(definition || !text.trim()) &&
        variableNotes(persona, definition).map((note) => (
          <p key={note} class="hint">
            {note}
          </p>
        ))}
      {items.length > 0 && (
        <Table name="What the definition has" kind="parts-table" columns={[["Part"], ["Name"], ["Details"]]}>
          {items.map(({ part, name, note }, i) => (
            <tr key={i}>
              <th scope="row">{part === items[i - 1]?.part ? <span class="hidden">{part}</span> : part}</th>
              <td>
                <code>{name}</code>
              </td>
              <td class="dim">{note}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
