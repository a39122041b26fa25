/** Copies a text and tells whether it succeeded, also where the page has no clipboard API (plain http). */
export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return oldCopy(text);
  }
}

function oldCopy(text: string): boolean {
  const before = document.activeElement as HTMLElement | null;
  const box = document.createElement("textarea");
  box.value = text;
  box.readOnly = true;
  box.className = "offscreen";
  // In a modal dialog only what is inside it can be selected.
  (document.querySelector("dialog[open]:last-of-type") ?? document.body).append(box);
  box.select();
  let done = false;
  try {
    done = document.execCommand("copy");
  } catch {
    done = false;
  }
  box.remove();
  before?.focus();
  return done;
}

export function selectText(element: Element | null): void {
  if (element) getSelection()?.selectAllChildren(element);
}
