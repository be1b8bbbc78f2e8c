// Examples of what a schema asks for. A schema may ask for a gigabyte: an example has a few values, and need not fit.

const most = 200; // values in an example
const deepest = 12;
const longest = 2000; // characters of a value that the schema gives

/** Returns an example for a schema. @param {any} schema @param {(ref: string) => any} find returns what a reference is to */
export function sampleOf(schema, find) {
  let left = most;

  // given returns whether the value is one to take.
  const given = (/** @type {unknown} */ value) => {
    if (value === undefined) return false;
    const size = JSON.stringify(value).length;
    left -= Math.ceil(size / 100);
    return size <= longest;
  };

  /** @param {any} s @param {number} depth @returns {any} */
  const of = (s, depth) => {
    if (typeof s !== "object" || s === null || depth > deepest || --left < 0) return null;
    for (const value of [s.const, s.default, s.examples?.[0], s.example, s.enum?.[0]]) if (given(value)) return value;
    if (typeof s.$ref === "string") return of(find(s.$ref), depth + 1);
    const type = Array.isArray(s.type) ? (s.type.find((/** @type {unknown} */ t) => t !== "null") ?? "null") : s.type;
    if (type === "object" || s.properties) return objectOf(s, depth);
    if (type === "array") return s.items ? [of(s.items, depth + 1)] : [];
    if (type === "string") return "string";
    if (type === "integer" || type === "number") return typeof s.minimum === "number" ? s.minimum : 0;
    if (type === "boolean") return true;
    const part = [s.allOf, s.anyOf, s.oneOf].find((parts) => Array.isArray(parts) && parts.length > 0);
    return part ? (part === s.allOf ? objectOf(s, depth) : of(part[0], depth + 1)) : null;
  };

  /** @param {any} s @param {number} depth */
  const objectOf = (s, depth) => {
    const entries = [];
    for (const part of Array.isArray(s.allOf) ? s.allOf.slice(0, most) : []) {
      const value = of(part, depth + 1);
      if (value && typeof value === "object" && !Array.isArray(value)) entries.push(...Object.entries(value));
    }
    for (const [name, property] of Object.entries(s.properties ?? {})) {
      if (left <= 0) break;
      entries.push([name, of(property, depth + 1)]);
    }
    return Object.fromEntries(entries);
  };

  return of(schema, 0);
}
