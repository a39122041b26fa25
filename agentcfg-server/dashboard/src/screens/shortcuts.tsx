/** The sheet of keyboard shortcuts. */
import { letters, MAC, sheet } from "../base/shortcuts";
import { Button } from "../parts/base";
import { Dialog } from "../parts/dialog";
import { Check } from "../parts/fields";

const CTRL = MAC ? "⌘" : "Ctrl";
/** Keys are divided by spaces. */
const GROUPS: [string, [string, string][]][] = [
  [
    "Anywhere",
    [
      ["Search or jump to", `${CTRL} K`],
      ["This sheet", "?"],
      ["Overview, Agents, Releases", "G then O A R"],
      ["Usage, Status, Audit log", "G then U S L"],
      ["Messages", "F6"],
      ["Close", "Esc"],
    ],
  ],
  [
    "Lists and tables",
    [
      ["Filter", "/"],
      ["From the filter to the rows", "↓"],
      ["Next and previous row", "J K"],
      ["First and last row", "Home End"],
      ["Open", "↵"],
    ],
  ],
  [
    "Releases",
    [
      ["Tick the agent", "X"],
      ["Tick up to here", "Shift X"],
      ["Only what is behind", "B"],
      ["Review what is ticked", "R"],
      ["Previous and next agent in a review", "[ ]"],
      ["Move the label", `${CTRL} ↵`],
    ],
  ],
  [
    "Difference",
    [
      ["Next and previous change", "N P"],
      ["Side by side or inline", "V"],
    ],
  ],
  [
    "Editing",
    [
      ["Review and save", `${CTRL} S`],
      ["Find and replace", `${CTRL} F`],
      ["Leave the text box", "Tab"],
    ],
  ],
  [
    "Playground",
    [
      ["Send to all columns", `${CTRL} ↵`],
      ["Stop", "Esc"],
    ],
  ],
  [
    "Charts",
    [
      ["Earlier and later point", "← →"],
      ["Next series", "↑ ↓"],
      ["Show as a table", "T"],
    ],
  ],
];

export function Shortcuts() {
  const close = (): void => void (sheet.value = null);
  return (
    <Dialog
      wide
      title="Keyboard shortcuts"
      onClose={close}
      note={
        <Check checked={!letters.value} onCheck={(on) => (letters.value = on ? "" : "off")}>
          Single letters work outside of text fields
        </Check>
      }
      foot={
        <Button data-first onClick={close}>
          Close
        </Button>
      }
    >
      <div class="shortcuts">
        {GROUPS.map(([title, rows]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {rows.map(([what, keys]) => (
                <div key={what}>
                  <dt>{what}</dt>
                  <dd>
                    {keys
                      .split(" ")
                      .map((key) => (key === "then" ? <span class="hint"> then </span> : <kbd key={key}>{key}</kbd>))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
