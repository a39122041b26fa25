// Names of properties that the scripts alone use, which the build shortens: nothing of the browser, of the API, of Preact or of
// what the browser stores is called so, and nothing uses such a name as text. The build fails where one does.
const OWN = `
  above absent also apiKey asked bands baseVersion beforeLast beside blocks budgets busy byId called careful conflicts
  counted cure earlier extra faults filters foot found heights hook ids ifMatch ifNoneMatch limited may metric needs
  note nothing nullable onBack onKey onCheck onChoose onClear onClose onDecide onEdit onMessage onOpen onPick onPoint onRestore
  onSave onTable onText onTick onUp others outcomes own ownHeading parts passes peek perhapsDone pieces places planned
  precise retryAfter run running safe said say series setLeft settings slots slow stale steps sum tasks texts theirsName
  tickRow took topic touch touchAll tried typed users verb wake wanted why will words worked
`
  .trim()
  .split(/\s+/);

export const mangleProps = new RegExp(`^(${OWN.join("|")})$`);

/** Fails where a name is also a text of the bundled scripts: a property could be looked up by it. */
export function noneIsText(scripts) {
  const found = OWN.filter((name) => scripts.some((script) => script.includes(`"${name}"`)));
  if (found.length) throw new Error(`names.mjs: also texts of a script: ${found.join(", ")}`);
}
