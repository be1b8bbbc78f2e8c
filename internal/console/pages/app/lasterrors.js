// The last calls of a tool that failed, as the log has them. A call writes several lines: its request, and before that what the tool said, such
// as a traceback.

import { html, useRef } from "../html.js";
import { useStill } from "./still.js";
import { count, moment, plain } from "./text.js";

const few = 10;

/** @typedef {{key: string, time: string, code: string, message: string, who: string, request: string, said: string[]}} Entry */

/** Returns an entry for each call that failed, the newest first. @param {any[]} lines of the log, the oldest first @param {string} path of the tool @returns {Entry[]} */
export function entriesOf(lines, path) {
  /** @type {Map<string, {request: any, said: any[]}>} */
  const calls = new Map();
  for (const line of lines) {
    const a = line.attributes ?? {};
    if ((a.tool ?? a.path) !== path) continue;
    const key = a.request_id ?? String(line.number);
    const call = calls.get(key) ?? { request: undefined, said: [] };
    if (line.message === "request" && !a.source) call.request = line; // what a tool says has a source
    else call.said.push(line);
    calls.delete(key);
    calls.set(key, call); // where its last line is
  }
  const entries = [];
  for (const [key, { request, said }] of calls) {
    const bad = said.filter((line) => line.level === "ERROR" || line.level === "WARN");
    if (request ? !failed(request) : bad.length === 0) continue; // without one it runs, or was called by another tool
    const a = request?.attributes ?? {};
    const last = bad.at(-1) ?? said.at(-1);
    entries.push({
      key,
      time: (request ?? last).time,
      code: a.code ?? (request ? "status " + a.status : last.level),
      message: a.detail || a.error || last?.message || meaning(a.code),
      who: a.principal ?? "",
      request: a.request_id ?? said[0]?.attributes?.request_id ?? "",
      said: said.map((line) => line.message),
    });
  }
  return entries.reverse().slice(0, few);
}

/** @param {any} line of a request */
const failed = (line) => Number(line.attributes.status) >= 400 || Boolean(line.attributes.code);

/** What happened, where nothing tells more. @param {string|undefined} code */
function meaning(code) {
  switch (code) {
    case "invalid_arguments":
      return "The arguments did not fit the tool's schema.";
    case "cancelled":
      return "The caller did not wait for the answer.";
    case "overloaded":
      return "Too many calls were running.";
    case "rate_limited":
      return "The caller made too many calls.";
  }
  return "Nothing was said about it.";
}

/** @param {{entries: Entry[]}} p */
export function LastErrors({ entries }) {
  const { still, handlers } = useStill();
  const shown = useRef(entries);
  if (!still) shown.current = entries;
  const waiting = entries.findIndex((e) => e.key === shown.current[0]?.key);
  return html`<div ...${handlers}>
    <h3>Last errors <span class="note" role="status">${waiting > 0 ? `${waiting} new: they show once pointer and focus are elsewhere` : ""}</span></h3>
    ${shown.current.length === 0
      ? html`<p class="empty">None among the last lines of the log.</p>`
      : html`<ul class="errors">${shown.current.map((e) => html`<li key=${e.key}><${One} entry=${e} /></li>`)}</ul>`}
  </div>`;
}

const saidLines = 100; // as many as a call may write

/** @param {{entry: Entry}} p */
function One({ entry: e }) {
  const said = e.said.slice(0, saidLines);
  return html`<time>${moment(e.time)}</time> <code>${plain(e.code, 40)}</code> <bdi>${plain(e.message, 300)}</bdi>${e.who ? html` by <bdi>${plain(e.who, 60)}</bdi>` : null}
    ${e.request ? html` <code>${plain(e.request, 64)}</code>` : null}
    ${said.length > 0 ? html`<details><summary>${count(e.said.length, "line")} of the tool</summary><pre>${said.map((line) => plain(line, 4096)).join("\n")}</pre></details>` : null}`;
}
