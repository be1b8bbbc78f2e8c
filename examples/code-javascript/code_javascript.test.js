import assert from "node:assert/strict";
import { test } from "node:test";
import { call, examples } from "toolsrv/testing";
import { ToolError } from "toolsrv";
import { javascript, javascriptTools } from "./code_javascript.js";

const run = (code, input = null) => call(javascript, { code, input });

test("examples", () => examples(javascript));

test("tools", async () => {
  const convert = ({ value, to }) => {
    if (to !== "mi") {
      throw new ToolError("No such unit.", { code: "unknown_unit" });
    }
    return { value: value * 0.621371 };
  };
  const run = (code) => call(javascriptTools, { code }, { tools: { "units/convert": convert, "secret/tool": convert } });
  const sum = "let sum = 0;\nfor (const value of [5, 10]) sum += (await tools.call('units/convert', { value, to: 'mi' })).value;\nsum.toFixed(3)";
  assert.deepEqual(await run(sum), { result: "9.321", stdout: "", error: null });
  assert.equal((await run("try { await tools.call('units/convert', {}) } catch (e) { console.log(e.code, e.toolCode, e.message) }")).stdout, "tool_error unknown_unit No such unit.\n");
  for (const path of ["secret/tool", "math/none"]) {
    assert.equal((await run(`await tools.call('${path}')`)).error.type, "Failure");
  }
  assert.equal((await call(javascript, { code: "typeof tools" })).result, "undefined");
});

for (const [code, want] of [
  ["const a = 3;\na * 2", 6],
  ["", null],
  ["await 5", 5],
  ["const a = await 4; // four\na + 1;\n", 5],
  ["const f = async (x) => x;\nconst s = `a;\n`; await f(s + 1);", "a;\n1"],
  ["for (const n of input) { await n; }", null],
  ["if (await true) { 1; } else { 2; }", null],
  ["const a = await 1\nconst f = (x) => x\n;(f)(a)", 1],
  ["const a = await 5;\nreturn a", 5],
  ["let sum = 0;\nfor (const n of input) sum += n;\nsum", 6],
  ["new Map([[1, new Set([2])]])", { 1: [2] }],
  ["({ a: 1n, b: NaN, c: new Date(0), d: [undefined], e: /x/g })", { a: "1", b: "NaN", c: "1970-01-01T00:00:00.000Z", d: [null], e: "/x/g" }],
  ["Promise.resolve(4)", 4],
  ["(class { #x = 1; get y() { return this.#x } })().y", undefined],
  ["'\\ud800'", "\ufffd"],
].filter(([, want]) => want !== undefined)) {
  test(code, async () => assert.deepEqual(await run(code, [1, 2, 3]), { result: want, stdout: "", error: null }));
}

for (const [code, type] of [
  ["let x = ;", "SyntaxError"],
  ["JSON.parse('{')", "SyntaxError"],
  ["null.x", "TypeError"],
  ["await Promise.reject(new RangeError('a'))", "RangeError"],
  ["function f() { return f() }\nf()", "RangeError"],
  ["throw 5", "thrown"],
  ["throw { get name() { throw 1 } }", "Error"],
  ["throw Object.create(Error.prototype, { message: { get() { throw 1 } } })", "Error"],
  ["({ toJSON() { throw new URIError() } })", "URIError"],
]) {
  test(code, async () => assert.equal((await run(code)).error.type, type));
}

test("an error knows its line", async () => assert.equal((await run("\n\nnull.x")).error.line, 3));

test("and of code with await, too", async () => {
  assert.equal((await run("await 1;\n\nnull.x")).error.line, 3);
  assert.equal((await run("await Promise.reject(new RangeError('a'))")).error.line, 1);
});

test("console is what was printed", async () => {
  const { stdout } = await run("console.log({ a: 1 }, 'b');\nconsole.error([1])");
  assert.equal(stdout, '{"a":1} b\n[1]\n');
});

test("much is cut", async () => {
  const { stdout } = await run("for (let i = 0; i < 10000; i++) console.log('a'.repeat(100))");
  assert.ok(stdout.length < 66_000 && stdout.endsWith("\n..."));
});
