// How the scripts write elements: a class that is always the same stands behind the name of its element, as in h("p hint"), and
// no attributes are 0. lean.mjs has the lines by which Preact reads it.

/** The function of Preact that makes an element. */
const MAKER = /function (\w+)\(\w+,\w+,\w+\)\{var [^;]*=arguments\.length[;\s]+for\(\w+ in \w+\)\w+=="key"/;

export function shorten(scripts) {
  const [, made] = MAKER.exec([...scripts.values()].join("")) ?? [];
  if (!made) throw new Error("elements.mjs: the function that makes elements was not found");
  const withClass = new RegExp(`\\b${made}\\("(\\w+)",\\{([^{}]*?)class:"([^"\\\\]*)"(?:,|(\\}))`, "g");
  const without = new RegExp(`\\b${made}\\(("[^"]*"|[\\w$]+),null\\b`, "g");
  for (const [name, text] of scripts) {
    const short = text.replace(
      withClass,
      (_, tag, before, is, end) =>
        `${made}("${tag} ${is}",${before || !end ? `{${before.slice(0, end ? -1 : undefined)}${end ?? ""}` : "0"}`,
    );
    scripts.set(name, short.replace(without, `${made}($1,0`));
  }
}
