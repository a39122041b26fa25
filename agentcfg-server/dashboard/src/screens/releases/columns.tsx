/** Which labels the board shows, and in which order. */
import { useState } from "preact/hooks";
import { LATEST } from "../../base/releases";
import { remembered } from "../../base/remembered";
import { setParams } from "../../base/route";
import { Button, Told } from "../../parts/base";
import { FormDialog } from "../../parts/dialog";
import { Check } from "../../parts/fields";

/** Their names, divided by commas, as they were chosen the last time. */
export const columnsKept = remembered("columns");

export function Columns({ all, columns }: { all: string[]; columns: string[] }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Columns</Button>
      {open && <Choose all={all} columns={columns} onClose={() => setOpen(false)} />}
    </>
  );
}

function Choose({ all, columns, onClose }: { all: string[]; columns: string[]; onClose: () => void }) {
  const [order, setOrder] = useState([...columns, ...all.filter((label) => !columns.includes(label))]);
  const [shown, setShown] = useState<ReadonlySet<string>>(new Set(columns));
  const chosen = order.filter((label) => shown.has(label));
  const enough = chosen.length > 1 && chosen.some((label) => label !== LATEST);
  const move = (at: number, by: number): void => {
    const next = [...order];
    next.splice(at + by, 0, ...next.splice(at, 1));
    setOrder(next);
  };
  return (
    <FormDialog
      narrow
      title="Columns of the board"
      verb="Show"
      blocked={!enough}
      failed="Not changed."
      onClose={onClose}
      note={
        <Button
          kind="quiet"
          onClick={() => {
            columnsKept.value = "";
            setParams({ columns: null });
            onClose();
          }}
        >
          Usual columns
        </Button>
      }
      run={async () => {
        columnsKept.value = chosen.join();
        setParams({ columns: chosen.join() });
      }}
    >
      <p class="prose">
        <Told of="columns" />
      </p>
      <ul class="column-list">
        {order.map((label, i) => (
          <li key={label} class="row">
            <Check
              checked={shown.has(label)}
              onCheck={(on) => {
                const next = new Set(shown);
                if (on) next.add(label);
                else next.delete(label);
                setShown(next);
              }}
            >
              <code>{label}</code>
            </Check>
            <span class="grow" />
            <Button
              kind="quiet"
              small
              icon="up"
              label={`Move ${label} to the left`}
              blocked={i === 0}
              onClick={() => move(i, -1)}
            />
            <Button
              kind="quiet"
              small
              icon="down"
              label={`Move ${label} to the right`}
              blocked={i === order.length - 1}
              onClick={() => move(i, 1)}
            />
          </li>
        ))}
      </ul>
      {!enough && <p class="hint">Choose two columns at least.</p>}
    </FormDialog>
  );
}
