// What is not read, each with its sentence.

/** @param {Point} at A type of @typedef. */
export function typedef(at) {}

/** @param {Array.<string>} names */
export function dotted(names) {}

/** @param {Object<string, number>} counts */
export function map(counts) {}

/** @param {?string} name */
export function closure(name) {}

/** @param {string=} name */
export function equals(name) {}

/** @param {...string} names */
export function dots(names) {}

/** @param {[number, string]} pair */
export function tuple(pair) {}

/**
 * @param {Object[]} items
 * @param {string} items[].name
 */
export function items(items) {}

/**
 * @param {Object[]} all
 * @param {string} all.name
 */
export function members(all) {}

/**
 * @param {Object | null} some
 * @param {string} some.name
 */
export function maybe(some) {}

/**
 * @param {{a: string}} one
 * @param {string} one.b
 */
export function other(one) {}

/** No type. */
export function empty(a = [], b = null) {}

/** @param {string} options.text */
export function orphan(options) {}

/**
 * @param {string} a
 * @param {number} a
 */
export function twice(a) {}

/** @param {"\d"} escape */
export function escape(escape) {}

/** @param {0x10 | -Infinity} n */
export function digits(n) {}

/** @param {string | } text */
export function unfinished(text) {}

/** @returns {Map<string, string>} */
export function result() {}

/**
 * @param {Object} deep
 * @param {Object} deep.size
 * @param {number} deep.size.width
 */
export function deep(deep) {}

/** @param {string | undefined} name */
export function absent(name) {}

/** @param {Foo & Bar} both */
export function joined(both) {}

/** @param {string} args */
export const one = tool({ run: (args) => args });
