// What TypeScript infers, which tsc checks (types.test.js): this file is never run.
import { tool, module, ToolError, log, progress, timeLeft, type Tool } from "toolsrv";
import { call, examples } from "toolsrv/testing";
import { z } from "zod";
import { type } from "arktype";

type Equal<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function is<A, B>(_: Equal<A, B>): void {}

const greet = tool({
  description: "Greets.",
  parameters: z.object({ name: z.string(), style: z.enum(["short", "long"]).default("short"), at: z.string().transform((text) => new Date(text)) }),
  run: (args) => {
    is<typeof args, { name: string; style: "short" | "long"; at: Date }>(true);
    return args.name.length;
  },
});
is<Parameters<typeof greet>[0], { name: string; style?: "short" | "long" | undefined; at: string }>(true);
is<ReturnType<typeof greet>, number>(true);
greet({ name: "Ada", at: "2001-01-01" });
// @ts-expect-error at is missing
greet({ name: "Ada" });

tool({ description: "With arktype.", parameters: type({ "n?": "number" }), run: (args) => is<typeof args, { n?: number }>(true) });

const described = tool({
  description: "With a JSON Schema.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string" },
      size: { type: ["integer", "null"] },
      level: { enum: ["debug", "info"], default: "info" },
      tags: { type: "array", items: { type: "string" } },
      place: { type: "object", properties: { x: { type: "number" } }, required: ["x"] },
      more: { type: "object", additionalProperties: { type: "boolean" } },
      either: { anyOf: [{ type: "string" }, { const: 3 }] },
      any: {},
    },
    required: ["name", "size"],
  },
  run: async (args) => {
    is<typeof args, { name: string; size: number | null; level: "debug" | "info"; tags?: string[]; place?: { x: number }; more?: { [name: string]: boolean }; either?: string | 3; any?: any }>(true);
    return args.name;
  },
});
is<ReturnType<typeof described>, Promise<string>>(true);

const annotated = tool({ description: "By its own types.", run: ({ a }: { a: number }) => a });
is<Parameters<typeof annotated>, [args: { a: number }]>(true);
const bare = tool(({ a }: { a: number }) => a);
is<ReturnType<typeof bare>, number>(true);
const none = tool({ description: "Takes nothing.", run: () => "pong" });
const any: Tool<any, any> = none;

// @ts-expect-error run is missing
tool({ description: "D." });
// @ts-expect-error there is no such member
tool({ description: "D.", execute: () => 1, run: () => 1 });
// @ts-expect-error the parameters say otherwise
tool({ description: "D.", parameters: z.object({ a: z.string() }), run: ({ a }: { a: number }) => a });
// @ts-expect-error an annotation is true or false
tool({ description: "D.", annotations: { readOnly: "yes" }, run: () => 1 });

module({ namespace: "texts", version: "1.0" });
// @ts-expect-error a module has no name
module({ name: "texts" });

const error: Error = new ToolError("Gone.", { code: "gone", status: 410, data: [1], cause: new Error("why") });
log.info("a", 1, error);
progress(1);
progress(1, 2, "half");
const left: number = timeLeft();
const result: Promise<unknown> = call(greet, { name: "Ada" }, { log: (level: "debug" | "info" | "warn" | "error", message) => message.length, timeLeft: left });
examples(greet, described, any);
result.then(() => {});

import type { Needs } from "toolsrv";
import { Failure } from "toolsrv";
import * as kv from "toolsrv:kv";
import { read } from "toolsrv/secrets";
import * as settings from "toolsrv:settings";
import * as tools from "toolsrv:tools";

export const needs: Needs = { http: ["https://api.example.com"], kv: true, settings: z.object({ units: z.string() }), tools: ["units/convert"] };
const loaded = settings.load(({ units }: { units: string }) => units.length);
const length: number = loaded.get();
const entry: kv.Entry | undefined = await kv.get("a");
const version: bigint = await kv.set("a", "b", { expect: entry?.version ?? 0, ttl: 1000 });
await kv.set("a", new Uint8Array(1), { expect: version });
const removed: boolean = await kv.delete("a");
for await (const key of kv.list("a/", { after: "b", limit: 3 })) {
  is<typeof key, string>(true);
}
// @ts-expect-error an object is not a value
await kv.set("a", { b: 1 });
// @ts-expect-error one tool has no settings of its own
tool({ description: "D.", needs: { settings: {} }, run: () => 1 });
// @ts-expect-error there is no such need
const wrong: Needs = { https: [] };
const code: string = new Failure("no", { code: "timeout" }).code;
call(none, {}, { http: async (request) => new Response(request.url), kv: new Map([["a", "b"]]), secrets: { k: read("k") }, tools: { "a/b": (args) => tools.call("c", args) }, needs });
console.log(length, removed, code);
