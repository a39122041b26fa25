/** The sheet of keyboard shortcuts. */
import { letters, MAC, sheet } from "../base/shortcuts";
import { useTexts } from "../base/texts";
import { Button } from "../parts/base";
import { Dialog } from "../parts/dialog";
import { Reading } from "../parts/feedback";
import { Check } from "../parts/fields";

export function Shortcuts() {
  const read = useTexts();
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
      <Reading of={read} what="The sheet" tall />
      <div class="shortcuts">
        {read.data?.keys.map(([title, rows]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {rows.map(([what, keys]) => (
                <div key={what}>
                  <dt>{what}</dt>
                  <dd>
                    {(MAC ? keys.replace("Ctrl", "⌘") : keys)
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
