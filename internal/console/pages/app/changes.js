// Hears when the list of tools changes. The stream is open while somebody looks at the page, since a browser has few connections for all its
// windows.

import { send } from "./api.js";
import { eventsOf } from "./call.js";

// Milliseconds until the next attempt: after the end of a stream, and where there can be none, such as where they are switched off.
const soon = 5_000;
const late = 60_000;
const together = 100; // milliseconds in which changes count as one

/** Calls changed after changes, and when the page is looked at again. @param {() => Promise<void>} changed @returns {() => void} ends it */
export function listen(changed) {
  let stream = new AbortController();
  let ended = false;
  let timer = 0;
  // Only one call runs at a time, and a pause of the same length follows it. Tools can change faster than a list of thousands is read: if each change
  // cancelled the list that is being read, none would ever be shown, and the server would do nothing but send lists.
  let asking = false;
  let again = false;
  const tell = async () => {
    again = true;
    if (asking) return;
    asking = true;
    while (again && !ended) {
      again = false;
      const began = performance.now();
      await changed();
      await new Promise((go) => setTimeout(go, performance.now() - began));
    }
    asking = false;
  };
  const open = async () => {
    clearTimeout(timer);
    stream.abort();
    if (ended || document.visibilityState === "hidden") return;
    const own = (stream = new AbortController());
    let next = soon;
    try {
      if (!(await follow(own.signal, tell))) next = late;
    } catch {
      // The server has gone or was restarted: what comes is asked for with the next attempt.
    }
    if (own.signal.aborted || ended) return;
    timer = window.setTimeout(() => (tell(), open()), next);
  };
  const looked = () => {
    if (document.visibilityState !== "hidden") tell();
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
  const answer = await send("events", { signal, headers: { Accept: "text/event-stream" } });
  if (!answer.ok || !answer.headers.get("Content-Type")?.startsWith("text/event-stream")) {
    await answer.body?.cancel();
    return false;
  }
  // Of many tools that change at once the list is asked for once.
  let timer = 0;
  const soon = () => {
    clearTimeout(timer);
    timer = window.setTimeout(changed, together);
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  soon(); // what has changed between the list and the stream
  for await (const text of eventsOf(answer)) {
    const { kind } = JSON.parse(text);
    if (kind === undefined || kind === "reset" || kind.startsWith("tool.")) soon();
  }
  return true;
}
