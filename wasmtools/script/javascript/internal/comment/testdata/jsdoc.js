/**
 * A place on the {@link https://example.com map}.
 * @typedef {Object} Point
 * @property {number} x - How far to the right.
 * @property {number} [y=0] How far up.
 */

/** @typedef {{name: string, children?: Tree[]}} Tree A tree. */

/** @typedef {"short" | 'long'} Style */

/**
 * Greets somebody,
 * politely.
 *
 * - in one language
 * - or more
 *
 * @param {string} name - Whom to greet:
 *   a name.
 * @param {Style} [style=short] How.
 * @param {number} [times]
 * @param {?boolean} loud
 * @param {string|number} id
 * @param {integer=} level
 * @returns {Promise<string>} The greeting.
 * @example
 * await greet("Ada", "long") // => "Hello, Ada!"
 * greet(someone)
 */
export async function greet(name, style = "short", times = 3, loud, id, level) {
  return name + /['"`{]/.source + `${style + `${"}"}`}`;
}

/**
 * Draws.
 * @param {Point} at
 * @param {Array<Point>} points
 * @param {Array.<string>} names
 * @param {Record<string, number>} counts
 * @param {Object<string, Point[]>} groups
 * @param {[number, string]} pair
 * @param {Tree} tree
 * @param {*} more
 * @param {1 | 2 | 3 | null} size
 * @param {(string | null)[]} maybe
 */
export const draw = (at, points, names, counts, groups, pair, tree, more, size, maybe) => at;

/**
 * Takes one object.
 * @param {Object} options The options.
 * @param {string} options.text - What.
 * @param {Object} [options.size]
 * @param {number} options.size.width
 * @param {Object[]} options.items
 * @param {string} options.items[].name
 * @example
 * make({ text: 'a', items: [] })
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
