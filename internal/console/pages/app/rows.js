// The list of tools as it is shown and searched.

import { plain } from "./text.js";

/**
 * @typedef {{path: string, title: string, state: string, why: string, tool: any, told: any, words: string}} Row
 * tool is what /tools has of it, and told what the admin door has.
 */

const searched = 600; // characters of a description

/** Puts together what callers and administrators are told. @param {any[]} tools @param {any[]|null} told @returns {Row[]} */
export function rowsOf(tools, told) {
  const known = new Map(tools.map((t) => [t.path, t]));
  if (!told) return tools.map((t) => row(t.path, t, null));
  return told.map((a) => row(a.path, known.get(a.path) ?? null, a));
}

/** @param {string} path @param {any} tool @param {any} told @returns {Row} */
function row(path, tool, told) {
  const title = plain(tool?.title ?? "", 120);
  const first = String(tool?.description ?? "").slice(0, searched);
  const state = told?.state ?? "enabled";
  return { path, title: title || plain(firstLine(first), 160), state, why: whyOf(told), tool, told, words: `${path} ${title} ${first} ${state}`.toLowerCase() };
}

/** @param {string} text */
const firstLine = (text) => text.split("\n", 1)[0];

/** Says what decides that a tool is in its state, as toolsrv tools --all does. @param {any} told */
export function whyOf(told) {
  const why = told?.why;
  if (!why) return "";
  const reason = why.reason ? ": " + why.reason : "";
  switch (why.by) {
    case "configuration":
      return plain(`${why.key}${why.line ? ", line " + why.line : ""}${reason}`, 400);
    case "switch":
      return plain(`switched by ${why.who || "the program"}${reason}`, 400);
    case "grants":
      return plain("not granted: " + (why.missing ?? []).join(", "), 400);
  }
  return plain(why.reason ?? "", 400);
}

/** Returns the rows that have all words of a filter. @param {Row[]} rows @param {string} filter */
export function matching(rows, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return words.length === 0 ? rows : rows.filter((r) => words.every((w) => r.words.includes(w)));
}

/** Lists what a newer list has that an older one doesn't. @param {Row[]} shown @param {Row[]} now */
export function difference(shown, now) {
  const before = new Set(shown.map((r) => r.path));
  const after = new Set(now.map((r) => r.path));
  return { came: now.filter((r) => !before.has(r.path)).length, went: shown.filter((r) => !after.has(r.path)).length };
}
