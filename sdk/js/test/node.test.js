// What stands in for modules of Node's in the sandbox, compared with Node's.
import { test } from "node:test";
import assert from "node:assert/strict";
import nodePath from "node:path/posix";
import * as nodeURL from "node:url";

const standIn = (name) => import(new URL(`../../../internal/script/javascript/node/${name}.js`, import.meta.url));

test("path", async () => {
  const path = await standIn("path");
  const parts = ["", ".", "..", "/", "//", "a", "a/b", "/a", "/a/b/", "a//b/./c/../d", "../a", "../../a/..", "a.txt", ".profile", "a.tar.gz", "a.", "/.a", "a/b.c/", "..a", "...", "///a//", "a/..", "/../a", "./a/", "a/../../b"];
  for (const a of parts) {
    for (const name of ["normalize", "isAbsolute", "dirname", "basename", "extname", "parse"]) {
      assert.deepEqual(path[name](a), nodePath[name](a), `${name}(${JSON.stringify(a)})`);
    }
    assert.equal(path.format(path.parse(a)), nodePath.format(nodePath.parse(a)));
    for (const b of parts) {
      assert.equal(path.join(a, b), nodePath.join(a, b), `join(${JSON.stringify([a, b])})`);
      assert.equal(path.resolve("/", a, b), nodePath.resolve("/", a, b), `resolve(${JSON.stringify([a, b])})`);
      assert.equal(path.relative("/" + a, "/" + b), nodePath.relative("/" + a, "/" + b), `relative(${JSON.stringify([a, b])})`);
    }
    for (const suffix of [".txt", ".gz", "c", a].filter(() => /[^/]/.test(a))) {
      assert.equal(path.basename(a, suffix), nodePath.basename(a, suffix), `basename(${JSON.stringify([a, suffix])})`);
    }
  }
  assert.throws(() => path.join("a", 1), /must be of type string. Received number/);
  assert.equal(path.posix.sep + path.default.delimiter, "/:");
});

test("url", async () => {
  const url = await standIn("url");
  for (const path of ["/", "/a b/ä?#%25", "/a\\b\n"]) {
    assert.equal(url.pathToFileURL(path).href, nodeURL.pathToFileURL(path).href);
    assert.equal(url.fileURLToPath(url.pathToFileURL(path)), path);
  }
  for (const wrong of ["https://a/", "file://host/a", "file:///a%2fb"]) {
    assert.throws(() => url.fileURLToPath(wrong), TypeError);
    assert.throws(() => nodeURL.fileURLToPath(wrong), TypeError);
  }
});

test("crypto", async () => {
  const { randomInt, randomUUID } = await standIn("crypto");
  const seen = new Set(Array.from({ length: 200 }, () => randomInt(5, 8)));
  assert.deepEqual([...seen].sort(), [5, 6, 7]);
  assert.ok(randomInt(3) < 3);
  assert.throws(() => randomInt(0), RangeError);
  assert.throws(() => randomInt(0.5, 3), RangeError);
  assert.match(randomUUID(), /^[0-9a-f]{8}-[0-9a-f]{4}-4/);
});

test("timers", async () => {
  const { setTimeout, setInterval, scheduler } = await standIn("timers/promises");
  assert.equal(await setTimeout(1, "late"), "late");
  await scheduler.wait(1);
  let ticks = 0;
  for await (const tick of setInterval(1, "tick")) {
    assert.equal(tick, "tick");
    if (++ticks === 3) {
      break;
    }
  }
  const { setImmediate } = await standIn("timers");
  assert.equal(await new Promise((done) => setImmediate(done, 1)), 1);
});
