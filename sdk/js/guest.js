// What the engine calls: a script's exports become tools, and calls become calls of them. load comes first, then describe, or warm
// and calls. Everything that the author wrote may throw, return a promise or never come back.
import * as host from "#host";
import { Mistake, ToolError, failure, quoted, sentence } from "./error.js";
import { fill } from "./defaults.js";
import { needed } from "./needs.js";
import { jsonSchema } from "./schema.js";
import { definitionOf, isName, moduleInfo } from "./tool.js";
import { begin, trace } from "./trace.js";

export { explain, where } from "./trace.js";

// What the script may change or take away is taken before it is loaded.
const { parse, stringify } = JSON;
const { hasOwn } = Object;

const abi = 1;
const sdk = "js/0.1.0";
const errorLevel = 3;

// tools are the script's, in the order of the manifest: { name, call, definition, comment }.
let tools = [];

// needs are what the script exports under that name.
let needs;

// load makes the tools of a script's exports.
export function load(exports) {
  begin();
  const comments = new Map(parse(host.entry("tools.json") ?? "[]").map((c) => [c.export, c]));
  const found = new Map(); // a tool that is exported twice is one
  for (const [name, value] of Object.entries(exports)) {
    const definition = typeof value === "function" ? value[definitionOf] : undefined;
    if (definition !== undefined && (!found.has(value) || found.get(value).name === "default")) {
      found.set(value, { name: definition.name ?? name, call: value, definition, comment: comments.get(name) });
    }
  }
  const made = [...found.values()].sort((a, b) => a.definition.order - b.definition.order);
  tools = made.length > 0 ? made : commented(exports, comments);
  if (tools.length === 0) {
    throw new Mistake('the script exports no tool: write export const NAME = tool({ description: "…", run: (args) => … }), or a comment /** … */ above an exported function');
  }
  needs = exports.needs?.[definitionOf] === undefined ? needed(exports.needs, "export const needs") : undefined;
  const names = new Set();
  for (const t of tools) {
    if (t.name === "default" || !isName(t.name)) {
      throw mistake(t, `${quoted(t.name)} is not a name for a tool: ${t.name === "default" ? 'a tool that is exported as default needs name: "…"' : "use 1 to 64 of the characters A-Z a-z 0-9 _ -"}`);
    }
    if (names.has(t.name)) {
      throw mistake(t, `two tools are called ${quoted(t.name)}: rename one`);
    }
    names.add(t.name);
  }
}

// commented makes tools of exported functions that have a comment.
function commented(exports, comments) {
  const out = [];
  for (const [name, comment] of comments) {
    const run = exports[name];
    if (typeof run === "function" && comment.error === undefined) {
      const { order } = comment;
      const call = order === undefined ? (args) => run(args) : (args) => run(...order.map((n) => (hasOwn(args, n) ? args[n] : undefined)));
      out.push({ name: comment.name ?? name, call, definition: {}, comment });
    } else if (typeof run === "function") {
      throw new Mistake(comment.error.message, { place: comment.error });
    }
  }
  return out;
}

function mistake(t, message) {
  return new Mistake(message, { made: t.definition.made, place: t.comment?.place });
}

// describe returns the manifest.
export function describe() {
  const { namespace, version } = moduleInfo();
  return stringify({ abi, namespace, version, sdk, needs, tools: tools.map(described) });
}

function described(t) {
  const { definition, comment } = t;
  const description = definition.description ?? comment?.description;
  if (description === undefined || description.trim() === "") {
    throw mistake(t, `tool ${quoted(t.name)} has no description: say what it does and when to use it`);
  }
  const { title, annotations, icons, examples } = definition;
  const out = { name: t.name, title, description, annotations, icons };
  try {
    out.parameters = parameters(t);
    out.result = definition.result === undefined ? comment?.result : jsonSchema(definition.result, "output");
    out.examples = examples ?? comment?.examples;
    out.needs = definition.needs;
    return parse(stringify(out));
  } catch (error) {
    throw error.place !== undefined ? error : mistake(t, `tool ${quoted(t.name)}: ${error.message}`);
  }
}

function parameters(t) {
  if (t.definition.parameters !== undefined) {
    return jsonSchema(t.definition.parameters, "input");
  }
  if (t.comment?.error !== undefined) {
    throw new Mistake(t.comment.error.message, { place: t.comment.error });
  }
  if (t.comment?.parameters !== undefined) {
    return t.comment.parameters;
  }
  if (t.call.run?.length > 0) {
    throw mistake(t, `tool ${quoted(t.name)}: its function takes arguments, but nothing says which: add parameters, a JSON Schema or a schema of zod, or a comment with @param`);
  }
  return { type: "object", properties: {}, additionalProperties: false };
}

// warm calls the tools with their examples, so that what their calls need is there. What goes wrong shows when they are tested.
export async function warm() {
  for (const { call, definition, comment } of tools) {
    for (const example of definition.examples ?? comment?.examples ?? []) {
      try {
        const args = parse(stringify(example.arguments));
        fill(args, definition.parameters ?? comment?.parameters);
        stringify(await call(args));
      } catch {
        // A test of the examples says so.
      }
    }
  }
}

// call runs a tool. It returns 0 or 1, as the host takes it, or a promise of that.
export function call(number) {
  try {
    const text = host.input();
    const result = tools[number].call(text === "" ? {} : parse(text));
    if (typeof result === "object" && result !== null && typeof result.then === "function") {
      return Promise.resolve(result).then(done).catch(broken);
    }
    return done(result);
  } catch (error) {
    return broken(error);
  }
}

function done(result) {
  if (typeof result === "number" && !Number.isFinite(result)) {
    throw new RangeError(`the result is ${result}, which JSON doesn't have`);
  }
  const text = result === undefined ? "null" : stringify(result);
  if (text === undefined) {
    throw new TypeError(`the result is a ${typeof result}, which JSON doesn't have`);
  }
  host.output(text);
  return 0;
}

// broken fails the call with what was thrown. A script that took away what this needs, or all memory, still fails.
export function broken(thrown) {
  try {
    if (!(thrown instanceof ToolError)) {
      host.log(errorLevel, trace(thrown));
    } else if (thrown.cause !== undefined) {
      host.log(errorLevel, trace(thrown.cause));
    }
    host.fail(failure(thrown));
  } catch {
    host.fail('{"message":"the tool failed, and what it threw can\'t be shown","status":500}');
  }
  return 1;
}

// stuck fails a call whose promise nothing can settle any more.
export function stuck(number) {
  host.fail(stringify({ message: `${tools[number].name}: its promise is never settled: nothing is left to run`, status: 500 }));
  return 1;
}

// unhandled fails the call for a promise that was rejected and that nobody awaits.
export function unhandled(reason) {
  host.log(errorLevel, "a promise was rejected, and nothing handles that: " + trace(reason));
  host.fail(stringify({ message: `a promise was rejected, and nothing handles that: ${sentence(reason)}`.toWellFormed().slice(0, 8 << 10), status: 500 }));
  return 1;
}
