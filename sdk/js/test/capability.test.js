// What a tool is granted, as tests stand in for it.
import { test } from "node:test";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import * as z from "zod";
import { Failure, ToolError, tool } from "toolsrv";
import { call } from "toolsrv/testing";
import * as files from "toolsrv/files";
import * as kv from "toolsrv/kv";
import * as secrets from "toolsrv/secrets";
import * as settings from "toolsrv/settings";
import * as tools from "toolsrv/tools";
import * as guest from "../guest.js";
import { observe } from "../host.js";

// run calls a function as a tool.
const run = (body, options, needs) => call(tool({ description: "D.", needs, run: body }), {}, options);

const failure = (code, message) => (error) => {
  assert.equal(error.code, code, error.stack);
  assert.match(error.message, message);
  return true;
};

test("fetch", async () => {
  const real = globalThis.fetch;
  const asked = [];
  const http = async (request) => {
    asked.push([request.method, request.url, request.headers.get("x-a"), await request.text()]);
    return Response.json({ a: 1 }, { status: 201 });
  };
  const got = await run(async () => {
    const response = await fetch("https://example.com/a", { method: "POST", body: "b", headers: { "X-A": "c" } });
    return [response.status, response.url, await response.json()];
  }, { http });
  assert.deepEqual(got, [201, "https://example.com/a", { a: 1 }]);
  assert.deepEqual(asked, [["POST", "https://example.com/a", "c", "b"]]);
  assert.equal(globalThis.fetch, real);
  await assert.rejects(run(() => fetch("https://example.com/")), failure("not_granted", /fetch https:\/\/example.com\/: the test grants nothing: pass http/));
});

test("fetch within the needs", async () => {
  const needs = { http: ["https://api.example.com/v2/", "https://*.example.org", "http://localhost:8080"] };
  for (const [url, allowed] of [
    ["https://api.example.com/v2/", true],
    ["https://api.example.com/v2/x?y", true],
    ["https://api.example.com/v2", true],
    ["https://api.example.com/v20", false],
    ["https://api.example.com/", false],
    ["https://api.example.com/v2/../v1", false],
    ["http://api.example.com/v2/", false],
    ["https://api.example.com:444/v2/", false],
    ["https://a.example.org/x", true],
    ["https://a.b.example.org/x", true],
    ["https://example.org/x", false],
    ["https://notexample.org/x", false],
    ["http://localhost:8080", true],
    ["http://localhost", false],
  ]) {
    const asked = run(() => fetch(url).then(() => true), { http: () => new Response() }, needs);
    await (allowed ? asked : assert.rejects(asked, failure("not_granted", /doesn't declare/), url));
  }
  assert.equal(await run(() => fetch("https://a.example/").then((r) => r.status), { http: () => new Response(), needs: { http: ["https://a.example"] } }, { kv: true }), 200);
});

test("kv", async () => {
  const values = new Map([["a", "text"]]);
  const got = await run(async () => {
    const a = await kv.get("a");
    const version = await kv.set("b", new Uint8Array([1, 2]));
    const next = await kv.set("b", JSON.stringify({ n: 1 }), { expect: version });
    await assert.rejects(kv.set("b", "x", { expect: version }), failure("conflict", /"b" has another version/));
    await assert.rejects(kv.set("a", "x", { expect: 0 }), failure("conflict", /./));
    await kv.set("new", "x", { expect: 0, ttl: 1e6 });
    assert.ok(Math.abs((await kv.get("new")).expires - Date.now() - 1e6) < 1e4);
    const keys = [];
    for await (const key of kv.list()) {
      keys.push(key);
    }
    return [a.text(), a.expires ?? null, next > version, (await kv.get("b")).json(), (await kv.get("none")) ?? null, keys, await kv.delete("new"), await kv.delete("new")];
  }, { kv: values });
  assert.deepEqual(got, ["text", null, true, { n: 1 }, null, ["a", "b", "new"], true, false]);
  assert.deepEqual([...values.keys()], ["a", "b"]);
  const { version } = await run(async () => ({ version: String((await kv.get("b")).version) }), { kv: values });
  await run(() => kv.set("b", "y", { expect: BigInt(version) }).then(() => 1), { kv: values });
  await assert.rejects(run(() => kv.get("a")), failure("not_granted", /^kv: the test grants nothing: pass kv: new Map\(\) to call$/));
  await assert.rejects(run(() => kv.get("a"), { kv: values }, {}), failure("not_granted", /doesn't declare/));
});

test("kv lists in the order of bytes, page by page", async () => {
  const values = new Map(["ä", "z", "a", "😀", "\uffee", "b/1", "b/2", "b"].map((key) => [key, "x"]));
  for (let i = 0; i < 2500; i++) {
    values.set(`many/${String(i).padStart(4, "0")}`, "x");
  }
  const keys = async (...args) => {
    const out = [];
    for await (const key of kv.list(...args)) {
      out.push(key);
    }
    return out;
  };
  await run(async () => {
    assert.deepEqual(await keys("b"), ["b", "b/1", "b/2"]);
    assert.deepEqual(await keys("", { after: "many/2499" }), ["z", "ä", "\uffee", "😀"]);
    assert.deepEqual(await keys("b", { after: "b", limit: 1 }), ["b/1"]);
    assert.deepEqual(await keys("", { limit: 0 }), []);
    assert.deepEqual(await keys("many/"), [...values.keys()].filter((key) => key.startsWith("many/")));
    assert.equal((await keys("many/", { limit: 1001 })).length, 1001);
    return 1;
  }, { kv: values });
});

test("kv with what it doesn't take", async () => {
  await run(async () => {
    for (const wrong of [() => kv.get(1), () => kv.set("a", { b: 1 }), () => kv.set("a"), () => kv.set("a", "b", { expect: -1 }), () => kv.set("a", "b", { expect: 1.5 }), () => kv.set("a", "b", { ttl: -1 }), () => kv.set("a", "b", { ttl: NaN }), () => kv.list(1).next()]) {
      await assert.rejects(wrong, /is a text|JSON.stringify|expect is|ttl is/);
    }
    return 1;
  }, { kv: new Map() });
});

test("secrets, settings and tools", async () => {
  const loaded = settings.load(({ prices }) => new Map(prices));
  const options = {
    secrets: { key: "ä" },
    settings: { prices: [["a", 2]] },
    tools: {
      "units/convert": async ({ value }) => value * 2,
      "units/none": () => undefined,
      "units/refuse": () => { throw new ToolError("No.", { code: "gone", data: { a: 1 } }); },
      "units/broken": () => { throw new RangeError("broken"); },
    },
  };
  const got = await run(async () => [secrets.read("key"), [...secrets.bytes("key")], settings.read(), loaded.get().get("a"), await tools.call("units/convert", { value: 4 }), await tools.call("/units/none")], options);
  assert.deepEqual(got, ["ä", [0xc3, 0xa4], { prices: [["a", 2]] }, 2, 8, null]);
  assert.equal(await run(() => loaded.get().get("a"), { settings: { prices: [["a", 3]] } }), 3);
  await assert.rejects(run(() => tools.call("units/refuse"), options), (error) => {
    assert.ok(error instanceof Failure);
    assert.deepEqual([error.name, error.message, error.code, error.toolCode, error.data], ["Failure", "No.", "tool_error", "gone", { a: 1 }]);
    return true;
  });
  await assert.rejects(run(() => tools.call("units/broken"), options), /^RangeError: broken$/);
  await assert.rejects(run(() => tools.call("a/b"), options), failure("not_granted", /the test has none with the name a\/b/));
  await assert.rejects(run(() => tools.call("units/none"), options, { tools: ["units/convert"] }), failure("not_granted", /doesn't declare/));
  await assert.rejects(run(() => secrets.read("other"), options), failure("not_granted", /with the name other/));
  await assert.rejects(run(() => secrets.read("key"), options, { secrets: ["other"] }), failure("not_granted", /doesn't declare/));
  await assert.rejects(run(() => settings.read(), {}), failure("not_granted", /pass settings/));
  assert.throws(() => secrets.read("key"), failure("not_granted", /there is no host here/));
});

test("files", async () => {
  const own = { "/geo/a.txt": "ä", "/geo/sub/b.bin": new Uint8Array([1, 2]), "/geo/sub/c": "" };
  const got = await run(async () => [await files.text("/geo/a.txt"), [...(await files.read("geo/sub/b.bin"))], await files.list("/geo"), await files.list("/geo/sub/"), await files.text("/geo/sub/c")], { files: own });
  assert.deepEqual(got, ["ä", [1, 2], ["a.txt", "sub"], ["b.bin", "c"], ""]);
  await assert.rejects(run(() => files.text("/geo/none"), { files: own }), failure("not_found", /^\/geo\/none: No such file/));
  await assert.rejects(run(() => files.list("/none"), { files: own }), failure("not_found", /^\/none: /));
  await assert.rejects(run(() => files.text("/geo/a.txt"), { files: own }, { files: ["other"] }), failure("not_granted", /doesn't declare/));
  await assert.rejects(run(() => files.text("/geo/a.txt")), failure("not_granted", /pass files/));
  await assert.rejects(files.read(1), /a path is a text/);
  await assert.rejects(files.read("/geo/a.txt\0x"), failure("invalid", /it has a zero/));
});

test("settings are prepared while a tool starts", () => {
  const before = observe({ deadline: () => -1 });
  try {
    const answer = (ok, value) => () => [ok, new TextEncoder().encode(JSON.stringify(value)).buffer];
    observe({ deadline: () => -1, use: answer(true, { a: 1 }) });
    let made = 0;
    const there = settings.load((settings) => ({ ...settings, made: ++made }));
    assert.deepEqual([made, there.get()], [1, { a: 1, made: 1 }]);
    assert.throws(() => settings.load(() => null.x), TypeError);
    observe({ deadline: () => -1, use: answer(false, { code: "not_granted", message: "no settings" }) });
    const none = settings.load();
    observe({ deadline: () => 5, use: answer(false, { code: "not_granted", message: "no settings" }) });
    assert.throws(() => none.get(), failure("not_granted", /no settings/));
    observe({ deadline: () => 5, use: answer(true, { a: 2 }) });
    assert.deepEqual([none.get(), there.get()], [{ a: 2 }, { a: 2, made: 2 }]);
  } finally {
    observe(before);
  }
});

test("what a tool lets through", async () => {
  const said = {};
  const through = async (thrown) => {
    observe({ entry: () => undefined });
    guest.load({ t: tool({ description: "D.", run: () => { throw thrown; } }) });
    observe({ input: () => "{}", fail: (text) => (said.fail = JSON.parse(text)), log: () => {} });
    assert.equal(await guest.call(0), 1);
    return said.fail;
  };
  assert.deepEqual(await through(new Failure("It took too long.", { code: "timeout" })), { message: "It took too long.", code: "timeout", status: 502 });
  for (const code of [undefined, 5, "ä", "x".repeat(200), ""]) {
    assert.equal((await through(new Failure("odd", { code }))).code, "unavailable");
  }
  const fetched = Object.defineProperty(new TypeError("fetch: no"), Symbol.for("toolsrv.failure"), { value: { code: "dns", message: "no" } });
  assert.deepEqual(await through(fetched), { message: "no", code: "dns", status: 502 });
});

test("needs in the manifest", () => {
  const t = tool({ description: "D.", needs: { tools: ["a/b"] }, run: () => 1 });
  const described = (needs) => {
    observe({ entry: () => undefined });
    guest.load({ t, needs });
    return JSON.parse(guest.describe());
  };
  const needs = { http: ["https://a.example"], kv: true, secrets: ["k"], files: ["geo"], tools: ["c/d"] };
  assert.deepEqual(described({ ...needs, settings: z.object({ units: z.enum(["m", "ft"]).default("m") }) }).needs, {
    ...needs,
    settings: { type: "object", properties: { units: { type: "string", enum: ["m", "ft"], default: "m" } }, additionalProperties: false },
  });
  assert.deepEqual(described(needs).tools[0].needs, { tools: ["a/b"] });
  assert.equal(described(undefined).needs, undefined);
  observe({ entry: () => undefined });
  guest.load({ needs: t });
  assert.equal(JSON.parse(guest.describe()).needs, undefined);
  for (const [wrong, message] of [
    [[], /export const needs is an object such as/],
    [null, /export const needs is an object such as/],
    [{ https: [] }, /it has no member "https": did you mean http\?/],
    [{ http: "https://a.example" }, /http is a list of addresses/],
    [{ http: [""] }, /http is a list of addresses/],
    [{ kv: 1 }, /kv is true or false/],
    [{ settings: "x" }, /settings is a JSON Schema/],
    [{ settings: z.object({ at: z.date() }) }, /settings: zod can't say this schema/],
    [{ secrets: [1] }, /secrets is a list of names/],
  ]) {
    assert.throws(() => described(wrong), message);
  }
  assert.throws(() => tool({ description: "D.", needs: { settings: {} }, run: () => 1 }), /settings are those of the whole script/);
  assert.throws(() => tool({ description: "D.", needs: { file: ["a"] }, run: () => 1 }), /did you mean files\?/);
});

test("Node finds the names of the sandbox", () => {
  const script = 'import * as kv from "toolsrv:kv"; import { get } from "toolsrv/kv"; console.log(kv.get === get, Object.keys(kv).join())';
  const { stdout, stderr } = spawnSync(process.execPath, ["--import", "toolsrv/register", "--input-type=module", "-e", script], { encoding: "utf8", cwd: new URL("..", import.meta.url) });
  assert.equal(stdout, "true delete,get,list,set\n", stderr);
});
