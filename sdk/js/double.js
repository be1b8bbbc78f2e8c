// What stands in for the host's side of capabilities in tests that run natively: it answers with the bytes that the host does.
import { ToolError } from "./error.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const written = (value) => encoder.encode(JSON.stringify(value)).buffer;
const read = (bytes) => (typeof bytes === "string" ? bytes : decoder.decode(bytes));

// A Refusal is a failure of the host's.
class Refusal extends Error {
  constructor(code, message, more = {}) {
    super(message);
    this.failure = { code, message, ...more };
  }
}

// granted returns what was given to a test, or throws where there is none or where the tool doesn't declare the need.
function granted(value, name, needed, remedy) {
  if (value === undefined) {
    throw new Refusal("not_granted", `${name}: the test grants nothing: pass ${remedy} to call`);
  }
  if (!needed) {
    throw new Refusal("not_granted", `${name}: the tool doesn't declare that it needs this; where the script does, pass its needs to call`);
  }
  return value;
}

// covers reports whether an address is one that a tool declares, such as https://api.example.com/v2/ or https://*.example.com.
function covers(pattern, url) {
  const [, scheme, wild, rest] = /^(\w+:\/\/)(\*\.)?(.*)$/.exec(pattern) ?? [];
  if (scheme === undefined) {
    return false;
  }
  const own = new URL(scheme + (wild === undefined ? rest : `x.${rest}`));
  const host = wild === undefined ? url.host === own.host : url.host.endsWith(own.host.slice(1));
  return host && url.protocol === own.protocol && `${url.pathname}/`.startsWith(own.pathname.replace(/\/?$/, "/"));
}

// The store holds keys in a Map of the test's, in the order of their UTF-8.
class Store {
  #values;
  #kept = new WeakMap(); // of the bytes of a value: version and when it ends
  #version = 0n;

  constructor(values) {
    this.#values = values;
  }

  #entry(key) {
    let value = this.#values.get(key);
    if (value === undefined) {
      return undefined;
    }
    if (typeof value === "string") {
      this.#values.set(key, (value = encoder.encode(value))); // the test has put it there
    }
    if (!this.#kept.has(value)) {
      this.#kept.set(value, { version: ++this.#version, expires: 0 });
    }
    const { version, expires } = this.#kept.get(value);
    if (expires !== 0 && expires <= Date.now()) {
      this.#values.delete(key);
      return undefined;
    }
    return { value, version, expires };
  }

  #expect(key, expect) {
    const version = this.#entry(key)?.version ?? 0n;
    if (expect !== -1n && expect !== version) {
      throw new Refusal("conflict", `the key ${JSON.stringify(key)} has another version`);
    }
  }

  get(key) {
    const entry = this.#entry(key);
    if (entry === undefined) {
      return new ArrayBuffer(0);
    }
    const out = new Uint8Array(16 + entry.value.length);
    new DataView(out.buffer).setBigUint64(0, entry.version, true);
    new DataView(out.buffer).setBigUint64(8, BigInt(entry.expires), true);
    out.set(entry.value, 16);
    return out.buffer;
  }

  set(key, value, ttl, expect) {
    this.#expect(key, expect);
    const bytes = new Uint8Array(value.slice(0));
    this.#values.set(key, bytes);
    this.#kept.set(bytes, { version: ++this.#version, expires: ttl === 0n ? 0 : Date.now() + Number(ttl) });
    return new BigUint64Array([this.#version]).buffer;
  }

  delete(key, expect) {
    this.#expect(key, expect);
    const there = this.#entry(key) !== undefined;
    this.#values.delete(key);
    return new Uint8Array([Number(there)]).buffer;
  }

  list(prefix, after, limit) {
    const all = [...this.#values.keys()].filter((key) => key.startsWith(prefix) && order(key, after) > 0 && this.#entry(key) !== undefined).sort(order);
    const out = [Number(all.length > limit)];
    for (const key of all.slice(0, limit)) {
      const bytes = encoder.encode(key);
      out.push(...new Uint8Array(new Uint32Array([bytes.length]).buffer), ...bytes);
    }
    return new Uint8Array(out).buffer;
  }
}

function order(a, b) {
  const [x, y] = [encoder.encode(a), encoder.encode(b)];
  const at = x.findIndex((byte, i) => byte !== y[i]);
  return at < 0 ? x.length - y.length : x[at] - (y[at] ?? -1);
}

const stores = new WeakMap(); // one for each Map, so that versions go on from call to call

// double returns what takes the host's place for a call: use is the host's function of that name, and fetch the global one.
export function double({ http, kv, secrets, settings, tools, files }, needs) {
  const functions = {
    "kv.get": (key) => store().get(read(key)),
    "kv.set": (key, value, ttl, expect) => store().set(read(key), value, ttl, expect),
    "kv.delete": (key, _, expect) => store().delete(read(key), expect),
    "kv.list": (prefix, after, limit) => store().list(read(prefix), read(after), limit),
    "secrets.read": (name) => {
      const own = granted(secrets, "secrets", needs?.secrets?.includes(read(name)) ?? !needs, "secrets: { name: value }");
      if (own[read(name)] === undefined) {
        throw new Refusal("not_granted", `secrets: the test has none with the name ${read(name)}`);
      }
      return encoder.encode(own[read(name)]).buffer;
    },
    "settings.read": () => written(granted(settings, "settings", !needs || needs.settings !== undefined, "settings: { … }")),
    "tools.call": async (id, args) => {
      const path = read(id).replace(/^\//, "");
      const own = granted(tools, "tools", needs?.tools?.includes(path) ?? !needs, '{ tools: { "path/of/a/tool": (args) => … } }');
      if (own[path] === undefined) {
        throw new Refusal("not_granted", `tools: the test has none with the name ${path}`);
      }
      try {
        return written((await own[path](JSON.parse(read(args)))) ?? null);
      } catch (error) {
        throw error instanceof ToolError ? new Refusal("tool_error", error.message, { tool_code: error.code, data: error.data }) : error;
      }
    },
  };

  function store() {
    const values = granted(kv, "kv", needs?.kv ?? !needs, "kv: new Map()");
    if (!stores.has(values)) {
      stores.set(values, new Store(values));
    }
    return stores.get(values);
  }

  function use(name, ...args) {
    try {
      const answer = functions[name](...args);
      return answer instanceof Promise ? answer.then((bytes) => [true, bytes], refused) : [true, answer];
    } catch (error) {
      return refused(error);
    }
  }

  function file(path, folder) {
    const steps = path.split("/").filter(Boolean);
    try {
      const all = granted(files, "files", needs?.files?.includes(steps[0]) ?? !needs, 'files: { "/folder/file": "…" }');
      const place = `/${steps.join("/")}`;
      const below = Object.keys(all).filter((name) => name.startsWith(`${place}/`));
      if (folder ? below.length === 0 : all[place] === undefined) {
        throw new Refusal("not_found", "No such file or directory");
      }
      const names = new Set(below.map((name) => name.slice(place.length + 1).split("/")[0]));
      const content = folder ? [...names].map((name) => `\0${name}`).join("") : all[place];
      return [true, typeof content === "string" ? encoder.encode(content).buffer : content.slice().buffer];
    } catch (error) {
      return refused(error);
    }
  }

  async function fetch(input, init) {
    const request = new Request(input, init);
    try {
      granted(http, `fetch ${request.url}`, !needs || needs.http?.some((pattern) => covers(pattern, new URL(request.url))), "http: (request) => new Response(…)");
    } catch (error) {
      throw Object.defineProperty(new TypeError(error.message), "code", { value: error.failure.code });
    }
    request.signal.throwIfAborted();
    const response = await http(request);
    return Object.defineProperty(response, "url", { value: request.url });
  }

  return { use, file, fetch };
}

function refused(error) {
  if (error instanceof Refusal) {
    return [false, written(error.failure)];
  }
  throw error;
}
