// Sends events to a service that wants two keys: one to sign with, which the tool has to see, and one that says who sends it, which the host
// adds and the tool never sees.
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { ToolError, module, tool } from "toolsrv";
import * as secrets from "toolsrv:secrets";
import * as settings from "toolsrv:settings";

module({ namespace: "signed-javascript", version: "1.0.0" });

export const needs = {
  http: ["https://events.example.com/v1/"],
  secrets: ["signing_key"],
  settings: {
    type: "object",
    properties: { service: { type: "string", pattern: "^https://[^/?#]+$", default: "https://events.example.com", description: "The service that takes the events." } },
    additionalProperties: false,
  },
};

const loaded = settings.load();

export const send = tool({
  title: "Send an event",
  description: "Send an event to the service for events, signed, and return the id that it gives it.",
  parameters: {
    type: "object",
    properties: {
      kind: { type: "string", minLength: 1, maxLength: 100, description: "What has happened, such as order.paid." },
      data: { type: "object", default: {}, description: "Anything that belongs to it." },
    },
    required: ["kind"],
    additionalProperties: false,
  },
  result: { type: "object", properties: { id: { type: "string", description: "By which the service knows the event." } }, required: ["id"] },
  annotations: { readOnly: false, destructive: false, idempotent: false, openWorld: true },
  examples: [{ arguments: { kind: "order.paid", data: { order: 17 } } }],
  async run({ kind, data }) {
    const time = Math.floor(Date.now() / 1000);
    const body = JSON.stringify({ kind, data });
    const answer = await fetch(`${loaded.get().service}/v1/events`, {
      method: "POST",
      headers: { "Content-Type": "application/json", "X-Signature": `t=${time},v1=${sign(secrets.bytes("signing_key"), time, body)}` },
      body,
    });
    if (!answer.ok) {
      throw new ToolError(`The service for events answers with the status ${answer.status}.`, { code: "bad_status", status: 502 });
    }
    const { id } = await answer.json();
    return { id };
  },
});

// sign returns the signature of a body at a time, as the service wants it: HMAC-SHA-256 of both, in hex.
export function sign(key, time, body) {
  return bytesToHex(hmac(sha256, key, utf8ToBytes(`${time}.${body}`)));
}
