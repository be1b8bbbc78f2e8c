// The tools that are called while parts of a service fail.
import { Failure, module, tool } from "toolsrv";
import * as kv from "toolsrv:kv";

module({ namespace: "chaos", version: "1.0.0" });

export const needs = { kv: true };

const key = { type: "string", minLength: 1 };

export const add = tool({
  description: "Adds two numbers.",
  parameters: { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } }, required: ["a", "b"] },
  run: ({ a, b }) => a + b,
});

export const switched = tool({
  description: "Is switched on and off.",
  parameters: { type: "object" },
  run: () => "on",
});

export const marked = tool({
  description: "Is switched when all servers have to agree.",
  parameters: { type: "object" },
  run: () => "on",
});

export const put = tool({
  description: "Keeps a key that nobody else has.",
  parameters: { type: "object", properties: { key }, required: ["key"] },
  run: async ({ key }) => String(await kv.set(key, key, { expect: 0 })),
});

export const brief = tool({
  description: "Keeps a key for some seconds.",
  parameters: { type: "object", properties: { key, seconds: { type: "integer" } }, required: ["key", "seconds"] },
  run: async ({ key, seconds }) => String(await kv.set(key, key, { ttl: 1000 * seconds })),
});

export const count = tool({
  description: "Adds one to a counter, and returns what it is then.",
  parameters: { type: "object", properties: { key }, required: ["key"] },
  async run({ key }) {
    for (;;) {
      const entry = await kv.get(key);
      const next = Number(entry?.text() ?? 0) + 1;
      try {
        await kv.set(key, String(next), { expect: entry?.version ?? 0 });
        return next;
      } catch (error) {
        if (!(error instanceof Failure && error.code === "conflict")) throw error;
      }
    }
  },
});

export const read = tool({
  description: "Reads a key.",
  parameters: { type: "object", properties: { key }, required: ["key"] },
  run: async ({ key }) => (await kv.get(key))?.text() ?? "",
});

export const keys = tool({
  description: "Lists the keys that begin with something.",
  parameters: { type: "object", properties: { prefix: { type: "string" } }, required: ["prefix"] },
  async run({ prefix }) {
    const all = [];
    for await (const key of kv.list(prefix)) all.push(key);
    return all;
  },
});
