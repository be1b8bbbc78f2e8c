// Keeps notes, and no more of them in a minute than the operator allows.
import { Failure, ToolError, module, tool } from "toolsrv";
import * as kv from "toolsrv:kv";
import * as settings from "toolsrv:settings";

module({ namespace: "notes-javascript", version: "1.0.0" });

export const needs = {
  kv: true,
  settings: {
    type: "object",
    properties: { per_minute: { type: "integer", minimum: 1, maximum: 100_000, default: 30, description: "How many notes all callers together may add in a minute." } },
    additionalProperties: false,
  },
};

const loaded = settings.load();

const note = {
  type: "object",
  properties: { id: { type: "string", description: "By which it is removed. Those of later notes sort behind those of earlier ones." }, text: { type: "string" } },
  required: ["id", "text"],
};

export const add = tool({
  title: "Add a note",
  description: "Keep a note, and return it with its id. It fails with too_many where too many notes were added in this minute.",
  parameters: { type: "object", properties: { text: { type: "string", minLength: 1, maxLength: 10_000, description: "What is to be kept." } }, required: ["text"], additionalProperties: false },
  result: note,
  annotations: { readOnly: false, destructive: false, idempotent: false, openWorld: false },
  examples: [{ arguments: { text: "Water the plants." } }],
  async run({ text }) {
    const now = Date.now();
    await admit(Math.floor(now / 60_000));
    const id = `${now.toString(16).padStart(12, "0")}-${crypto.randomUUID().slice(0, 8)}`;
    await kv.set(`note/${id}`, text, { expect: 0 });
    return { id, text };
  },
});

// admit counts a note of this minute, or refuses it. The count goes away by itself.
async function admit(minute) {
  const most = loaded.get().per_minute;
  const key = `minute/${minute}`;
  for (;;) {
    const entry = await kv.get(key);
    const count = Number(entry?.text() ?? 0);
    if (count >= most) {
      throw new ToolError(`${most} notes were added in this minute, and no more are allowed: try again in the next.`, { code: "too_many", status: 429 });
    }
    try {
      await kv.set(key, String(count + 1), { ttl: 120_000, expect: entry?.version ?? 0 });
      return;
    } catch (error) {
      if (!(error instanceof Failure && error.code === "conflict")) {
        throw error; // else another call was first: count again
      }
    }
  }
}

export const list = tool({
  title: "List notes",
  description: "List the notes, the oldest first.",
  parameters: {
    type: "object",
    properties: {
      after: { type: "string", maxLength: 100, default: "", description: "The id after which the page begins; the first page without it." },
      limit: { type: "integer", minimum: 1, maximum: 100, default: 20, description: "How many notes at most." },
    },
    additionalProperties: false,
  },
  result: { type: "object", properties: { notes: { type: "array", items: note }, more: { type: "boolean", description: "Whether more come after the last." } }, required: ["notes", "more"] },
  annotations: { readOnly: true, openWorld: false },
  examples: [{ arguments: {} }],
  async run({ after, limit }) {
    const notes = [];
    for await (const key of kv.list("note/", { after: after === "" ? "" : `note/${after}`, limit: limit + 1 })) {
      if (notes.length === limit) {
        return { notes, more: true };
      }
      const entry = await kv.get(key);
      if (entry !== undefined) {
        notes.push({ id: key.slice("note/".length), text: entry.text() });
      }
    }
    return { notes, more: false };
  },
});

export const remove = tool({
  title: "Remove a note",
  description: "Remove a note, and return whether there was one of that id.",
  parameters: { type: "object", properties: { id: { type: "string", minLength: 1, maxLength: 100, description: "As add and list return it." } }, required: ["id"], additionalProperties: false },
  result: { type: "boolean" },
  annotations: { readOnly: false, destructive: true, idempotent: true, openWorld: false },
  examples: [{ arguments: { id: "none" }, result: false }],
  run: ({ id }) => kv.delete(`note/${id}`),
});
