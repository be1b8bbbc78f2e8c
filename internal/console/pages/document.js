// What Swagger UI is given of the document. Tools write most of it: it may hide characters, or grow without end where references are followed.
import { visible } from "./app/text.js";
import { sampleOf } from "./sample.js";

const most = 3000; // values that references of one operation are followed to

/** Returns a document with examples wherever one is shown, and with hidden characters spelt out. It changes the one that it is given. @param {any} spec */
export function prepare(spec) {
  const find = (/** @type {string} */ ref) => at(spec, ref);
  /** @type {any[]} */
  const media = [...Object.values(spec.paths).flatMap((path) => [path.post?.requestBody, ...Object.values(path.post?.responses ?? {})]), ...Object.values(spec.components?.responses ?? {})];
  for (const { content } of media.filter(Boolean)) {
    const type = content?.["application/json"];
    if (type?.examples) for (const example of Object.values(type.examples)) example.value = written(example.value);
    else if (type) type.example = written(sampleOf(type.schema, find));
  }
  for (const { post } of Object.values(spec.paths)) {
    if (post && !post.tags) post.tags = ["without a namespace"]; // or Swagger UI calls them default
  }
  return spelt(spec);
}

/** Writes a value so that all of it is seen. Swagger UI shows a string as it is. @param {unknown} value */
function written(value) {
  return JSON.stringify(value, null, 2).replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));
}

/** Spells out hidden characters in names and texts. @param {any} value @returns {any} */
function spelt(value) {
  if (typeof value === "string") return visible(value);
  if (Array.isArray(value)) return value.map(spelt);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, of]) => [visible(name), spelt(of)]));
}

/**
 * Returns what a reference such as "#/components/schemas/math-add.Sum" is to, or undefined. Names are spelt out in a document that is prepared.
 * @param {any} spec @param {string} ref
 */
function at(spec, ref) {
  if (!ref.startsWith("#/")) return undefined;
  return ref.slice(2).split("/").reduce((value, part) => {
    let name = unescaped(part);
    if (!Object.hasOwn(value ?? {}, name)) name = visible(name);
    return value && typeof value === "object" && Object.hasOwn(value, name) ? value[name] : undefined;
  }, spec);
}

/** @param {string} part */
function unescaped(part) {
  try {
    part = decodeURIComponent(part);
  } catch {
    // It is meant as it is.
  }
  return part.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** Returns the part of a document at a path, with what references are to in their place, as far as that has an end. @param {any} spec @param {string[]} path */
export function resolve(spec, path) {
  let left = most;
  /** @param {any} value @param {string[]} above @returns {any} */
  const within = (value, above) => {
    left--;
    if (Array.isArray(value)) return value.map((v) => within(v, above));
    if (typeof value !== "object" || value === null) return value;
    if (typeof value.$ref === "string" && left > 0 && !above.includes(value.$ref)) {
      const { $ref, ...beside } = value;
      const target = at(spec, $ref);
      if (target && typeof target === "object") return within({ ...target, ...beside }, [...above, $ref]);
    }
    return Object.fromEntries(Object.entries(value).map(([name, of]) => [name, within(of, above)]));
  };
  return within(path.reduce((value, name) => (value && Object.hasOwn(value, name) ? value[name] : undefined), spec), []);
}
