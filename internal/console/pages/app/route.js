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

/** Returns whether the page can be left now. One that must not be left by mistake prevents the event, asks, and then does what leaves it. @param {() => void} go */
export const mayLeave = (go) => dispatchEvent(new CustomEvent("leave", { cancelable: true, detail: go }));

/** Leaves the page, once it may be left. @param {() => void} go */
export const leave = (go) => void (mayLeave(go) && go());

export function useRoute() {
  const [route, set] = useState(() => read(location.hash));
  useEffect(() => {
    const changed = (/** @type {HashChangeEvent} */ e) => {
      const { hash } = new URL(e.newURL);
      if (mayLeave(() => (location.hash = hash))) set(read(location.hash));
      else history.replaceState(null, "", e.oldURL);
    };
    addEventListener("hashchange", changed);
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
