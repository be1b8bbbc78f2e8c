// The JavaScript guest with a tool for each function that needs a grant: testdata/abi/README.md says what its tools do.
import { module, tool } from "toolsrv";
import * as files from "toolsrv:files";
import * as kv from "toolsrv:kv";
import * as secrets from "toolsrv:secrets";
import * as settings from "toolsrv:settings";
import * as tools from "toolsrv:tools";

module({ namespace: "reach", version: "1.0.0" });

export const needs = {
  settings: {
    type: "object",
    properties: { units: { enum: ["metric", "imperial"], default: "metric" }, limit: { type: "integer" } },
    required: ["limit"],
    additionalProperties: false,
  },
};

const loaded = settings.load();
const text = { type: "string" };
const whole = (value) => ({ type: "integer", default: value });
const object = (properties) => ({
  type: "object",
  properties,
  required: Object.keys(properties).filter((name) => !("default" in properties[name])),
  additionalProperties: false,
});
const expected = (expect) => (expect === -1 ? undefined : BigInt(expect));

export const http_send = tool({
  description: "Send a request.",
  needs: { http: ["https://api.example.com/v1/"] },
  parameters: object({
    url: text,
    method: { type: "string", default: "GET" },
    headers: { type: "array", items: { type: "array", items: text }, default: [] },
    body: { type: "string", default: "" },
    timeout: { ...whole(0), description: "Milliseconds." },
    manual: { type: "boolean", default: false },
  }),
  run: async ({ url, method, headers, body, timeout, manual }) => {
    const answer = await fetch(url, {
      method,
      headers,
      body: body === "" ? undefined : body,
      redirect: manual ? "manual" : "follow",
      signal: timeout === 0 ? undefined : AbortSignal.timeout(timeout),
    });
    const all = {};
    for (const [name, value] of answer.headers) {
      (all[name] ??= []).push(value);
    }
    return { status: answer.status, url: answer.url, headers: all, body: await answer.text() };
  },
});

export const kv_get = tool({
  description: "Get what is under a key.",
  needs: { kv: true },
  parameters: object({ key: text }),
  run: async ({ key }) => {
    const entry = await kv.get(key);
    return entry === undefined
      ? { found: false, value: "", version: 0, expires: 0 }
      : { found: true, value: entry.text(), version: Number(entry.version), expires: entry.expires?.getTime() ?? 0 };
  },
});

export const kv_set = tool({
  description: "Put a value under a key.",
  needs: { kv: true },
  parameters: object({ key: text, value: text, ttl: { ...whole(0), description: "Milliseconds." }, expect: whole(-1) }),
  run: async ({ key, value, ttl, expect }) => Number(await kv.set(key, value, { ttl, expect: expected(expect) })),
});

export const kv_delete = tool({
  description: "Remove a key.",
  needs: { kv: true },
  parameters: object({ key: text, expect: whole(-1) }),
  run: ({ key, expect }) => kv.delete(key, { expect: expected(expect) }),
});

export const kv_list = tool({
  description: "List keys.",
  needs: { kv: true },
  parameters: object({ prefix: { type: "string", default: "" }, after: { type: "string", default: "" }, limit: whole(0) }),
  run: async ({ prefix, after, limit }) => {
    const most = limit || 1000;
    const keys = [];
    for await (const key of kv.list(prefix, { after, limit: most + 1 })) {
      keys.push(key);
    }
    return { keys: keys.slice(0, most), more: keys.length > most };
  },
});

export const secret_read = tool({
  description: "Read a secret.",
  needs: { secrets: ["stripe_key"] },
  parameters: object({ name: text }),
  run: ({ name }) => secrets.read(name),
});

export const settings_read = tool({ description: "Read the settings.", run: () => loaded.get() });

export const tool_call = tool({
  description: "Call another tool.",
  needs: { tools: ["units/convert"] },
  parameters: object({ path: text, arguments: { type: "object", default: {} } }),
  run: (args) => tools.call(args.path, args.arguments),
});

export const file_read = tool({
  description: "Read a file.",
  needs: { files: ["geo"] },
  parameters: object({ folder: text, path: text }),
  run: ({ folder, path }) => files.text(`/${folder}/${path}`),
});
