// A tool is a function with what clients see of it. This file makes them; schema.js says what their arguments are.
import { Mistake, ToolError, guess, quoted } from "./error.js";
import { neededBy } from "./needs.js";

// definitionOf is the key of a tool's definition. It is the same in every copy of this package.
export const definitionOf = Symbol.for("toolsrv.tool");

// settings are the members of a definition, with what each has to be.
const settings = {
  name: [isName, 'a name of 1 to 64 of the characters A-Z a-z 0-9 _ -; without it, the name of the export counts'],
  title: [isText, "a text of one line: the tool's name for people"],
  description: [isText, "a text that says what the tool does and when to use it"],
  parameters: [isSchema, 'a JSON Schema such as { type: "object", properties: { … } }, or a schema of zod or another library'],
  result: [isSchema, "a JSON Schema, or a schema of zod or another library"],
  examples: [isExamples, 'a list such as [{ arguments: { name: "Ada" }, result: "Hello, Ada!" }]'],
  annotations: [isObject, "an object such as { readOnly: true }"],
  icons: [Array.isArray, 'a list such as [{ src: "https://…" }]'],
  needs: [isObject, 'an object such as { http: ["https://api.example.com"] }'],
  run: [isFunction, "a function of the arguments: ({ name }) => …"],
};

const annotations = ["readOnly", "destructive", "idempotent", "openWorld"];
const about = { namespace: "a path such as \"texts\" or \"texts/short\"", version: "a text such as \"1.2.0\"" };

// made are the tools in the order in which they were made: that of the manifest.
let made = 0;

// described is what module was told.
let described = {};

export function tool(definition) {
  if (isFunction(definition)) {
    definition = { run: definition }; // its comment says the rest
  }
  if (!isObject(definition)) {
    throw new Mistake(`tool(definition): the definition is an object with description and run; this is ${quoted(definition)}`);
  }
  const own = { ...definition };
  const called = own.name === undefined ? "tool" : `tool ${quoted(own.name)}`;
  for (const [name, value] of Object.entries(own)) {
    if (!Object.hasOwn(settings, name)) {
      throw new Mistake(`${called}: it has no member ${quoted(name)}${guess(name, Object.keys(settings))}`);
    }
    const [fits, wanted] = settings[name];
    if (value !== undefined && !fits(value)) {
      throw new Mistake(`${called}: ${name} is ${wanted}; this is ${quoted(value)}`);
    }
  }
  if (own.run === undefined) {
    throw new Mistake(`${called}: it has no function: add run: ({ … }) => …`);
  }
  for (const name of Object.keys(own.annotations ?? {})) {
    if (!annotations.includes(name) || typeof own.annotations[name] !== "boolean") {
      throw new Mistake(`${called}: annotations are true or false for ${annotations.join(", ")}; this is ${quoted({ [name]: own.annotations[name] })}`);
    }
  }
  neededBy(own.needs, `${called}: needs`);
  const check = validator(own.parameters);
  const run = own.run;
  const call = check ? (args) => checked(check, run, args) : (args) => run(args);
  const name = own.name ?? run.name ?? "";
  Object.defineProperties(call, {
    name: { value: name },
    run: { value: run },
    [definitionOf]: { value: Object.freeze({ ...own, order: made++, made: new Mistake(called) }) },
  });
  return call;
}

export function module(info) {
  if (!isObject(info)) {
    throw new Mistake(`module(info): the info is an object such as { namespace: "texts", version: "1.2.0" }; this is ${quoted(info)}`);
  }
  for (const [name, value] of Object.entries(info)) {
    if (!Object.hasOwn(about, name)) {
      throw new Mistake(`module(info): there is no member ${quoted(name)}${guess(name, Object.keys(about))}`);
    }
    if (value !== undefined && (!isText(value) || (name === "namespace" && !value.split("/").every(isName)))) {
      throw new Mistake(`module(info): ${name} is ${about[name]}; this is ${quoted(value)}`);
    }
  }
  described = { ...described, ...info };
}

// moduleInfo returns what module was told.
export function moduleInfo() {
  return described;
}

// checked has a library check the arguments, and runs the tool with what it makes of them.
function checked(check, run, args) {
  const outcome = check(args);
  if (typeof outcome?.then === "function") {
    return outcome.then((outcome) => run(accepted(outcome)));
  }
  return run(accepted(outcome));
}

function accepted(outcome) {
  if (outcome.issues === undefined) {
    return outcome.value;
  }
  const issues = outcome.issues.map(({ message, path }) => {
    const place = (path ?? []).map((step) => String(step?.key ?? step)).join(".");
    return place === "" ? message : `${place}: ${message}`;
  });
  throw new ToolError(issues.join("; ") || "the arguments are not valid", { code: "invalid_arguments" });
}

// validator returns the function with which a schema's library checks, or undefined where there is none.
function validator(schema) {
  const standard = schema?.["~standard"];
  return isFunction(standard?.validate) ? (value) => standard.validate(value) : undefined;
}

export function isName(value) {
  return typeof value === "string" && /^[A-Za-z0-9_-]{1,64}$/.test(value);
}

function isText(value) {
  return typeof value === "string" && value.trim() !== "";
}

function isFunction(value) {
  return typeof value === "function";
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// Some libraries' schemas are functions.
function isSchema(value) {
  return isObject(value) || (isFunction(value) && value["~standard"] !== undefined);
}

function isExamples(value) {
  return Array.isArray(value) && value.every((e) => isObject(e) && isObject(e.arguments) && Object.keys(e).every((k) => k === "arguments" || k === "result"));
}
