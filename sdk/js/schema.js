// Schemas of arguments and results: a JSON Schema as its author wrote it, or what a library's schema says as JSON Schema.
import { Mistake, quoted } from "./error.js";

// remedies are what authors do who use a library without Standard JSON Schema.
const remedies = {
  zod: "update it with npm install zod@latest: from 4.2 on it can",
  valibot: "wrap it: toStandardJsonSchema(schema) of @valibot/to-json-schema",
};

// jsonSchema returns a JSON Schema for parameters ("input") or a result ("output"). what is how a message calls it.
export function jsonSchema(schema, io, what = io === "input" ? "parameters" : "result") {
  const standard = schema["~standard"];
  if (typeof standard?.jsonSchema?.[io] === "function") {
    return normal(converted(what, standard.vendor, () => standard.jsonSchema[io]({ target: "draft-2020-12" })), io);
  }
  if (standard !== undefined && typeof schema.toJSONSchema === "function") {
    return normal(converted(what, standard.vendor, () => schema.toJSONSchema({ io, target: "draft-2020-12" })), io);
  }
  if (standard !== undefined || typeof schema.safeParse === "function") {
    const vendor = standard?.vendor ?? "zod";
    throw new Mistake(`${what}: this version of ${vendor} doesn't say its schemas as JSON Schema: ${remedies[vendor] ?? "pass a JSON Schema, or a schema that implements Standard JSON Schema (standardschema.dev)"}`);
  }
  return written(schema, what);
}

function converted(what, vendor, convert) {
  let made;
  try {
    made = convert();
  } catch (error) {
    throw new Mistake(`${what}: ${vendor} can't say this schema as JSON Schema: ${error.message}${remedy(error.message)}`);
  }
  return JSON.parse(JSON.stringify(made));
}

function remedy(message) {
  if (/\bdate\b/i.test(message)) {
    return ": take a text and convert it, such as z.iso.datetime() and new Date(text)";
  }
  if (/transform/i.test(message)) {
    return ": say what comes out of it with .pipe(…), or give a JSON Schema";
  }
  return ": take a type that JSON has";
}

// written returns the schema that an author wrote, which is served as it is.
function written(schema, what) {
  const member = Object.entries(schema).find(([, value]) => value?.["~standard"] !== undefined);
  if (member !== undefined) {
    throw new Mistake(`${what}: ${quoted(member[0])} is a schema within a plain object: wrap the object, as in z.object({ ${member[0]}: … })`);
  }
  let text;
  try {
    text = JSON.stringify(schema);
  } catch (error) {
    throw new Mistake(`${what}: this is not a JSON Schema: ${error.message}`);
  }
  const plain = JSON.parse(text);
  const known = ["type", "$ref", "allOf", "anyOf", "oneOf", "enum", "const", "properties"];
  if (what === "parameters" && !known.some((k) => Object.hasOwn(plain, k)) && Object.keys(plain).length > 0) {
    throw new Mistake(`parameters: ${quoted(plain)} is not the JSON Schema of an object: write { type: "object", properties: { … } }`);
  }
  return plain;
}

const schemas = ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties"];
const lists = ["prefixItems", "anyOf", "oneOf", "allOf"];
const maps = ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];

// formats are those that the server checks, so that a library's own pattern for them says nothing more.
const formats = new Set(["email", "uri", "uuid", "date-time", "date", "time", "duration", "ipv4", "ipv6", "hostname"]);

// normal returns what a library made in the form that the other SDKs give equal types, so that a tool's schema does not tell in which
// language it is written.
function normal(schema, io) {
  delete schema.$schema;
  const root = inlined(schema);
  const done = plain(root, io, false);
  for (const [name, def] of Object.entries(done.$defs ?? {})) {
    if (def.id === name) {
      delete def.id;
    }
  }
  delete done.id;
  return done;
}

// inlined returns a schema whose root is no reference: clients look for properties there.
function inlined(schema) {
  const name = /^#\/\$defs\/([^/~%]+)$/.exec(schema.$ref ?? "")?.[1];
  if (name === undefined || !Object.hasOwn(schema.$defs ?? {}, name)) {
    return schema;
  }
  const { $ref, $defs, ...rest } = schema;
  const root = { ...$defs[name], ...rest, $defs };
  const { [name]: self, ...others } = $defs;
  if (!JSON.stringify($defs).includes(JSON.stringify($ref))) {
    root.$defs = others;
  }
  if (Object.keys(root.$defs).length === 0) {
    delete root.$defs;
  }
  return root;
}

// plain rewrites one schema and those in it. Within allOf nobody knows all members, so an object stays open there.
function plain(schema, io, open) {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) {
    return schema;
  }
  let out = { ...schema };
  for (const key of schemas) {
    if (Object.hasOwn(out, key)) {
      out[key] = plain(out[key], io, false);
    }
  }
  for (const key of lists) {
    if (Array.isArray(out[key])) {
      out[key] = out[key].map((s) => plain(s, io, key === "allOf"));
    }
  }
  for (const key of maps) {
    if (typeof out[key] === "object" && out[key] !== null) {
      out[key] = Object.fromEntries(Object.entries(out[key]).map(([name, s]) => [name, plain(s, io, false)]));
    }
  }
  out = nullable(out);
  numbers(out);
  texts(out);
  members(out, io, open);
  const { $ref, ...rest } = out;
  if ($ref !== undefined && Object.keys(rest).some((k) => k !== "$defs")) {
    out = { ...rest, allOf: [...(rest.allOf ?? []), { $ref }] };
  }
  return out;
}

// nullable makes one type of "this type, or null".
function nullable(schema) {
  const { anyOf, ...rest } = schema;
  if (anyOf?.length !== 2) {
    return schema;
  }
  const i = anyOf.findIndex((s) => s.type === "null" && Object.keys(s).length === 1);
  const other = anyOf[1 - i];
  if (i < 0 || typeof other.type !== "string" || Object.hasOwn(other, "const") || Object.keys(rest).some((k) => Object.hasOwn(other, k))) {
    return schema;
  }
  const out = { ...rest, ...other, type: [other.type, "null"] };
  if (other.enum !== undefined) {
    out.enum = [...other.enum, null];
  }
  return out;
}

// numbers leaves out the bounds of a whole number that say only that JavaScript holds it exactly, and says of whole numbers that they are.
function numbers(schema) {
  const types = [schema.type].flat();
  if (types.includes("integer")) {
    if (schema.minimum === Number.MIN_SAFE_INTEGER) {
      delete schema.minimum;
    }
    if (schema.maximum === Number.MAX_SAFE_INTEGER) {
      delete schema.maximum;
    }
  }
  const values = schema.enum?.filter((v) => v !== null) ?? (Object.hasOwn(schema, "const") ? [schema.const] : []);
  if (types.includes("number") && values.length > 0 && values.every(Number.isInteger)) {
    schema.type = Array.isArray(schema.type) ? schema.type.map((t) => (t === "number" ? "integer" : t)) : "integer";
  }
}

// texts leaves out what says nothing, and patterns: those of a known format, and those with look-around, which the server can't match in linear time. The library
// checks them all the same.
function texts(schema) {
  if (schema.contentEncoding === "base64") {
    if (schema.format === "base64") {
      delete schema.format;
      delete schema.pattern;
    }
  } else if (formats.has(schema.format) || /\(\?<?[=!]|\\[1-9]|\\k</.test(schema.pattern ?? "")) {
    delete schema.pattern;
  }
  if (schema.type === "array" && typeof schema.items === "object" && Object.keys(schema.items).length === 0) {
    delete schema.items;
  }
  if (schema.propertyNames?.type === "string" && Object.keys(schema.propertyNames).length === 1) {
    delete schema.propertyNames;
  }
}

// members has arguments refuse members that nobody reads, so that a misspelt one is an error, and leaves results open.
function members(schema, io, open) {
  const extra = schema.additionalProperties;
  if (typeof extra === "object" && Object.keys(extra).length === 0) {
    delete schema.additionalProperties;
  } else if (io === "output" && extra === false) {
    delete schema.additionalProperties;
  } else if (io === "input" && extra === undefined && schema.properties !== undefined && !open) {
    schema.additionalProperties = false;
  }
}
