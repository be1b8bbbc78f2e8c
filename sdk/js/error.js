// The errors of tools, and what clients see of them.

const { stringify } = JSON; // before a script may change it

// maxMessage is how much of a message is sent, in characters: quoted as JSON it still fits into what the host takes.
const maxMessage = 8 << 10;

// maxFailure is how large the JSON of an error may be, in UTF-8. The host takes 64 KiB.
const maxFailure = 64 << 10;

export class ToolError extends Error {
  constructor(message, options = {}) {
    if (typeof message !== "string" || message === "") {
      throw new TypeError("new ToolError(message): the message is a sentence for the client: pass one");
    }
    if (options === null || typeof options !== "object") {
      throw new TypeError("new ToolError(message, options): the options are an object, such as { code: \"not_found\", status: 404 }");
    }
    const { code, status, data, cause } = options;
    super(message, cause === undefined ? undefined : { cause });
    if (code !== undefined && (typeof code !== "string" || code === "" || code.length > 128)) {
      throw new TypeError(`the code of a ToolError is a word of at most 128 characters, such as "not_found"; this is ${quoted(code)}`);
    }
    if (status !== undefined && (!Number.isInteger(status) || status < 400 || status > 599)) {
      throw new RangeError(`the status of a ToolError is a whole number from 400 to 599; this is ${quoted(status)}`);
    }
    this.code = code;
    this.status = status;
    this.data = data;
  }

  get name() {
    return "ToolError";
  }
}

// failureOf is the key under which errors that are no Failure, such as those of fetch, have code and message of one.
const failureOf = Symbol.for("toolsrv.failure");

export class Failure extends Error {
  constructor(message, { code, toolCode, data } = {}) {
    super(message);
    this.code = code;
    this.toolCode = toolCode;
    this.data = data;
  }

  get name() {
    return "Failure";
  }

  get [failureOf]() {
    return this;
  }
}

// A Mistake is an error in what an author wrote, with its place: that of the stack of made, or one in a file.
export class Mistake extends TypeError {
  constructor(message, { made, place } = {}) {
    super(message);
    this.made = made;
    this.place = place;
  }
}

// quoted returns a value as a message shows it.
export function quoted(value) {
  try {
    const text = stringify(value) ?? String(value);
    return text.length > 80 ? text.slice(0, 80) + "…" : text;
  } catch {
    return typeof value;
  }
}

// guess returns the known name that was probably meant.
export function guess(name, known) {
  const same = { inputSchema: "parameters", input: "parameters", schema: "parameters", args: "parameters", outputSchema: "result", output: "result", returns: "result", execute: "run", handler: "run", call: "run", desc: "description" };
  const near = known.find((k) => k.toLowerCase() === name.toLowerCase()) ?? (Object.hasOwn(same, name) ? same[name] : known.find((k) => distance(k, name) <= 2));
  return near !== undefined && known.includes(near) ? `: did you mean ${near}?` : `: it can have ${known.join(", ")}`;
}

// distance is the number of letters to insert, remove or replace to get from one word to the other.
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next[j] = Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
    }
    row = next;
  }
  return row[b.length];
}

// sentence returns what a client sees of any value that was thrown: type and message.
export function sentence(thrown) {
  try {
    if (thrown instanceof Error) {
      const { name, message } = thrown;
      return message === "" ? `${name}` : `${name}: ${message}`;
    }
    return `the tool threw ${quoted(thrown)}`;
  } catch {
    return "the tool threw something that can't be shown";
  }
}

// failure returns the JSON that the host takes for a value that was thrown: an error of the tool's own as it is, a failure of what it has
// used with that one's code, any other as the tool's fault.
export function failure(thrown) {
  if (!(thrown instanceof ToolError)) {
    const used = thrown instanceof Error ? thrown[failureOf] : undefined;
    if (used === undefined) {
      return stringify({ message: clipped(sentence(thrown)), status: 500 });
    }
    const code = typeof used.code === "string" && /^[\x21-\x7e]{1,128}$/.test(used.code) ? used.code : "unavailable";
    return stringify({ message: clipped(used.message), code, status: 502 });
  }
  const { message, code, status, data } = thrown;
  const plain = { message: clipped(message), code, status };
  let text;
  try {
    text = stringify({ ...plain, data });
  } catch (error) {
    return stringify({ message: `the data of an error can't be written as JSON: ${clipped(sentence(error))}`, status: 500 });
  }
  if (size(text) > maxFailure) {
    return stringify({ message: "the data of an error is larger than 64 KiB", status: 500 });
  }
  return text;
}

// clipped returns the beginning of a text, where a character ends.
function clipped(text) {
  text = String(text).toWellFormed();
  if (text === "") {
    return "the tool failed";
  }
  return text.length > maxMessage ? text.slice(0, maxMessage).replace(/[\ud800-\udbff]$/, "") + "..." : text;
}

// size returns how many bytes a text has in UTF-8.
function size(text) {
  let bytes = text.length;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    bytes += c < 0x80 ? 0 : c < 0x800 || (c >= 0xd800 && c < 0xe000) ? 1 : 2;
  }
  return bytes;
}
