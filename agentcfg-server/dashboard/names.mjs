// Names of properties that the scripts alone use, which the build shortens: nothing of the browser, of the API, of Preact or of
// what the browser stores is called so, and nothing uses such a name as text. The build fails where one does. A use of the browser's
// own property of such a name stands in brackets, as in `event["data"]`.
const OWN = `
  about above also apiKey asked axis bands baseName baseVersion beforeLast beside blocked blocks budgets busy buttons
  byId called careful conflicts counted cure data direction earlier ended extra falling faults filters foot found gap
  heights hook ids ifMatch ifNoneMatch items kept kind known last limited locked look markers may metric needs newest
  note nothing nullable onBack onCheck onChoose onClear onClose onDecide onEdit onKey onMessage onOpen onPick onPoint
  onRestore onSave onSend onSort onTable onText onTick onUp opened others outcomes own ownHeading params parts passes
  peek perhapsDone pieces places planned precise query requestId retry retryAfter run running safe said say scale screen
  send series setLeft settings shown slots slow stale steps sum tasks texts theirsName tickRow tone took topic touch
  touchAll touched trail tried typed unit used users usual verb wake wanted was what why will words worked
`
  .trim()
  .split(/\s+/);

export const mangleProps = new RegExp(`^(${OWN.join("|")})$`);

/** Fails where a name is also a text of the bundled scripts: a property could be looked up by it. */
export function noneIsText(scripts) {
  const found = OWN.filter((name) => scripts.some((script) => script.includes(`"${name}"`)));
  if (found.length) throw new Error(`names.mjs: also texts of a script: ${found.join(", ")}`);
}
