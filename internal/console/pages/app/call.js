// One call of a tool. It goes over MCP, since that tells of the tool's progress; where MCP does not take the message, over REST. Either door
// calls the tool in the same way, with the same answers.

import { Failure, failureOf, send } from "./api.js";
import { read, write } from "./json.js";

const version = "2026-07-28";
const errorKey = "io.github.toolsrv/error";

/**
 * @typedef {{kind: "image"|"audio"|"file", type: string, data: string, name: string}} File in base64
 * @typedef {{text: string, json: boolean, files: File[], requestId: string}} Result
 * @typedef {{done: number, total: number, message: string}} Progress
 */

/**
 * Calls a tool. It throws a Failure, or an AbortError.
 * @param {{path: string, operation_id: string}} tool
 * @param {string} args a JSON object
 * @param {{mcp: boolean, signal: AbortSignal, onProgress: (p: Progress) => void}} o mcp is whether the server speaks it
 * @returns {Promise<Result>}
 */
export async function call(tool, args, o) {
  if (!o.mcp) return callREST(tool, args, o.signal);
  const answer = await send("mcp", {
    method: "POST",
    signal: o.signal,
    headers: {
      Accept: "application/json, text/event-stream",
      "Content-Type": "application/json",
      "Mcp-Protocol-Version": version,
      "Mcp-Method": "tools/call",
      "Mcp-Name": tool.operation_id,
    },
    body: messageOf(tool, args, `,"progressToken":1`),
  });
  const requestId = answer.headers.get("X-Request-Id") ?? "";
  let message;
  if (answer.headers.get("Content-Type")?.startsWith("text/event-stream")) message = await lastOf(answer, o.onProgress);
  else message = await answer.text().then(read).catch(() => null);
  const result = message?.result;
  if (result && !result.isError) return resultOf(result, requestId);
  if (result) {
    const e = result._meta?.[errorKey];
    throw new Failure(0, e ?? { detail: result.content?.[0]?.text }, { requestId, retryAfter: e?.retry_after === undefined ? "" : String(e.retry_after) });
  }
  // -32602, -32601 and -32020 to -32022: MCP does not show this tool, or wants a header for one of its arguments. It has not run.
  const code = message?.error?.code;
  if (code === undefined ? answer.status === 404 : code !== -32603 && answer.status !== 408 && answer.status !== 413) return callREST(tool, args, o.signal);
  throw new Failure(answer.status, message?.error ? { detail: message.error.message, code: message.error.data?.code } : (message ?? { detail: "The answer was cut off" }), {
    requestId,
    retryAfter: answer.headers.get("Retry-After") ?? "",
  });
}

/** The message of a call over MCP, as its arguments were written. @param {{operation_id: string}} tool @param {string} args */
export function messageOf(tool, args, more = "") {
  const meta = `{"io.modelcontextprotocol/protocolVersion":"${version}","io.modelcontextprotocol/clientCapabilities":{}${more}}`;
  return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":${JSON.stringify(tool.operation_id)},"arguments":${args},"_meta":${meta}}}`;
}

/** @param {{path: string}} tool @param {string} args @param {AbortSignal} signal @returns {Promise<Result>} */
async function callREST(tool, args, signal) {
  const answer = await send(tool.path.slice(1), { method: "POST", signal, headers: { Accept: "application/json", "Content-Type": "application/json" }, body: args });
  if (!answer.ok) throw await failureOf(answer, read);
  return { text: await answer.text(), json: true, files: [], requestId: answer.headers.get("X-Request-Id") ?? "" };
}

/** @param {any} result @param {string} requestId @returns {Result} */
function resultOf(result, requestId) {
  const blocks = Array.isArray(result.content) ? result.content : [];
  /** @type {File[]} */
  const files = [];
  const texts = [];
  for (const b of blocks) {
    if (b.type === "text") texts.push(String(b.text));
    else if (b.type === "image" || b.type === "audio") files.push({ kind: b.type, type: String(b.mimeType), data: String(b.data), name: "" });
    else if (b.type === "resource" && b.resource) {
      const { mimeType, blob, text, uri } = b.resource;
      files.push({ kind: "file", type: String(mimeType ?? ""), data: blob ?? btoa(String.fromCharCode(...new TextEncoder().encode(String(text ?? "").slice(0, 50_000)))), name: String(uri ?? "") });
    }
  }
  // The text is the result as the tool wrote it; a string stands there without its quotes.
  const isString = typeof result.structuredContent === "string";
  return { text: texts.join("\n"), json: !isString && files.length === 0 && texts.length === 1, files, requestId };
}

/** Reads a stream of events until the response, which is its last one. @param {Response} answer @param {(p: Progress) => void} onProgress */
async function lastOf(answer, onProgress) {
  for await (const text of eventsOf(answer)) {
    const message = read(text);
    if (message.result !== undefined || message.error !== undefined) return message;
    if (message.method !== "notifications/progress") continue;
    const { progress, total, message: said } = message.params ?? {};
    onProgress({ done: Number(write(progress)) || 0, total: Number(write(total)) || 0, message: typeof said === "string" ? said : "" });
  }
  return null;
}

/** The data of each event of a stream. A result of megabytes comes in many pieces, which are put together once. @param {Response} answer */
export async function* eventsOf(answer) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (answer.body).pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  try {
    /** @type {string[]} */
    let line = [];
    /** @type {string[]} */
    let data = [];
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = value.split("\n");
      for (let i = 0; i < parts.length; i++) {
        line.push(parts[i]);
        if (i === parts.length - 1) break; // its end has not come yet
        const whole = line.join("").replace(/\r$/, "");
        line = [];
        if (whole.startsWith("data:")) data.push(whole.slice(whole[5] === " " ? 6 : 5));
        else if (whole === "" && data.length > 0) {
          yield data.join("\n");
          data = [];
        }
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
