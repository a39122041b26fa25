/** The time that pages show ages by. */
import { signal } from "./signals";

/** The present time, which components that show ages depend on; it moves while the page is visible. */
export const second = signal(Date.now());
export const now = signal(Date.now());
setInterval(() => {
  if (document.hidden) return;
  second.value = Date.now();
  if (second.value - now.value >= 10_000) now.value = second.value;
}, 1000);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) now.value = second.value = Date.now();
});
