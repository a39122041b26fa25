/** Limits in bytes after gzip: a page must load fast on a slow line. */
export const LIMITS = { "app.js": 61_440, "app.css": 10_240 };
