/** @typedef {{name: string}} Named A comment about a type is not about what follows. */
export function typed(a) {}

/**
 * Greets somebody,
 * politely.
 *
 * - in one language
 * - or more
 *
 * @param {string} name - Whom to greet:
 *   a name.
 * @param {"short" | 'long'} [style=short] How, see {@link https://example.com the page}.
 * @param {number} [times]
 * @param {boolean | null} loud
 * @param {string|number} id
 * @param {integer} [level=-1]
 * @returns {Promise<string>} The greeting.
 * @example
 * await greet("Ada", "long") // => for readers only
 */
export async function greet(name, style = "short", times = 3, loud, id, level) {
  return name + /['"`{]/.source + `${style + `${"}"}`}`;
}

/**
 * Draws.
 * @param {{x: number, y?: number}} at
 * @param {Array<{x: number}>} points
 * @param {string[]} names
 * @param {"it's" | 'it\'s "so"' | 2 | true} quoted
 * @param {*} more
 * @param {1 | 2 | 3 | null} size
 * @param {(string | null)[]} maybe
 */
export const draw = (at, points, names, quoted, more, size, maybe) => at;

/**
 * Takes one object.
 * @param {Object} options The options.
 * @param {string} options.text - What.
 * @param {{width: number}} [options.size]
 * @param {{name: string}[]} options.items
 */
export function make({ text, size, items, colour }) {}

/**
 * @param {string} a - The first.
 * @param {number} [b]
 */
function sum({ a, b = 2 }) {}
export { sum as total };

/** Nothing to pass. */
export const ping = async () => "pong";

/**
 * Not for everybody.
 * @private
 */
export function helper(a) {}

// Not a comment for documentation.
export function plain(a) {}

/** Also from a variable.
 * @param {string} text */
export default function shout(text) {}

/** An example of a call of a tool.
 * @param {string} name Whom. */
export const hello = tool({ run: (args) => args.name });

/** No types. @param inside a line is text.
 * @param a the first */
export function untyped(a) {}

/** Wrong name. @since 1
 * @param {string} nam the name */
export function misspelt(name) {}

/** A date.
 * @param {Date} day */
export function dated(day) {}

/** @param {import("./other").Thing} thing */
export function foreign(thing) {}

/** @param {...string} names */
export function many(...names) {}

/** @param {(a: number) => void} f */
export function callback(f) {}

/** @param {{a: number} a */
export function broken(a) {}
