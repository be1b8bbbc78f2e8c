import { test } from "node:test";
import assert from "node:assert/strict";
import { ToolError, log, module, progress, timeLeft, tool } from "toolsrv";
import { call, examples } from "toolsrv/testing";

const add = tool({
  description: "Adds two numbers.",
  parameters: { type: "object", properties: { a: { type: "number" }, b: { type: "number", default: 1 } }, required: ["a"] },
  examples: [{ arguments: { a: 2, b: 3 }, result: 5 }],
  run: ({ a, b }) => a + b,
});

test("a tool is called like its function", async () => {
  assert.equal(add({ a: 2, b: 3 }), 5);
  assert.equal(await call(add, '{"a": 2, "b": 5}'), 7);
  assert.equal(await call(add, { a: 2 }), 3);
  await examples(add);
});

test("defaults are filled in where the server does", async () => {
  const echo = tool({
    description: "Echoes.",
    parameters: {
      type: "object",
      properties: { list: { type: "array", items: { $ref: "#/$defs/a~1b" } }, map: { type: "object", additionalProperties: { $ref: "#/$defs/a~1b" } }, size: { default: [1] } },
      allOf: [{ properties: { more: { default: null } } }],
      anyOf: [{ properties: { never: { default: 1 } } }],
      $defs: { "a/b": { type: "object", properties: { x: { default: 1 }, next: { $ref: "#/$defs/a~1b" } } } },
    },
    run: (args) => args,
  });
  assert.deepEqual(await call(echo, { list: [{}, { x: 2, next: {} }], map: { a: {} } }), { list: [{ x: 1 }, { x: 2, next: { x: 1 } }], map: { a: { x: 1 } }, size: [1], more: null });
});

test("an example with another result", async () => {
  const wrong = tool({ description: "Wrong.", examples: [{ arguments: {}, result: 2 }], run: () => 1 });
  await assert.rejects(examples(wrong), /example \{\}: got 1, want 2/);
  await assert.rejects(examples(tool({ description: "None.", run: () => 1 })), /has no examples/);
});

test("definitions that are wrong", () => {
  const good = { description: "D.", run: () => 1 };
  for (const [definition, wanted] of [
    [undefined, /the definition is an object/],
    [[], /the definition is an object/],
    [{ description: "D." }, /has no function: add run/],
    [{ ...good, execute: () => 1 }, /no member "execute": did you mean run\?/],
    [{ ...good, inputSchema: {} }, /did you mean parameters\?/],
    [{ ...good, descripton: "D." }, /did you mean description\?/],
    [{ ...good, xyz: 1 }, /it can have name, title/],
    [{ ...good, name: "a b" }, /tool "a b": name is a name of 1 to 64/],
    [{ ...good, description: " " }, /description is a text/],
    [{ ...good, run: "f" }, /run is a function/],
    [{ ...good, parameters: "object" }, /parameters is a JSON Schema/],
    [{ ...good, examples: [{ args: {} }] }, /examples is a list such as/],
    [{ ...good, annotations: { readonly: true } }, /annotations are true or false for readOnly/],
    [{ ...good, annotations: { readOnly: 1 } }, /annotations are true or false/],
  ]) {
    assert.throws(() => tool(definition), wanted);
  }
});

test("module", () => {
  module({ namespace: "a/b", version: "1" });
  assert.throws(() => module({ namespace: "a//b" }), /namespace is a path/);
  assert.throws(() => module({ name: "a" }), /no member "name"/);
  assert.throws(() => module("a"), /the info is an object/);
});

test("errors", () => {
  const error = new ToolError("Nothing is there.", { code: "not_found", status: 404, data: [1], cause: 1 });
  assert.deepEqual([error.name, error.message, error.code, error.status, error.data, error.cause], ["ToolError", "Nothing is there.", "not_found", 404, [1], 1]);
  assert.ok(error instanceof Error);
  assert.throws(() => new ToolError(""), /pass one/);
  assert.throws(() => new ToolError("a", 404), /the options are an object/);
  assert.throws(() => new ToolError("a", { status: 200 }), /whole number from 400 to 599/);
  assert.throws(() => new ToolError("a", { code: 1 }), /a word of at most 128/);
});

test("what a call tells", async () => {
  const talk = tool({
    description: "Talks.",
    run: async () => {
      log.debug("a", { b: 1 }, [2], 3n, undefined, new TypeError("no"));
      log.warn("w");
      progress(1, 2, "half");
      return timeLeft();
    },
  });
  const lines = [];
  const reports = [];
  const left = await call(talk, {}, { log: (...line) => lines.push(line), progress: (...report) => reports.push(report), timeLeft: 5000 });
  assert.ok(left > 0 && left <= 5000, left);
  assert.equal(await call(talk, {}, { timeLeft: 0 }), 0); // not Infinity: the call ends in less than a millisecond
  assert.match(lines[0][1], /^a \{"b":1\} \[2\] \[object BigInt\] undefined TypeError: no\n/);
  assert.deepEqual([lines[0][0], lines[1]], ["debug", ["warn", "w"]]);
  assert.deepEqual(reports, [[1, 2, "half"]]);
  assert.equal(timeLeft(), Infinity);
  assert.throws(() => progress("1"), /are numbers/);
});
