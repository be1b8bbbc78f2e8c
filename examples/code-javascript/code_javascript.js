// Runs JavaScript that a model wrote: each call in an interpreter of its own, with nothing granted but, for one of the tools, other tools.
import { module, tool } from "toolsrv";
import { call } from "toolsrv/tools";

module({ namespace: "code", version: "1.0.0" });

const maxPrinted = 64 << 10;
const maxDepth = 100;
const AsyncFunction = (async () => {}).constructor;
const evaluate = eval; // by another name it runs in the global scope

const parameters = {
  type: "object",
  properties: {
    code: { type: "string", maxLength: 200_000, description: "The program: a script whose last statement is the result. It may have await and return at the top." },
    input: { default: null, description: "Any data for the code, which finds it in the variable `input`." },
  },
  required: ["code"],
  additionalProperties: false,
};

const result = {
  type: "object",
  properties: {
    result: { description: "The value. What JSON can't express is a text." },
    stdout: { type: "string", description: "What was printed." },
    error: {
      anyOf: [
        {
          type: "object",
          properties: { type: { type: "string" }, message: { type: "string" }, line: { type: "integer", description: "Of the code, where it is known." } },
          required: ["type", "message"],
          additionalProperties: false,
        },
        { type: "null" },
      ],
      description: "What ended the code.",
    },
  },
  required: ["result", "stdout", "error"],
  additionalProperties: false,
};

export const javascript = tool({
  title: "Run JavaScript",
  description:
    "Runs JavaScript code and returns the value of its last statement, what it printed with console, and its error if it threw one. " +
    "The code begins in a new interpreter, has the language and no file or network. Nothing is left of it afterwards.",
  parameters,
  result,
  annotations: { readOnly: true, openWorld: false },
  examples: [
    {
      arguments: { code: "console.log(input.length);\ninput.reduce((a, b) => a + b) / input.length", input: [1, 2, 6] },
      result: { result: 3, stdout: "3\n", error: null },
    },
    { arguments: { code: "const later = await Promise.resolve(20);\nreturn later + 1" }, result: { result: 21, stdout: "", error: null } },
    { arguments: { code: "null.x" } },
  ],
  run: ({ code, input }) => outcome(code, { input }),
});

export const javascriptTools = tool({
  name: "javascript-tools",
  title: "Run JavaScript with tools",
  description:
    "Runs JavaScript code as code/javascript does, which may also call other tools, as often as it likes, and compute with their results: " +
    'await tools.call("units/convert", { value: 5, from: "km", to: "mi" }) is the result of that tool, or throws an error. ' +
    "The tools are units/convert, time/add, time/convert, time/difference and math/add.",
  parameters,
  result,
  annotations: { readOnly: true, openWorld: false },
  needs: { tools: ["units/convert", "time/add", "time/convert", "time/difference", "math/add"] },
  examples: [
    { arguments: { code: "(await tools.call('units/convert', { value: 5, from: 'km', to: 'mi' })).value.toFixed(2)" }, result: { result: "3.11", stdout: "", error: null } },
  ],
  run: ({ code, input }) => outcome(code, { input, tools: { call } }),
});

// outcome runs code with global variables of its own.
async function outcome(code, variables) {
  let stdout = "";
  const print = (...values) => {
    const room = maxPrinted - stdout.length;
    if (room > 0) {
      const line = values.map((value) => (typeof value === "string" ? value : text(value))).join(" ") + "\n";
      stdout += line.length <= room ? line : line.slice(0, room) + "\n...";
    }
  };
  const own = globalThis.console;
  globalThis.console = { log: print, info: print, debug: print, warn: print, error: print };
  Object.assign(globalThis, variables);
  try {
    return { result: plain(await execute(code)), stdout: stdout.toWellFormed(), error: null };
  } catch (error) {
    return { result: null, stdout: stdout.toWellFormed(), error: failure(error) };
  } finally {
    globalThis.console = own; // for tests, which share an interpreter
    Object.keys(variables).forEach((name) => delete globalThis[name]);
  }
}

// execute runs code as a script. Its value is the value of its last statement. What is no script, since it has await or return at
// the top, runs as an async function.
function execute(code) {
  globalThis.begun = false;
  try {
    return evaluate(`void (begun = true, delete globalThis.begun); ${code}`);
  } catch (error) {
    if (globalThis.begun !== false || !(error instanceof SyntaxError)) {
      throw error;
    }
    delete globalThis.begun;
    for (const body of [...returning(code), code]) {
      let run;
      try {
        run = new AsyncFunction(body);
      } catch {
        continue;
      }
      return run().catch((error) => {
        throw new Late(error);
      });
    }
    throw error; // the script's error has the right line
  }
}

// returning yields code with a return before its last statement. Which that is, nothing tells but the parser: an attempt that
// begins elsewhere is no program.
function* returning(code) {
  code = code.trimEnd().replace(/;$/, "");
  for (let end = code.length, tries = 0; end >= 0 && tries < 50; tries++) {
    end = Math.max(code.lastIndexOf(";", end - 1), code.lastIndexOf("\n", end - 1));
    const last = code.slice(end + 1);
    if (end < 0 || code[end] === ";" || !/^\s*[([`/+\-*.,?]/.test(last)) {
      yield `${code.slice(0, end + 1)}return (${last}\n)`;
    }
  }
}

// Late is an error of code that ran as a function, which has two lines before those of the code.
class Late {
  constructor(error) {
    this.error = error;
  }
}

function failure(error, before = 0) {
  if (error instanceof Late) {
    return failure(error.error, 2);
  }
  try {
    if (!(error instanceof Error)) {
      return { type: "thrown", message: text(error).slice(0, 10_000) };
    }
    const at = /(?:<anonymous>|<input>|<evalScript>|<eval>)\)?:(\d+)/.exec(error.stack ?? "");
    const line = at ? { line: Number(at[1]) - before } : {};
    return { type: String(error.name), message: String(error.message).slice(0, 10_000).toWellFormed(), ...line };
  } catch {
    return { type: "Error", message: "its text can't be had" };
  }
}

// plain returns a value as JSON can express it.
function plain(value, depth = 0) {
  switch (typeof value) {
    case "string":
      return value.toWellFormed();
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "undefined":
      return null;
    case "object":
      break;
    default: // bigint, function, symbol
      return String(value).slice(0, 10_000).toWellFormed();
  }
  if (value === null || depth > maxDepth) {
    return value === null ? null : "...";
  }
  if (Array.isArray(value) || value instanceof Set) {
    return Array.from(value, (item) => plain(item, depth + 1));
  }
  if (value instanceof Map) {
    return Object.fromEntries(Array.from(value, ([key, item]) => [text(key), plain(item, depth + 1)]));
  }
  if (typeof value.toJSON === "function") {
    return plain(value.toJSON(), depth + 1);
  }
  if (value instanceof Error || value instanceof RegExp) {
    return String(value).toWellFormed();
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key.toWellFormed(), plain(item, depth + 1)]));
}

function text(value) {
  return typeof value === "string" ? value : value instanceof Error ? String(value.stack ?? value) : (JSON.stringify(plain(value)) ?? String(value));
}
