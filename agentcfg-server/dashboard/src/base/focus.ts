/**
 * Keeps the focus on the page: where the element that has it is removed, such as a row after its deletion, the heading of the
 * screen gets it. A keyboard would start again at the top of the page, and a screen reader would say nothing.
 */
let holder: Node | null = null;

addEventListener("focusin", ({ target }) => (holder = target as Node));
addEventListener("focusout", ({ target }) =>
  // A removal can end the focus, too: whether it was one is known when it is done.
  queueMicrotask(() => {
    if (holder === target && holder?.isConnected) holder = null;
  }),
);

export const focusHeading = (): void => document.querySelector("h1")?.focus({ preventScroll: true });

/** Watches the elements of the page. What takes the focus on purpose does so before the next frame. */
export function keepFocus(page: Element): void {
  new MutationObserver(() => {
    if (!holder || holder.isConnected) return;
    holder = null;
    requestAnimationFrame(() => document.activeElement === document.body && focusHeading());
  }).observe(page, { childList: true, subtree: true });
}
