// For tests that run natively: call a tool as the server does, with JSON. index.d.ts and testing.d.ts say what each of these is.
import { observe } from "#host";
import { isDeepStrictEqual } from "node:util";
import { fill } from "./defaults.js";
import { double } from "./double.js";
import { needed } from "./needs.js";
import { definitionOf } from "./tool.js";

function definitionFrom(tool) {
  const definition = typeof tool === "function" ? tool[definitionOf] : undefined;
  if (definition === undefined) {
    throw new TypeError("this is not a tool: pass what tool({ … }) returned");
  }
  return definition;
}

export async function call(tool, args = {}, options = {}) {
  const { parameters, needs } = definitionFrom(tool);
  const given = JSON.parse(typeof args === "string" ? args : JSON.stringify(args));
  fill(given, parameters);
  const end = options.timeLeft === undefined ? undefined : Date.now() + options.timeLeft;
  const { use, file, fetch } = double(options, union(needs, needed(options.needs)));
  const global = globalThis.fetch;
  globalThis.fetch = fetch;
  const before = observe({
    use,
    file,
    log: options.log ?? (() => {}),
    progress: options.progress,
    deadline: () => (end === undefined ? Infinity : Math.max(0, end - Date.now())),
  });
  try {
    const text = JSON.stringify(await tool(given));
    return text === undefined ? null : JSON.parse(text);
  } finally {
    globalThis.fetch = global;
    observe(before);
  }
}

// union returns what a tool and its script need together; undefined where neither says.
function union(own, all) {
  if (own === undefined || all === undefined) {
    return own ?? all;
  }
  const both = (name) => [...(own[name] ?? []), ...(all[name] ?? [])];
  return { http: both("http"), kv: own.kv || all.kv, secrets: both("secrets"), settings: all.settings, tools: both("tools"), files: both("files") };
}

export async function examples(...tools) {
  for (const tool of tools) {
    const definition = definitionFrom(tool);
    const name = definition.name ?? tool.name;
    if (!definition.examples?.length) {
      throw new Error(`tool ${name} has no examples: add examples: [{ arguments: { … }, result: … }]`);
    }
    for (const example of definition.examples) {
      const got = await call(tool, example.arguments);
      if (Object.hasOwn(example, "result") && !isDeepStrictEqual(got, JSON.parse(JSON.stringify(example.result)))) {
        throw new Error(`tool ${name}, example ${JSON.stringify(example.arguments)}: got ${JSON.stringify(got)}, want ${JSON.stringify(example.result)}`);
      }
    }
  }
}
