// What every page builds its elements with. Text in a template is always text, never HTML.
import htm from "./lib/htm.js";
import { h } from "./lib/preact.js";

export { createContext, render } from "./lib/preact.js";
export * from "./lib/hooks.js";
export const html = htm.bind(h);
