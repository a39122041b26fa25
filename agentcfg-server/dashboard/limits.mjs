/** Limits in bytes after gzip: a page must load fast on a slow line. The first screen needs app.js and chunk.js alone. */
export const LIMITS = { first: 61_440, scripts: 92_160, "app.css": 16_384 };
/** The scripts, those of the first screen first. */
export const FIRST = ["app.js", "chunk.js"];
export const SCRIPTS = [...FIRST, "later.js"];
