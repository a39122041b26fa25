/** Listens to events of the window until the returned function is called. */
export function listening<K extends keyof WindowEventMap>(
  name: K,
  run: (event: WindowEventMap[K]) => void,
  options?: boolean | AddEventListenerOptions,
): () => void {
  addEventListener(name, run, options);
  return () => removeEventListener(name, run, options);
}
