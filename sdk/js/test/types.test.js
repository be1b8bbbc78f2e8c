import { test } from "node:test";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

test("types", () => {
  const at = (path) => fileURLToPath(new URL(path, import.meta.url));
  const { stdout, status } = spawnSync(process.execPath, [at("../node_modules/typescript/bin/tsc"), "-p", at(".")], { encoding: "utf8" });
  assert.equal(stdout, "");
  assert.equal(status, 0);
});
