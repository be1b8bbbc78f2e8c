// Hears when the list of tools changes: from the stream that agents listen to, too. The stream is open while somebody looks at the page, since a
// browser has few connections for all its windows.

import { send } from "./api.js";
import { eventsOf } from "./call.js";

// Milliseconds until the next attempt: after the end of a stream, and where there can be none, such as on a server without MCP.
const soon = 5_000;
const late = 60_000;

/** Calls changed after each change, and when the page is looked at again. @param {() => void} changed @returns {() => void} ends it */
export function listen(changed) {
  let stream = new AbortController();
  let ended = false;
  let timer = 0;
  const open = async () => {
    clearTimeout(timer);
    stream.abort();
    if (ended || document.visibilityState === "hidden") return;
    const own = (stream = new AbortController());
    let next = soon;
    try {
      if (!(await follow(own.signal, changed))) next = late;
    } catch {
      // The server has gone or was restarted: what comes is asked for with the next attempt.
    }
    if (own.signal.aborted || ended) return;
    timer = window.setTimeout(() => (changed(), open()), next);
  };
  const looked = () => {
    if (document.visibilityState !== "hidden") changed();
    open();
  };
  document.addEventListener("visibilitychange", looked);
  open();
  return () => {
    ended = true;
    clearTimeout(timer);
    stream.abort();
    document.removeEventListener("visibilitychange", looked);
  };
}

/** Returns whether there was a stream. @param {AbortSignal} signal @param {() => void} changed */
async function follow(signal, changed) {
  const method = "subscriptions/listen";
  const version = "2026-07-28";
  const answer = await send("mcp", {
    method: "POST",
    signal,
    headers: { Accept: "application/json, text/event-stream", "Content-Type": "application/json", "Mcp-Protocol-Version": version, "Mcp-Method": method },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: {
        notifications: { toolsListChanged: true },
        _meta: { "io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {} },
      },
    }),
  });
  if (!answer.ok || !answer.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    await answer.body?.cancel();
    return false;
  }
  for await (const text of eventsOf(answer)) {
    if (JSON.parse(text).method === "notifications/tools/list_changed") changed();
  }
  return true;
}
