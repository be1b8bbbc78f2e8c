import assert from "node:assert/strict";
import { test } from "node:test";
import { call, examples } from "toolsrv/testing";
import { convert } from "./table.ts";

test("examples", () => examples(convert));

for (const [name, args, want] of [
  ["nothing", { data: [], format: "csv" }, "\r\n"],
  ["lists", { data: [["a", 1], ["b"]], format: "csv" }, "1,2\r\na,1\r\nb,\r\n"],
  ["single values", { data: [1, "b"], format: "csv" }, "value\r\n1\r\nb\r\n"],
  ["chosen columns", { data: [{ a: 1, b: 2 }], columns: ["b"], format: "csv" }, "b\r\n2\r\n"],
  ["lists within", { data: [{ a: [1, { b: 2 }] }], format: "csv" }, 'a\r\n"[1,{""b"":2}]"\r\n'],
  ["formulas are texts", { data: [{ a: "=1+1" }, { a: "-3" }, { a: "@x" }, { a: -3 }], format: "csv" }, "a\r\n'=1+1\r\n-3\r\n'@x\r\n-3\r\n"],
  ["markup is a text", { data: [{ "<a>": "</td>" }], format: "html" }, "<table>\n<thead>\n<tr><th>&#60;a&#62;</th></tr>\n</thead>\n<tbody>\n<tr><td>&#60;/td&#62;</td></tr>\n</tbody>\n</table>\n"],
  ["columns stay columns", { data: [{ a: "x|y\nz" }] }, "| a         |\n| --------- |\n| x\\|y<br>z |\n"],
  ["wide characters", { data: [{ a: "日本", b: 1 }, { a: "e\u0301", b: 10 }], format: "text" }, "a      b\n----  --\n日本   1\ne\u0301     10\n"],
  ["sorted", { data: [{ a: 10 }, { a: 9 }, { b: 1 }, { a: "x" }], sort: "a", columns: ["a"], format: "csv" }, "a\r\n9\r\n10\r\nx\r\n\r\n"],
  ["from high to low", { data: [{ a: 1 }, { b: 1 }, { a: 3 }, { a: 2 }], sort: "-a", columns: ["a"], limit: 2, format: "csv" }, "a\r\n3\r\n2\r\n"],
  ["a member of that name", { data: [{ ["__proto__"]: 1, constructor: 2 }, JSON.parse('{"__proto__": 3}')], format: "csv" }, "__proto__,constructor\r\n1,2\r\n3,\r\n"],
] as [string, object, string][]) {
  test(name, async () => assert.equal(await call(convert, args), want));
}

test("errors say what to do", async () => {
  await assert.rejects(call(convert, { data: [{ a: 1 }], sort: "b" }), { code: "no_such_column", message: 'There is no column "b": there are a.' });
  const wide = Object.fromEntries(Array.from({ length: 201 }, (_, i) => [`c${i}`, i]));
  await assert.rejects(call(convert, { data: [wide] }), { code: "too_many_columns" });
});
