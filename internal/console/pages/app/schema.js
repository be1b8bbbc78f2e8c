// What the console understands of JSON Schema: enough to show a schema and to make a form of it. What it doesn't understand it shows as JSON,
// and the server has the last word on every call. A schema is hostile: it may refer to itself, or be huge.

import { isRaw, member, write } from "./json.js";
import { bytes, plain } from "./text.js";

/** @typedef {Record<string, any>} Schema */

const mostHops = 32; // from a $ref to the next one
const mostTypes = 7; // that JSON Schema has
const mostNested = 32; // allOf in allOf
const mostConditions = 100; // of a schema
const mostMerged = 200_000; // members that are put together for a whole schema

/** @typedef {{said: WeakMap<object, Schema>, variants: WeakMap<object, Schema[]>, bare: WeakMap<object, Schema>, merged: number}} Memory what is known of a whole schema */

// A part of a schema is resolved once: a page asks at each keystroke, and parts of parts multiply.
/** @type {WeakMap<object, Memory>} */
const memories = new WeakMap();

/** @param {any} root @returns {Memory} */
function memoryOf(root) {
  const key = objectOf(root);
  const memory = memories.get(key) ?? { said: new WeakMap(), variants: new WeakMap(), bare: new WeakMap(), merged: 0 };
  memories.set(key, memory);
  return memory;
}

/** Returns what a schema says with its $ref and allOf put in: the same object each time. @param {any} root @param {any} schema @returns {Schema} */
export function resolve(root, schema, depth = 0) {
  const memory = memoryOf(root);
  const asked = objectOf(schema);
  const known = memory.said.get(asked);
  if (known) return known;
  let s = asked;
  for (let hops = 0; typeof s.$ref === "string"; hops++) {
    const target = hops < mostHops ? lookup(root, s.$ref) : undefined;
    if (target === undefined) return remember(memory, asked, { description: s.description, unknown: s.$ref });
    const { $ref: _, ...rest } = s;
    const more = objectOf(target);
    s = Object.keys(rest).length === 0 ? more : { ...more, ...rest };
    if (s !== more && (memory.merged += Object.keys(s).length) > mostMerged) return remember(memory, asked, tooMuch);
  }
  const shared = memory.said.get(s); // what others refer to, too
  if (shared) return remember(memory, asked, shared);
  if (!Array.isArray(s.allOf) || depth > mostNested) return remember(memory, asked, s);
  const { allOf, ...all } = s;
  remember(memory, asked, all); // for a part that refers to the whole
  remember(memory, s, all);
  const required = new Set(listOf(all.required));
  const properties = { ...objectOf(all.properties) };
  const conditions = [...conditionsOf(all)];
  for (const part of allOf.slice(0, 100)) {
    const one = resolve(root, part, depth + 1);
    const its = Object.entries(objectOf(one.properties));
    memory.merged += its.length + listOf(one.required).length + Object.keys(one).length;
    if (memory.merged > mostMerged) {
      remember(memory, s, tooMuch);
      return remember(memory, asked, tooMuch);
    }
    for (const [k, v] of its) add(properties, k, v);
    for (const name of listOf(one.required)) required.add(name);
    conditions.push(...conditionsOf(one));
    memory.merged += conditions.length;
    if (one.properties) all.properties = properties;
    for (const [k, v] of Object.entries(one)) add(all, k, v);
  }
  all.required = [...required];
  if (conditions.length > 0) all.conditions = conditions.slice(0, mostConditions);
  return all;
}

/** Returns what a resolved schema demands under conditions: its own, and those of the parts that were put into it. @param {Schema} s @returns {Schema[]} */
const conditionsOf = (s) => (s.conditions ? listOf(s.conditions).map(objectOf) : s.if === undefined ? [] : [s]);

/** @type {Schema} */
const tooMuch = { unknown: "the schema" };

/** @param {Memory} memory @param {object} asked @param {Schema} said */
function remember(memory, asked, said) {
  memory.said.set(asked, said);
  return said;
}

/** Adds a member that is missing. "__proto__" is a name like any other. @param {Schema} object @param {string} name @param {any} value */
function add(object, name, value) {
  if (!Object.hasOwn(object, name)) Object.defineProperty(object, name, { value, enumerable: true, writable: true, configurable: true });
}

/** @param {any} x @returns {Schema} */
const objectOf = (x) => (x !== null && typeof x === "object" && !Array.isArray(x) ? x : {});
/** @param {any} x @returns {any[]} */
const listOf = (x) => (Array.isArray(x) ? x : []);

/** Follows a JSON pointer in a fragment, such as #/$defs/node. @param {any} root @param {string} ref */
function lookup(root, ref) {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return undefined;
  let at = root;
  for (const part of ref.slice(2).split("/")) {
    try {
      at = member(at, decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"));
    } catch {
      return undefined; // it is not encoded well
    }
    if (at === undefined) return undefined;
  }
  return at;
}

/** Returns the types that a value may have; none: not said. @param {Schema} s @returns {string[]} */
export function typesOf(s) {
  if (typeof s.type === "string") return [s.type];
  if (Array.isArray(s.type)) return s.type.filter((t) => typeof t === "string");
  if (Object.hasOwn(s, "const")) return [typeOf(s.const)];
  if (Array.isArray(s.enum)) return [...new Set(s.enum.map(typeOf))];
  if (s.properties || s.additionalProperties || s.patternProperties) return ["object"];
  if (s.items || s.prefixItems) return ["array"];
  return [];
}

/** @param {any} value */
export function typeOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (isRaw(value)) return "number";
  return typeof value;
}

/** Counts the schemas one of which holds. Those that say no more than which members are required have the same form. @param {Schema} s */
export function kindsOf(s) {
  const key = offered(s);
  if (key) return s[key].length;
  if (listOf(s.anyOf).length > 0 || listOf(s.oneOf).length > 0) return 0;
  const types = typesOf(s);
  return types.length < 2 || types.length > mostTypes || s.enum ? 0 : types.length;
}

/** @param {any} variant */
const onlyRequires = (variant) => Object.keys(objectOf(variant)).every((key) => ["required", "title", "description", "not"].includes(key));

/** Returns which list of schemas is offered first, if any is: a form of what was chosen offers the other one. @param {Schema} s @returns {"anyOf"|"oneOf"|undefined} */
function offered(s) {
  for (const key of /** @type {const} */ (["anyOf", "oneOf"])) if (listOf(s[key]).length > 0 && !(s.properties && s[key].every(onlyRequires))) return key;
}

/** @param {Schema} s @returns {any[]} */
function variantsOf(s) {
  const key = offered(s);
  if (key) return s[key];
  return kindsOf(s) > 0 ? typesOf(s).map((type) => ({ ...s, type })) : [];
}

/** Returns the variants of a resolved schema, each with what is said beside it: the same list each time. @param {any} root @param {Schema} s @returns {Schema[]} */
export function choicesOf(root, s) {
  const { variants } = memoryOf(root);
  const all = variants.get(s) ?? variantsOf(s).map((v) => variantOf(root, s, v));
  variants.set(s, all);
  return all;
}

/** Returns a variant with what is said beside it. @param {any} root @param {Schema} s @param {any} variant */
function variantOf(root, s, variant) {
  const { type, title: _i, description: _d, default: _f, ...rest } = s;
  const key = offered(s);
  if (key) delete rest[key];
  const own = resolve(root, variant);
  const all = { ...rest, ...own };
  if (key && offered(rest)) {
    all.title = variantName(root, own); // or it would be named by what is still to be chosen
    // A schema has one list of each name. For a form both are lists to choose from.
    if (own.oneOf && own.anyOf) return tooMuch;
    if (own.oneOf) all.anyOf = rest.oneOf;
  }
  if (typeof type === "string" && typesOf(own).length === 0) all.type = type;
  const [properties, required] = [objectOf(rest.properties), listOf(rest.required)];
  const memory = memoryOf(root);
  if ((memory.merged += Object.keys(properties).length + required.length) > mostMerged) return tooMuch;
  if (rest.properties && own.properties) all.properties = { ...properties, ...objectOf(own.properties) };
  if (rest.required && own.required) all.required = [...new Set([...required, ...listOf(own.required)])];
  return all;
}

/** Returns what a value may be beside null, where that is one thing: the same object each time. @param {any} root @param {Schema} s @returns {Schema|undefined} */
export function besideNull(root, s) {
  if (kindsOf(s) !== 2) return undefined;
  const { bare } = memoryOf(root);
  const known = bare.get(s);
  if (known) return known;
  const all = choicesOf(root, s);
  const at = all.findIndex((v) => typesOf(v).join() === "null");
  if (at < 0) return undefined;
  const other = { ...all[1 - at] };
  for (const key of ["title", "description", "default"]) if (Object.hasOwn(s, key)) other[key] = s[key];
  bare.set(s, other);
  return other;
}

/** Names a variant so that it can be told from the others. @param {any} root @param {Schema} s @returns {string} */
export function variantName(root, s) {
  if (s.title || typesOf(s)[0] !== "object") return plain(s.title ?? typeName(root, s), 100);
  const all = membersOf(s);
  const fixed = all.find((m) => Object.hasOwn(resolve(root, m.schema), "const"));
  if (fixed) return plain(fixed.name, 60) + ": " + plain(write(resolve(root, fixed.schema).const, 0), 60);
  const names = (all.some((m) => m.required) ? all.filter((m) => m.required) : all).map((m) => plain(m.name, 40));
  return names.length === 0 ? typeName(root, s) : "object with " + names.slice(0, 5).join(", ") + (names.length > 5 ? ", …" : "");
}

/** Returns what a required value begins as: an empty array, an object none of whose members is required, or undefined. @param {any} root @param {any} schema */
export function startOf(root, schema) {
  const s = resolve(root, schema);
  if (s.unknown || kindsOf(s) > 0 || s.enum || Object.hasOwn(s, "const")) return undefined;
  const type = typesOf(s)[0];
  return type === "array" ? [] : type === "object" && listOf(s.required).length === 0 ? {} : undefined;
}

/** Returns an object with those of its required members that begin as something. @param {any} root @param {Schema} s resolved @param {any} object */
export function begun(root, s, object) {
  const more = [];
  for (const m of membersOf(s)) {
    if (!m.required) break; // they stand first
    const start = Object.hasOwn(object, m.name) ? undefined : startOf(root, m.schema);
    if (start !== undefined) more.push([m.name, start]);
  }
  return more.length > 0 ? Object.fromEntries([...Object.entries(object), ...more]) : object;
}

/** Names the type of a value. @param {any} root @param {Schema} s @returns {string} */
export function typeName(root, s, depth = 0) {
  if (s.unknown) return "see " + plain(s.unknown, 60);
  if (Object.hasOwn(s, "const")) return plain(write(s.const, 0), 60);
  const alternatives = Array.isArray(s.anyOf) ? s.anyOf : Array.isArray(s.oneOf) ? s.oneOf : [];
  if (alternatives.length > 0 && depth < 3) {
    const names = [...new Set(alternatives.slice(0, 6).map((v) => typeName(root, resolve(root, v), depth + 1)))].join(" or ");
    return alternatives.length > 6 ? names + " or …" : names;
  }
  const types = typesOf(s);
  if (types.length === 0) return "any";
  return types
    .map((t) => {
      if (t !== "array" || !s.items || depth > 2) return plain(t, 20);
      return "array of " + typeName(root, resolve(root, s.items), depth + 1);
    })
    .join(" or ");
}

/** Says what bounds a value, in words. @param {Schema} s @returns {string[]} */
export function boundsOf(s) {
  const all = [];
  const n = (/** @type {any} */ x) => plain(x, 30);
  const many = (/** @type {any} */ x, /** @type {string} */ one) => n(x) + " " + (x === 1 ? one : one + "s");
  if (Array.isArray(s.enum)) all.push("one of " + s.enum.slice(0, 20).map((v) => plain(write(v, 0), 40)).join(", ") + (s.enum.length > 20 ? `, and ${s.enum.length - 20} others` : ""));
  if (s.minimum !== undefined) all.push("at least " + n(s.minimum));
  if (s.exclusiveMinimum !== undefined) all.push("more than " + n(s.exclusiveMinimum));
  if (s.maximum !== undefined) all.push("at most " + n(s.maximum));
  if (s.exclusiveMaximum !== undefined) all.push("less than " + n(s.exclusiveMaximum));
  if (s.multipleOf !== undefined) all.push("a multiple of " + n(s.multipleOf));
  if (s.minLength) all.push("at least " + many(s.minLength, "character"));
  if (s.maxLength !== undefined) all.push("at most " + many(s.maxLength, "character"));
  if (s.minItems) all.push("at least " + many(s.minItems, "item"));
  if (s.maxItems !== undefined) all.push("at most " + many(s.maxItems, "item"));
  if (s.uniqueItems === true) all.push("no item twice");
  if (s.minProperties) all.push("at least " + many(s.minProperties, "member"));
  if (s.maxProperties !== undefined) all.push("at most " + many(s.maxProperties, "member"));
  if (s.pattern !== undefined) all.push("matches " + plain(s.pattern, 80));
  if (s.format !== undefined) all.push("format " + plain(s.format, 30));
  if (s.contentMediaType !== undefined) all.push(plain(s.contentMediaType, 60) + (s.contentEncoding ? " in " + plain(s.contentEncoding, 20) : ""));
  return all;
}

/** Makes a sentence of what bounds a value. @param {string[]} all */
export function inSentence(all) {
  const text = all.join(all.some((one) => /[,;]/.test(one)) ? "; " : ", ");
  return text && text[0].toUpperCase() + text.slice(1) + ".";
}

/** @typedef {{name: string, schema: any, required: boolean}} Member */

/** @type {WeakMap<object, Member[]>} */
const members = new WeakMap();

/** Returns an object's members, the required ones first: the same list each time. @param {Schema} s @returns {Member[]} */
export function membersOf(s) {
  const known = members.get(s);
  if (known) return known;
  const required = new Set(listOf(s.required));
  const all = Object.entries(objectOf(s.properties)).map(([name, schema]) => ({ name, schema, required: required.has(name) }));
  const sorted = [...all.filter((m) => m.required), ...all.filter((m) => !m.required)];
  members.set(s, sorted);
  return sorted;
}

/** Returns the names that are required and have no schema of their own. @param {Schema} s @returns {string[]} */
export const undeclared = (s) => listOf(s.required).filter((name) => typeof name === "string" && !Object.hasOwn(objectOf(s.properties), name));

/** @typedef {{name: string, depth: number, type: string, required: boolean, bounds: string[], description: string, fallback: string|undefined}} Row */

/** Lists a schema as rows of a table, at most so many. @param {any} root @param {number} most @returns {{rows: Row[], more: boolean}} */
export function rowsOf(root, most) {
  /** @type {Row[]} */
  const rows = [];
  let more = false;
  /** @param {string} name @param {any} schema @param {boolean} required @param {number} depth @param {any[]} above */
  const add = (name, schema, required, depth, above) => {
    if (rows.length >= most) {
      more = true;
      return;
    }
    const s = resolve(root, schema);
    const again = typeof objectOf(schema).$ref === "string" && above.includes(schema.$ref);
    rows.push({
      name,
      depth,
      required,
      type: typeName(root, s),
      bounds: again ? ["as " + plain(schema.$ref, 60) + " above"] : boundsOf(s),
      description: plain(s.description ?? s.title ?? "", 600),
      fallback: Object.hasOwn(s, "default") ? plain(write(s.default, 0), 120) : undefined,
    });
    if (!again) below(s, depth + 1, typeof objectOf(schema).$ref === "string" ? [...above, schema.$ref] : above);
  };
  // A row for what is no value of its own: a condition, or a name that is required and nothing else.
  const say = (/** @type {string} */ name, /** @type {number} */ depth, required = false) => {
    if (rows.length < most) rows.push({ name, depth, required, type: "", bounds: [], description: "", fallback: undefined });
    else more = true;
  };
  /** @param {Schema} s @param {number} depth @param {any[]} above */
  const below = (s, depth, above) => {
    if (depth > 12 || more) {
      more = true;
      return;
    }
    for (const m of membersOf(s)) add(m.name, m.schema, m.required, depth, above);
    for (const name of undeclared(s)) say(plain(name, 120), depth, true);
    for (const [pattern, schema] of Object.entries(objectOf(s.patternProperties))) add(`(names that match ${pattern})`, schema, false, depth, above);
    const rest = s.additionalProperties;
    if (rest && typeof rest === "object" && Object.keys(rest).length > 0) add("(any other name)", rest, false, depth, above);
    listOf(s.prefixItems).forEach((item, i) => add(`[${i}]`, item, false, depth, above));
    const item = objectOf(s.items);
    if (hasBelow(root, item)) add("[…]", item, false, depth, above);
    for (const key of ["anyOf", "oneOf"]) {
      listOf(s[key]).forEach((variant, i) => {
        if (hasBelow(root, variant)) add(`(choice ${i + 1})`, variant, false, depth, above);
        else if (listOf(objectOf(variant).required).length > 0) {
          say(`(choice ${i + 1})`, depth);
          below(variant, depth + 1, above);
        }
      });
    }
    for (const key of ["dependentRequired", "dependentSchemas"]) {
      for (const [name, demand] of Object.entries(objectOf(s[key]))) {
        say(`(if ${plain(name, 60)} is given)`, depth);
        below(Array.isArray(demand) ? { required: demand } : resolve(root, demand), depth + 1, above);
      }
    }
    for (const one of conditionsOf(s)) {
      if (one.then !== undefined) say(plain(`(if ${conditionIn(root, one.if)})`, 200), depth);
      if (one.then !== undefined) below(resolve(root, one.then), depth + 1, above);
      if (one.else !== undefined) say(plain(one.then === undefined ? `(unless ${conditionIn(root, one.if)})` : "(otherwise)", 200), depth);
      if (one.else !== undefined) below(resolve(root, one.else), depth + 1, above);
    }
  };
  const top = resolve(root, root);
  if (typesOf(top).includes("object") && membersOf(top).length > 0) below(top, 0, ["#"]);
  else add("(the whole)", root, true, 0, []);
  return { rows, more };
}

/** @param {any} root @param {any} schema */
function hasBelow(root, schema) {
  const s = resolve(root, schema);
  return Boolean(s.properties || s.patternProperties || s.items || s.prefixItems || s.anyOf || s.oneOf || (s.additionalProperties && typeof s.additionalProperties === "object"));
}

/** Says in words what a condition asks for. @param {any} root @param {any} condition */
function conditionIn(root, condition) {
  const s = resolve(root, condition);
  const asked = Object.entries(objectOf(s.properties)).slice(0, 5).map(([name, schema]) => {
    const its = resolve(root, schema);
    const is = Object.hasOwn(its, "const") ? [its.const] : listOf(its.enum).slice(0, 5);
    return plain(name, 60) + (is.length > 0 ? " is " + is.map((v) => plain(write(v, 0), 40)).join(" or ") : " fits");
  });
  for (const name of undeclared(s).slice(0, 5)) asked.push(plain(name, 60) + " is given");
  return asked.length > 0 ? asked.join(" and ") : plain(write(condition, 0), 120);
}

/** Says how large a file is that a text in base64 has. @param {string} text */
export const sizeOfBase64 = (text) => bytes(Math.floor((text.length * 3) / 4));
