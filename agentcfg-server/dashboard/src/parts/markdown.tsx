/** Markdown as elements: headings, lists, code, bold, emphasis. Nothing of it is taken as HTML, and nothing is loaded. */
import type { ComponentChildren, JSX } from "preact";

const inline = (text: string): ComponentChildren[] =>
  text
    .split(/(`[^`]+`|\*\*[^*]+\*\*|\*(?! )[^*\n]+\*)/)
    .map((part, i) =>
      i % 2 === 0 ? (
        part
      ) : part[0] === "`" ? (
        <code key={i}>{part.slice(1, -1)}</code>
      ) : part[1] === "*" ? (
        <b key={i}>{part.slice(2, -2)}</b>
      ) : (
        <em key={i}>{part.slice(1, -1)}</em>
      ),
    );

const ITEM = /^\s*([-*]|\d+[.)])\s+(.*)/;

export function Markdown({ text }: { text: string }) {
  const blocks: JSX.Element[] = [];
  const lines = text.split("\n");
  const rest = (test: RegExp): string[] => {
    const found: string[] = [];
    while (lines.length && test.test(lines[0]!)) found.push(lines.shift()!);
    return found;
  };
  while (lines.length) {
    const line = lines[0]!;
    const key = lines.length;
    const heading = /^#{1,6}\s+(.*)/.exec(line);
    if (!line.trim()) lines.shift();
    else if (/^```/.test(line)) {
      lines.shift();
      blocks.push(
        <pre key={key} class="code">
          {rest(/^(?!```)/).join("\n")}
        </pre>,
      );
      lines.shift();
    } else if (heading) {
      lines.shift();
      blocks.push(
        <p key={key}>
          <b>{inline(heading[1]!)}</b>
        </p>,
      );
    } else if (ITEM.test(line)) {
      const List = /^\s*\d/.test(line) ? "ol" : "ul";
      blocks.push(
        <List key={key}>
          {rest(ITEM).map((item, i) => (
            <li key={i}>{inline(ITEM.exec(item)![2]!)}</li>
          ))}
        </List>,
      );
    } else blocks.push(<p key={key}>{inline(rest(/^(?!```|#{1,6}\s|\s*([-*]|\d+[.)])\s)(?=.*\S)/).join("\n"))}</p>);
  }
  return <div class="markdown">{blocks}</div>;
}
