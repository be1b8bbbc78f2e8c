// How the package uses what a tool was granted: functions of the host by their names, with bytes and numbers, which answer with bytes.
import * as host from "#host";
import { Failure } from "./error.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export const text = (bytes) => decoder.decode(bytes);

// bufferOf returns what the host takes of a value: texts as UTF-8.
export function bufferOf(value, what) {
  if (typeof value === "string") {
    return encoder.encode(value).buffer;
  }
  if (value instanceof ArrayBuffer) {
    return value;
  }
  if (ArrayBuffer.isView(value)) {
    return value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength);
  }
  throw new TypeError(`${what} is a text, an ArrayBuffer or a Uint8Array: JSON.stringify makes a text of anything else`);
}

// textOf returns a value that has to be a text.
export function textOf(value, what) {
  if (typeof value !== "string") {
    throw new TypeError(`${what} is a text`);
  }
  return value.toWellFormed();
}

// use calls a function of the host, and returns its answer. It throws a Failure where the host says no.
export function use(...what) {
  return answered(host.use(...what));
}

// later does the same in a promise: in tests, what stands in for the host may take its time.
export async function later(...what) {
  return answered(await host.use(...what));
}

export function answered([worked, answer]) {
  if (!worked) {
    const { message, tool_code: toolCode, ...rest } = JSON.parse(text(answer));
    throw new Failure(message, { toolCode, ...rest });
  }
  return answer;
}
