// guest.js as the engine uses it, with a host of this file.
import { test } from "node:test";
import assert from "node:assert/strict";
import * as guest from "../guest.js";
import { observe } from "../host.js";
import { ToolError, tool } from "../index.js";

// serve loads exports, and returns a function that calls tool number n as the host does.
function serve(exports, entries = {}) {
  entries = { "source.map": '{"script":"hello.js","sources":[]}', ...entries };
  observe({ entry: (name) => entries[name] });
  guest.load(exports);
  return async (number, text) => {
    const said = { log: [] };
    observe({ entry: (name) => entries[name], input: () => text, output: (t) => (said.output = t), fail: (t) => (said.fail = JSON.parse(t)), log: (level, line) => said.log.push(level, line) });
    said.status = await guest.call(number);
    return said;
  };
}

const define = (run) => tool({ description: "D.", run });

test("results", async () => {
  for (const [run, want] of [
    [() => ({ a: [1, null] }), '{"a":[1,null]}'],
    [async () => "later", '"later"'],
    [() => undefined, "null"],
    [() => null, "null"],
    [() => new Date(0), '"1970-01-01T00:00:00.000Z"'],
    [() => ({ then: (done) => done(1) }), "1"],
  ]) {
    assert.deepEqual(await serve({ t: define(run) })(0, "{}"), { log: [], output: want, status: 0 });
  }
  assert.equal((await serve({ t: define((args) => args) })(0, "")).output, "{}");
});

test("failures", async () => {
  class Own extends ToolError {}
  for (const [run, want] of [
    [() => { throw new ToolError("Gone.", { code: "gone", status: 410, data: { id: 1 } }); }, { message: "Gone.", code: "gone", status: 410, data: { id: 1 } }],
    [() => { throw new Own("Mine."); }, { message: "Mine." }],
    [() => { throw new TypeError("no"); }, { message: "TypeError: no", status: 500 }],
    [async () => { throw new Error("later"); }, { message: "Error: later", status: 500 }],
    [() => { throw "text"; }, { message: 'the tool threw "text"', status: 500 }],
    [() => { throw undefined; }, { message: "the tool threw undefined", status: 500 }],
    [() => { throw { get message() { throw 1; } }; }, { message: "the tool threw object", status: 500 }],
    [() => { throw Object.defineProperty(new Error("a"), "message", { get() { throw 1; } }); }, { message: "the tool threw something that can't be shown", status: 500 }],
    [() => { throw new ToolError("a", { data: 1n }); }, { message: "the data of an error can't be written as JSON: TypeError: Do not know how to serialize a BigInt", status: 500 }],
    [() => { throw new ToolError("a", { data: "ä".repeat(40000) }); }, { message: "the data of an error is larger than 64 KiB", status: 500 }],
    [() => NaN, { message: "RangeError: the result is NaN, which JSON doesn't have", status: 500 }],
    [() => () => 1, { message: "TypeError: the result is a function, which JSON doesn't have", status: 500 }],
    [() => ({ get then() { throw new Error("then"); } }), { message: "Error: then", status: 500 }],
    [() => 1n, { message: "TypeError: Do not know how to serialize a BigInt", status: 500 }],
  ]) {
    const { status, fail } = await serve({ t: define(run) })(0, "{}");
    assert.deepEqual([status, fail], [1, want]);
  }
  const { fail } = await serve({ t: define(() => { throw new Error("\ud800" + "x".repeat(10000)); }) })(0, "{}");
  assert.match(fail.message, /^Error: \ufffdx{8184}\.\.\.$/);
});

test("what the log has of failures", async () => {
  const { log } = await serve({ t: define(() => { throw new ToolError("Gone.", { cause: new RangeError("why") }); }) })(0, "{}");
  assert.deepEqual(log, ["error", "RangeError: why"]);
  const chain = await serve({ t: define(() => { throw new Error("a", { cause: new Error("b", { cause: 3 }) }); }) })(0, "{}");
  assert.deepEqual(chain.log, ["error", "Error: a\ncaused by Error: b\ncaused by the tool threw 3"]);
  const loop = new Error("loop");
  loop.cause = loop;
  assert.equal((await serve({ t: define(() => { throw loop; }) })(0, "{}")).log[1].split("\n").length, 5);
});

test("manifest", () => {
  const exports = {
    zeta: tool({ description: "Z.", title: "Zeta", annotations: { readOnly: true }, icons: [{ src: "https://example.com/" }], examples: [{ arguments: {} }], run: () => 1 }),
    alpha: tool({ description: "A.", parameters: { type: "object", properties: { a: {} } }, result: { type: "number" }, run: ({ a }) => a }),
    helper: () => 1,
  };
  exports.default = exports.zeta;
  serve(exports);
  const { tools, ...rest } = JSON.parse(guest.describe());
  assert.deepEqual(rest, { abi: 1, sdk: "js/0.1.0" });
  assert.deepEqual(tools, [
    { name: "zeta", title: "Zeta", description: "Z.", annotations: { readOnly: true }, icons: [{ src: "https://example.com/" }], parameters: { type: "object", properties: {}, additionalProperties: false }, examples: [{ arguments: {} }] },
    { name: "alpha", description: "A.", parameters: { type: "object", properties: { a: {} } }, result: { type: "number" } },
  ]);
});

test("scripts that are wrong", () => {
  for (const [exports, wanted] of [
    [{}, /^hello.js: the script exports no tool: write export const NAME/],
    [{ helper: () => 1 }, /exports no tool/],
    [{ default: define(() => 1) }, /exported as default needs name/],
    [{ ä: define(() => 1) }, /"ä" is not a name/],
    [{ a: tool({ name: "x", description: "D.", run: () => 1 }), b: tool({ name: "x", description: "D.", run: () => 1 }) }, /two tools are called "x": rename one/],
    [{ a: tool({ run: () => 1 }) }, /tool "a" has no description: say what it does/],
    [{ a: define((args) => args) }, /tool "a": its function takes arguments, but nothing says which: add parameters/],
    [{ a: tool({ description: "D.", parameters: { a: { type: "string" } }, run: () => 1 }) }, /tool "a": parameters: .* is not the JSON Schema of an object/],
  ]) {
    assert.throws(
      () => {
        serve(exports);
        guest.describe();
      },
      (error) => wanted.test(guest.explain(error)) || assert.fail(guest.explain(error)),
    );
  }
});

test("functions with comments", async () => {
  const comments = [
    { export: "greet", description: "Greets.", order: ["name", "style"], parameters: { type: "object" }, result: { type: "string" } },
    { export: "sum", description: "Sums.", parameters: { type: "object" } },
  ];
  const call = serve({ greet: (name, style = "short") => `${style} ${name}`, sum: ({ a, b }) => a + b, other: () => 1 }, { "tools.json": JSON.stringify(comments) });
  assert.equal((await call(0, '{"name": "Ada"}')).output, '"short Ada"');
  assert.equal((await call(1, '{"a": 1, "b": 2}')).output, "3");
  assert.deepEqual(JSON.parse(guest.describe()).tools[0], { name: "greet", description: "Greets.", parameters: { type: "object" }, result: { type: "string" } });
});

test("examples are called ahead", async () => {
  let calls = 0;
  const count = tool({ description: "D.", examples: [{ arguments: {} }, { arguments: {} }], run: () => { calls++; throw new Error("ignored"); } });
  serve({ count });
  await guest.warm();
  assert.equal(calls, 2);
});

test("what never ends, and what nobody awaits", async () => {
  const said = {};
  await serve({ wait: define(() => 1) })(0, "{}");
  observe({ fail: (t) => (said.fail = JSON.parse(t)), log: (_, line) => (said.log = line) });
  assert.equal(guest.stuck(0), 1);
  assert.match(said.fail.message, /^wait: its promise is never settled/);
  assert.equal(guest.unhandled(new Error("lost")), 1);
  assert.deepEqual(said, { fail: { message: "a promise was rejected, and nothing handles that: Error: lost", status: 500 }, log: "a promise was rejected, and nothing handles that: Error: lost" });
});

test("places in the author's files", () => {
  const map = ['{"script":"hello.js","sources":[["lib/a.ts","one\\n\\tthrow x;"],["node_modules/z/i.js",null]]}', "0,1,0,0", "0,0,1,0;6,0,1,7"].join("\n");
  serve({ t: define(() => 1) }, { "source.map": map });
  const error = new RangeError("far");
  error.stack = "    at inner (hello.js:1:5)\n    at outer (hello.js:2:7)\n    at <anonymous> (hello.js:2:1)\n    at call (toolsrv/guest:9:9)\n    at map (native)\n";
  assert.equal(guest.explain(error), "lib/a.ts:2:8: RangeError: far\n    \tthrow x;\n    \t      ^");
});
