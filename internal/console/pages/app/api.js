// What the console asks of the server, beyond what every page asks.

import { Failure, failureOf, send, ask as request } from "../server.js";
import { read } from "./json.js";

export { Failure, failureOf, send };

/** Returns the JSON that the server answers with, its numbers as they are written, or throws a Failure. @param {string} path @param {RequestInit} [options] */
export const ask = (path, options) => request(path, options, read);

/** @typedef {{type: string, loc: (string|number)[], msg: string}} Violation */

/** Asks for an operation of the admin door that only looks. @param {string} name @param {Record<string, string|number|boolean|undefined>} [args] @param {AbortSignal} [signal] */
export function look(name, args = {}, signal) {
  return ask(addressOf(name, args), { signal });
}

/** @param {string} name @param {Record<string, string|number|boolean|undefined>} args */
function addressOf(name, args) {
  const query = new URLSearchParams();
  for (const [k, v] of Object.entries(args)) if (v !== undefined && v !== "" && v !== false) query.set(k, String(v));
  const text = query.toString();
  return "admin/v1/" + name + (text ? "?" + text : "");
}

/** What change is told where no version is expected. */
export const any = Symbol("any version");

/** Asks for one that takes a file, if the version of what lies there is still the expected one. @param {string} name @param {Record<string, string|boolean|undefined>} args @param {ArrayBuffer} file @param {string|typeof any} expected @param {AbortSignal} signal */
export function give(name, args, file, expected, signal) {
  /** @type {Record<string, string>} */
  const headers = { "Content-Type": "application/octet-stream" };
  if (expected !== any) headers["If-Match"] = `"${expected}"`;
  return ask(addressOf(name, args), { method: "POST", headers, body: file, signal });
}

/** Asks for one that changes something, if its version is still the expected one. @param {string} name @param {object} args @param {string|number|typeof any|undefined} expected */
export async function change(name, args, expected) {
  if (expected === undefined || expected === "") throw new Failure(0, { detail: "The page does not know yet what it would change. Close this question and ask again." });
  /** @type {Record<string, string>} */
  const headers = { "Content-Type": "application/json" };
  if (expected !== any) headers["If-Match"] = `"${expected}"`;
  return ask("admin/v1/" + name, { method: "POST", headers, body: JSON.stringify(args) });
}

/** What doesn't fit in the arguments, place by place. @param {unknown} e @returns {Violation[]} */
export function violationsOf(e) {
  const detail = e instanceof Failure ? e.detail : undefined;
  return Array.isArray(detail) ? detail.filter((v) => v && Array.isArray(v.loc)) : [];
}

/** Says what is wrong, in words. @param {unknown} e */
export function sentence(e) {
  if (e instanceof TypeError) return "The server doesn't answer. Look whether it runs, then try again.";
  const violations = violationsOf(e);
  if (violations.length > 0) return violations.map((v) => placeOf(v.loc) + ": " + v.msg).join("; ");
  const said = e instanceof Error ? e.message : String(e);
  const wait = e instanceof Failure ? e.retryAfter : "";
  return wait ? `${said} (try again in ${wait} s)` : said;
}

/** Writes the place of a violation as people do: items[0].name. @param {(string|number)[]} loc */
export function placeOf(loc) {
  let place = "";
  for (const part of loc.slice(1)) place += typeof part === "number" ? `[${part}]` : place ? "." + part : part;
  return place || "the arguments";
}
