// Names of properties that the scripts alone use, which the build shortens: nothing of the browser, of the API, of Preact or of
// what the browser stores is called so, and nothing uses such a name as text. The build fails where one does.
const OWN = `
  about above absent also apiKey asked axis bands baseName baseVersion beforeLast beside blocked blocks budgets busy byId
  called careful conflicts counted cure direction earlier ended extra falling faults filters foot found heights hook ids ifMatch
  ifNoneMatch kept known last limited look markers may metric needs newest note nothing nullable onBack onCheck onChoose
  onClear onClose onDecide onEdit onKey onMessage onOpen onPick onPoint onRestore onSave onSort onSend onTable onText onTick onUp
  others outcomes own ownHeading parts passes peek perhapsDone pieces places planned precise requestId retry retryAfter run
  running safe said say scale screen series setLeft settings shown slots slow stale steps sum tasks texts theirsName tickRow
  tone took topic touch touchAll tried typed users usual verb wake wanted what why will words worked
`
  .trim()
  .split(/\s+/);

export const mangleProps = new RegExp(`^(${OWN.join("|")})$`);

/** Fails where a name is also a text of the bundled scripts: a property could be looked up by it. */
export function noneIsText(scripts) {
  const found = OWN.filter((name) => scripts.some((script) => script.includes(`"${name}"`)));
  if (found.length) throw new Error(`names.mjs: also texts of a script: ${found.join(", ")}`);
}
