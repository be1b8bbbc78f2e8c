// JSON with its numbers as they are written: JavaScript's own would make 9007199254740993 another number.

/** Parses JSON. Numbers that a double can't hold stay texts that JSON.stringify writes back, where the browser can. @param {string} text */
export function parse(text) {
  return JSON.parse(text, /** @type {any} */ (asWritten));
}

// What a double may not hold has so many digits, or such an exponent.
const long = /\d[\d.]{15}|[eE][+-]?\d{3}/;

/** Parses JSON of a server, with the numbers that a double can't hold as parse has them. All others are numbers, and where there are only such it
 * is as quick as the browser. @param {string} text */
export function read(text) {
  return long.test(text) ? JSON.parse(text, /** @type {any} */ (whereItMatters)) : JSON.parse(text);
}

/** @param {string} name @param {unknown} value @param {{source?: string}|undefined} context */
function whereItMatters(name, value, context) {
  return typeof value === "number" && long.test(context?.source ?? "") ? asWritten(name, value, context) : value;
}

/** @param {string} _ @param {unknown} value @param {{source?: string}|undefined} context which older browsers don't give */
function asWritten(_, value, context) {
  if (typeof value !== "number" || !context?.source || String(value) === context.source) return value;
  return exact(context.source) ?? value;
}

/** Returns a number as it was typed, or undefined where the text isn't one. @param {string} text */
export function exact(text) {
  if (!/^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/.test(text)) return undefined;
  const raw = /** @type {any} */ (JSON).rawJSON;
  return String(Number(text)) === text || !raw ? Number(text) : raw(text);
}

/** @param {unknown} value */
export const isRaw = (value) => /** @type {any} */ (JSON).isRawJSON?.(value) ?? false;

/** @param {unknown} value */
export const write = (value, indent = 2) => JSON.stringify(value, null, indent) ?? "";

/** Returns a member of an object, and never one that JavaScript gives to every object. @param {any} object @param {string|number} name */
export const member = (object, name) => (object !== null && typeof object === "object" && Object.hasOwn(object, name) ? object[name] : undefined);

/** Returns an object with another member, or without it. "__proto__" is a name like any other. @param {any} object @param {string} name @param {unknown} value */
export function withMember(object, name, value) {
  const entries = Object.entries(object ?? {}).filter(([k]) => k !== name);
  if (value !== undefined) entries.push([name, value]);
  return Object.fromEntries(entries);
}

/** Sets JSON out over several lines, without changing a value of it. It takes time in proportion to the text. @param {string} text */
export function indented(text) {
  const out = [];
  let depth = 0;
  let start = 0; // of what is not yet in out
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 34 /* " */) {
      i = endOfString(text, i);
    } else if (c === 123 || c === 91 /* { [ */) {
      const next = text.slice(i + 1, i + 64).trimStart()[0];
      if (next === "}" || next === "]") continue;
      depth++;
      out.push(text.slice(start, i + 1), "\n", margin(depth));
      start = skipSpace(text, i + 1);
      i = start - 1;
    } else if (c === 125 || c === 93 /* } ] */) {
      const before = text.slice(start, i).trimEnd();
      if (before.endsWith("{") || before.endsWith("[")) continue; // it is empty
      depth = Math.max(0, depth - 1);
      out.push(before, "\n", margin(depth));
      start = i;
    } else if (c === 44 /* , */) {
      out.push(text.slice(start, i + 1), "\n", margin(depth));
      start = skipSpace(text, i + 1);
      i = start - 1;
    } else if (c === 58 /* : */) {
      out.push(text.slice(start, i + 1), " ");
      start = skipSpace(text, i + 1);
      i = start - 1;
    }
  }
  out.push(text.slice(start));
  return out.join("");
}

// What is nested deeper stands where its parent stands: its margin would be longer than itself.
/** @param {number} depth */
const margin = (depth) => "  ".repeat(Math.min(depth, 40));

/** @param {string} text @param {number} at */
function endOfString(text, at) {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let slashes = 0;
    while (text.charCodeAt(end - 1 - slashes) === 92) slashes++;
    if (slashes % 2 === 0) return end;
  }
  return text.length;
}

/** @param {string} text @param {number} at */
function skipSpace(text, at) {
  while (at < text.length && text.charCodeAt(at) <= 32) at++;
  return at;
}
