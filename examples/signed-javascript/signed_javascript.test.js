import "toolsrv/register";
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { call } from "toolsrv/testing";

const { needs, send } = await import("./signed_javascript.js");
const key = "a key to sign with";

// service takes events whose signature is right.
async function service(request) {
  const body = await request.text();
  const [, time, signature] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(request.headers.get("x-signature"));
  assert.equal(request.url, "https://events.example.com/v1/events");
  assert.equal(signature, createHmac("sha256", key).update(`${time}.${body}`).digest("hex"));
  assert.ok(Math.abs(Date.now() / 1000 - time) < 60);
  const { kind, data } = JSON.parse(body);
  return kind === "refused" ? new Response("no", { status: 403 }) : Response.json({ id: `evt_${data.order}` });
}

const world = { http: service, secrets: { signing_key: key }, settings: { service: "https://events.example.com" }, needs };

test("an event is signed", async () => {
  assert.deepEqual(await call(send, { kind: "order.paid", data: { order: 17 } }, world), { id: "evt_17" });
});

test("what goes wrong", async () => {
  await assert.rejects(call(send, { kind: "refused" }, world), (error) => error.code === "bad_status" && error.status === 502);
  await assert.rejects(call(send, { kind: "a" }, { ...world, settings: { service: "https://example.com" } }), /doesn't declare/);
  await assert.rejects(call(send, { kind: "a" }, { ...world, secrets: undefined }), (error) => error.code === "not_granted");
});
