/** A box for texts of many lines: they are numbered, marks of Markdown have a colour, and it can fill the window. */
import { useState } from "preact/hooks";
import { Button, cx } from "./base";
import { Area, type AreaProps } from "./fields";

/** Variables, code and bold words. */
const MARKS = /(\{\{[^}]*\}\}|`[^`]+`|\*\*[^*]+\*\*)/;

export function LongArea({ value, rows, ...rest }: AreaProps) {
  const [full, setFull] = useState(false);
  return (
    <div
      class={cx("long-area", full && "full")}
      style={{ "--rows": Number(rows) }}
      onKeyDown={(event) => {
        if (!full || event.key !== "Escape") return;
        event.stopPropagation();
        setFull(false);
      }}
    >
      {/* The text is seen here: each line wraps as it does in the box over it. */}
      <div class="area-lines" dir="auto" aria-hidden="true">
        {value.split("\n").map((line, i) => (
          <div key={i} class={/^#{1,6} /.test(line) ? "heading" : undefined}>
            {line.split(MARKS).map((part, k) => (k % 2 ? <i key={k}>{part}</i> : part))}
            {"\u200b"}
          </div>
        ))}
      </div>
      <Area {...rest} rows={rows} value={value} class="long" />
      <Button small class="fill" onClick={() => setFull(!full)}>
        {full ? "Leave full screen" : "Full screen"}
      </Button>
    </div>
  );
}
