// Values that outlive calls: bytes under names, in the space that the tool's namespace was granted. kv.d.ts says what each of these is.
import { bufferOf, text, textOf, use } from "./capability.js";

const page = 1000; // keys in a page of a list

class Entry {
  constructor(value, version, expires) {
    this.value = value;
    this.version = version;
    this.expires = expires;
  }

  text() {
    return text(this.value);
  }

  json() {
    return JSON.parse(this.text());
  }
}

const keyOf = (key) => textOf(key, "a key");

// versionOf returns what the host takes for the option expect: -1 is whatever there is, 0 is nothing.
function versionOf(expect) {
  if (expect === undefined) {
    return -1n;
  }
  if (typeof expect !== "bigint" && !(Number.isSafeInteger(expect) && expect >= 0)) {
    throw new TypeError("expect is the version of an entry, or 0 where there is to be none");
  }
  return BigInt(expect);
}

export async function get(key) {
  const answer = use("kv.get", keyOf(key));
  if (answer.byteLength === 0) {
    return undefined;
  }
  const view = new DataView(answer);
  const expires = Number(view.getBigUint64(8, true));
  return new Entry(new Uint8Array(answer, 16), view.getBigUint64(0, true), expires === 0 ? undefined : new Date(expires));
}

export async function set(key, value, { ttl = 0, expect } = {}) {
  if (!(ttl >= 0 && ttl <= Number.MAX_SAFE_INTEGER)) {
    throw new RangeError("ttl is how many milliseconds the value is kept; 0 keeps it");
  }
  const kept = BigInt(Math.ceil(ttl));
  return new DataView(use("kv.set", keyOf(key), bufferOf(value, "a value"), kept, versionOf(expect))).getBigUint64(0, true);
}

async function remove(key, { expect } = {}) {
  return new Uint8Array(use("kv.delete", keyOf(key), undefined, versionOf(expect)))[0] === 1;
}

export { remove as delete };

export async function* list(prefix = "", { after = "", limit = Infinity } = {}) {
  for (let more = true; more && limit > 0; ) {
    const answer = use("kv.list", textOf(prefix, "the prefix"), textOf(after, "after"), Math.min(limit, page));
    const view = new DataView(answer);
    more = answer.byteLength > 1 && view.getUint8(0) === 1;
    for (let at = 1; at < answer.byteLength; ) {
      const size = view.getUint32(at, true);
      after = text(new Uint8Array(answer, at + 4, size));
      at += 4 + size;
      limit--;
      yield after;
    }
  }
}
