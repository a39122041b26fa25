/** Agents from files: what they would change is seen before it is done. */
import { useMemo, useRef, useState } from "preact/hooks";
import { readFiles } from "../base/agent-files";
import { applyPlan, MOST, usePlan } from "../base/apply";
import { messageFault } from "../base/config";
import { go, href } from "../base/route";
import { number, plural } from "../base/text";
import { Button, cx, Told } from "../parts/base";
import { Banner, Failure, toast, useSending } from "../parts/feedback";
import { MessageField } from "../parts/fields";
import { Lead, Page } from "../parts/page";
import { PlanTable } from "../parts/plan";

export function Import() {
  const [files, setFiles] = useState<[name: string, text: string][]>([]);
  const [over, setOver] = useState(false);
  const [message, setMessage] = useState("");
  const [again, setAgain] = useState(0);
  const chooser = useRef<HTMLInputElement>(null);
  const { busy, error: refused, send } = useSending("Nothing is imported.");
  const { entries, faults, ignored, place } = useMemo(() => readFiles(files), [files, again]);
  const well = faults.length === 0;
  const { plan, error } = usePlan(well ? entries : [], null, () => undefined, place);
  const take = async (list: Iterable<File>): Promise<void> => {
    const read = await Promise.all([...list].map(async (file): Promise<[string, string]> => [file.name, await file.text()]));
    setFiles((before) => [...new Map([...before, ...read])]);
  };
  const apply = async (): Promise<void> => {
    try {
      toast(`${plural(await applyPlan(plan!, message), "agent")} imported.`);
      go(href("agents"));
    } catch (failed) {
      setAgain(again + 1);
      throw failed;
    }
  };
  const changes = plan?.outcomes.some(({ action }) => action !== "none");
  return (
    <Page
      title="Import"
      trail={[{ label: "Agents", to: href("agents") }]}
      buttons={
        <Button kind="primary" busy={busy} blocked={!changes || messageFault(message) !== null} onClick={() => void send(apply)}>
          Apply
        </Button>
      }
    >
      <Lead>
        <Told of="import" />
      </Lead>
      <div
        class={cx("drop", over && "over")}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          void take(event.dataTransfer!.files);
        }}
      >
        <p>
          {files.length
            ? `${plural(files.length, "file")}, ${plural(entries.length, "agent")}`
            : "Drop Markdown or JSON files here"}
        </p>
        <input
          ref={chooser}
          type="file"
          class="hidden"
          multiple
          accept=".md,.json"
          aria-label="Files"
          tabIndex={-1}
          // A file that was mended can be chosen again.
          onClick={(event) => (event.currentTarget.value = "")}
          onChange={(event) => void take(event.currentTarget.files!)}
        />
        <div class="row">
          <Button icon="plus" onClick={() => chooser.current!.click()}>
            Choose files
          </Button>
          {files.length > 0 && (
            <Button kind="quiet" onClick={() => setFiles([])}>
              Start again
            </Button>
          )}
        </div>
      </div>
      {!well && (
        <Banner tone="bad" title="Nothing is sent until these are mended.">
          <ul>
            {faults.map((fault) => (
              <li key={fault}>{fault}</li>
            ))}
          </ul>
        </Banner>
      )}
      {ignored.length > 0 && <p class="hint">Ignored: {ignored.join(", ")}.</p>}
      {entries.length > MOST && <Banner tone="warn">At most {number(MOST)} agents change at once: choose fewer files.</Banner>}
      <Failure what="Nothing is imported." error={refused ?? error} />
      {plan && (
        <div class="stack">
          <PlanTable outcomes={plan.outcomes} />
          {changes && <MessageField why value={message} onText={setMessage} />}
        </div>
      )}
    </Page>
  );
}
