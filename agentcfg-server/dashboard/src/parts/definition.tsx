/** A definition for reading: its parts, and what is in each. */
import { definitionItems, variableNotes } from "../base/definition";
import { object } from "../base/json-text";
import { Table } from "./rows";

export function DefinitionView({ text, persona }: { text: string; persona: string }) {
  const definition = object(text);
  const items = definitionItems(definition ?? {});
  return (
    <>
      {variableNotes(persona, definition).map((note) => (
        <p key={note} class="hint">
          {note}
        </p>
      ))}
      {items.length > 0 && (
        <Table name="What the definition has" kind="plan-table" columns={[["Part"], ["Name"], ["Details"]]}>
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
