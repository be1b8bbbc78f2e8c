import "toolsrv/register";
import assert from "node:assert/strict";
import { test } from "node:test";
import { call } from "toolsrv/testing";

const { add, list, needs, remove } = await import("./notes_javascript.js");

test("notes are added, listed and removed", async () => {
  const world = { kv: new Map(), settings: { per_minute: 100 }, needs };
  const ids = [];
  for (const text of ["one", "two", "three"]) {
    const { id } = await call(add, { text }, world);
    ids.push(id);
    for (const now = Date.now(); Date.now() === now; ); // notes of one millisecond have no order
  }
  const first = await call(list, { limit: 2 }, world);
  assert.deepEqual(first.notes.map(({ text }) => text), ["one", "two"]);
  assert.equal(first.more, true);
  assert.deepEqual(await call(list, { after: ids[1] }, world), { notes: [{ id: ids[2], text: "three" }], more: false });
  assert.deepEqual([await call(remove, { id: ids[0] }, world), await call(remove, { id: ids[0] }, world)], [true, false]);
  assert.equal((await call(list, {}, world)).notes.length, 2);
});

test("no more in a minute than allowed", async () => {
  const world = { kv: new Map(), settings: { per_minute: 2 }, needs };
  const outcomes = await Promise.all(Array.from({ length: 5 }, () => call(add, { text: "x" }, world).then(() => "added", (error) => error.code)));
  assert.ok(outcomes.filter((outcome) => outcome === "added").length <= 4, outcomes); // of two minutes, where one has just begun
  assert.ok(outcomes.includes("too_many"), outcomes);
});
