// Calls each function that needs a grant, as a tool in JavaScript does.
import { tool } from "toolsrv";
import * as config from "toolsrv:config";
import * as kv from "toolsrv:kv";
import * as secret from "toolsrv:secret";
import * as tools from "toolsrv:tools";

const text = { type: "string" };

function of(description, properties, run) {
  return tool({ description, parameters: { type: "object", properties }, run });
}

export const http_send = of("Send a request.", { method: text, url: text }, async ({ method, url }) => (await fetch(url, { method })).text());
export const kv_get = of("Get a value.", { key: text }, async ({ key }) => (await kv.get(key)) !== undefined);
export const kv_set = of("Keep a value.", { key: text, value: text }, async ({ key, value }) => String(await kv.set(key, value)));
export const kv_delete = of("Remove a key.", { key: text }, ({ key }) => kv.delete(key));
export const kv_list = of("List the keys.", {}, async () => {
  const keys = [];
  for await (const key of kv.list()) keys.push(key);
  return keys;
});
export const secret_read = of("Read a secret.", { name: text }, ({ name }) => secret.read(name).length);
export const config_read = of("Read the settings.", {}, () => config.read());
export const tool_call = of("Call another tool.", { path: text }, ({ path }) => tools.call(path));
