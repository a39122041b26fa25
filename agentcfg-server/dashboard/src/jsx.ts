/** What the build makes of elements. */
export { Fragment, h } from "preact";
