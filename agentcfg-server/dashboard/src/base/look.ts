/** How the page looks: what its user chose in this browser. */
import { effect, signal } from "./signals";
import { remembered } from "./remembered";

/** "light" or "dark", or "" for that of the system. */
export const theme = remembered("theme");
/** "compact", or "" for rows of the usual height. */
export const density = remembered("density");

const SYSTEM = "(prefers-color-scheme: dark)";
const system = matchMedia(SYSTEM);
const isSystemDark = signal(system.matches);
system.addEventListener("change", () => (isSystemDark.value = system.matches));

export const isDark = (): boolean => (theme.value ? theme.value === "dark" : isSystemDark.value);

/** The height of a row in pixels on wide and narrow windows; a narrow one has room for fingers in any case. */
export const rowHeights = (narrow = 52): [number, number] => [density.value ? 34 : 44, narrow];

/** The rules of the style sheets that are for a dark system. */
let rules: MediaList[] | undefined;

effect(() => {
  const chosen = theme.value;
  // They are looked for once they are needed.
  if (!chosen && !rules) return;
  rules ??= [...document.styleSheets]
    .flatMap(({ cssRules }) => [...cssRules])
    .flatMap((rule) => (rule instanceof CSSMediaRule && rule.media.mediaText === SYSTEM ? rule.media : []));
  for (const media of rules) media.mediaText = chosen === "dark" ? "all" : chosen ? "not all" : SYSTEM;
});
effect(() => void (document.documentElement.dataset["density"] = density.value));
