// Which page of the console is shown: the part of the address after the #. It names a page and a tool, and nothing else: no link signs anybody in,
// calls a tool, or changes anything.

import { useEffect, useState } from "../html.js";

/** @typedef {{page: string, tool: string}} Route */

/** @param {string} hash @returns {Route} */
export function read(hash) {
  const [page, ...rest] = hash.replace(/^#\/?/, "").slice(0, 2000).split("/");
  if (page === "tool" && rest.length > 0 && rest.every((part) => /^[A-Za-z0-9_-]{1,64}$/.test(part))) return { page: "tools", tool: "/" + rest.join("/") };
  return { page: /^[a-z]{1,20}$/.test(page) ? page : "tools", tool: "" };
}

/** @param {string} path of a tool */
export const toTool = (path) => "#/tool" + path;

/** @param {string} page */
export const to = (page) => "#/" + page;

export function useRoute() {
  const [route, set] = useState(() => read(location.hash));
  useEffect(() => {
    // A page that must not be left by mistake prevents the event "leave", and asks.
    const changed = (/** @type {HashChangeEvent} */ e) => {
      if (dispatchEvent(new CustomEvent("leave", { cancelable: true, detail: new URL(e.newURL).hash }))) set(read(location.hash));
      else history.replaceState(null, "", e.oldURL);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
