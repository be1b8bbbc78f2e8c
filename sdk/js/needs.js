// What a tool needs of the world outside of it, as its author declares it and as the manifest has it.
import { Mistake, guess, quoted } from "./error.js";
import { jsonSchema } from "./schema.js";

const isTexts = (value) => Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "");

// kinds are what can be needed, with what each has to be.
const kinds = {
  http: [isTexts, 'a list of addresses such as ["https://api.example.com/v2/"]'],
  kv: [(value) => typeof value === "boolean", "true or false"],
  secrets: [isTexts, "a list of names"],
  settings: [(value) => (typeof value === "object" && value !== null) || typeof value?.["~standard"] === "object", "a JSON Schema of an object, or a schema of zod or another library"],
  tools: [isTexts, 'a list of tools such as ["units/convert"]'],
  files: [isTexts, "a list of names"],
};

// needed returns needs as a manifest has them, or undefined of none. where is how a message calls them.
export function needed(needs, where = "needs") {
  if (needs === undefined) {
    return undefined;
  }
  if (typeof needs !== "object" || needs === null || Array.isArray(needs)) {
    throw new Mistake(`${where} is an object such as { http: ["https://api.example.com"], kv: true }; this is ${quoted(needs)}`);
  }
  const out = {};
  for (const [name, value] of Object.entries(needs)) {
    if (!Object.hasOwn(kinds, name)) {
      throw new Mistake(`${where}: it has no member ${quoted(name)}${guess(name, Object.keys(kinds))}`);
    }
    const [fits, wanted] = kinds[name];
    if (!fits(value)) {
      throw new Mistake(`${where}: ${name} is ${wanted}; this is ${quoted(value)}`);
    }
    out[name] = name === "settings" ? jsonSchema(value, "input", `${where}: settings`) : value;
  }
  return out;
}

// neededBy does that with the needs of one tool: settings are those of all tools of a script.
export function neededBy(needs, where) {
  if (needs?.settings !== undefined) {
    throw new Mistake(`${where}: settings are those of the whole script: write export const needs = { settings: … }`);
  }
  return needed(needs, where);
}
