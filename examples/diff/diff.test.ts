import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { call, examples } from "toolsrv/testing";
import { unified } from "./diff.ts";

test("examples", () => examples(unified));

for (const [name, before, after, context, want] of [
  ["nothing", "", "", 3, ""],
  ["all is new", "", "a\nb\n", 3, "@@ -0,0 +1,2 @@\n+a\n+b\n"],
  ["all is gone", "a\n", "", 3, "@@ -1 +0,0 @@\n-a\n"],
  ["no end of the last line", "a", "a\n", 3, "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"],
  ["in the middle", "a\nb\nc\n", "a\nx\nc\n", 0, "@@ -2 +2 @@\n-b\n+x\n"],
  ["added without context", "a\nb\n", "a\nx\nb\n", 0, "@@ -1,0 +2 @@\n+x\n"],
  ["far from each other", "1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", 1, "@@ -1,2 +1,2 @@\n-1\n+x\n 2\n@@ -4,2 +4,2 @@\n 4\n-5\n+y\n"],
  ["near each other", "1\n2\n3\n4\n", "x\n2\n3\ny\n", 1, "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n-4\n+y\n"],
] as const) {
  test(name, async () => assert.equal(await call(unified, { before, after, context }), want && `--- before\n+++ after\n${want}`));
}

test("patch makes the second text of the first", (t) => {
  try {
    execFileSync("patch", ["--version"]);
  } catch {
    t.skip("there is no patch");
    return;
  }
  return patched();
});

async function patched() {
  const folder = mkdtempSync(join(tmpdir(), "diff-"));
  let seed = 1;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
  const text = () => Array.from({ length: random(12) }, () => "abc"[random(3)]).join("\n") + (random(3) > 0 ? "\n" : "");
  try {
    for (let i = 0; i < 60; i++) {
      const [before, after, context] = [text(), text(), random(4)];
      const diff = await call(unified, { before, after, context });
      assert.equal(diff === "", before === after);
      const file = join(folder, "file");
      writeFileSync(file, before);
      writeFileSync(file + ".diff", diff as string);
      if (diff !== "") {
        execFileSync("patch", ["--quiet", "--force", "--fuzz=0", file, file + ".diff"]);
      }
      assert.equal(existing(file), after, `${JSON.stringify({ before, after, context })}\n${diff}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Returns what a file holds: patch removes one that becomes empty. */
function existing(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}

test("errors say what to do", async () => {
  await assert.rejects(call(unified, { before: "", after: "", context: 1.5 }), { code: "no_such_context" });
  const many = Array.from({ length: 1500 }, (_, i) => `${i}\n`).join("");
  await assert.rejects(call(unified, { before: many, after: "x\n".repeat(1500) }), { code: "too_different" });
});
