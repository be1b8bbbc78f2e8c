import assert from "node:assert/strict";
import { test } from "node:test";
import { call, examples } from "toolsrv/testing";
import { insert, list } from "./toc.js";

test("examples", () => examples(list, insert));

for (const [name, text, want, options] of [
  ["nothing", "", ""],
  ["code is none", "```\n## a\n```\n\n    ## b\n\n## c\n", "- [c](#c)\n"],
  ["the same twice", "## a\n## a\n", "- [a](#a)\n- [a](#a-1)\n"],
  ["links and emphasis", "## [A](http://x) *b* **c** `d` ![e](f)\n", "- [A *b* **c** `d` ](#a-b-c-d-)\n"],
  ["signs", "## What's new? (2026)\n", "- [What's new? (2026)](#whats-new-2026)\n"],
  ["escaped", "## a & b < c \\* d\n", "- [a & b < c \\* d](#a--b--c--d)\n"],
  ["a level is left out", "## a\n#### b\n### c\n## d\n", "- [a](#a)\n  - [b](#b)\n  - [c](#c)\n- [d](#d)\n", { to: 4 }],
  ["deeper first", "### a\n## b\n", "- [a](#a)\n- [b](#b)\n"],
  ["underlined", "a\n---\n", "- [a](#a)\n"],
  ["in a quote and a list", "> ## a\n\n- ## b\n", "- [a](#a)\n- [b](#b)\n"],
  ["the title, too", "# a\n", "- [a](#a)\n", { from: 1 }],
  ["other letters", "## Über 日本\n", "- [Über 日本](#über-日本)\n"],
]) {
  test(name, async () => assert.equal(await call(list, { text, ...options }), want));
}

test("inserting twice is inserting once", async () => {
  const once = await call(insert, { text: "# a\n\n<!-- toc -->\n\n## b\n" });
  assert.equal(await call(insert, { text: once }), once);
});

test("errors say what to do", async () => {
  await assert.rejects(call(insert, { text: "## a" }), { code: "no_place" });
  await assert.rejects(call(list, { text: "", from: 3, to: 2 }), { code: "no_such_level" });
  await assert.rejects(call(list, { text: "", from: 0.5 }), { code: "no_such_level" });
});

test("hostile texts take moments", { timeout: 20_000 }, async () => {
  for (const text of ["#".repeat(100_000), "> ".repeat(1000), "## a\n".repeat(5000), "[".repeat(20_000), "## " + "*a ".repeat(5000)]) {
    await call(list, { text });
  }
});
