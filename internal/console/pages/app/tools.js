// The list of tools beside the one that is looked at.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { List } from "./list.js";
import { toTool } from "./route.js";
import { difference, matching } from "./rows.js";
import { ToolPage, stateName } from "./tool.js";
import { count, plain } from "./text.js";

/** @typedef {import("./rows.js").Row} Row */

/** @param {{rows: Row[], session: import("./session.js").Session, chosen: string, changed: () => void}} p */
export function ToolsPage({ rows, session, chosen, changed }) {
  // What is shown keeps its place when the list changes: rows that went say so, and new ones come when they are asked for, or with the next filter.
  const [shown, setShown] = useState(rows);
  const [filter, setFilter] = useState("");
  const input = useRef(/** @type {HTMLInputElement|null} */ (null));
  const now = useMemo(() => new Map(rows.map((r) => [r.path, r])), [rows]);
  const found = useMemo(() => matching(shown, filter), [shown, filter]);
  const { came, went } = useMemo(() => difference(shown, rows), [shown, rows]);
  const current = (/** @type {Row} */ r) => now.get(r.path) ?? { ...r, state: "gone", why: "", tool: null };

  useEffect(() => {
    if (shown.length === 0 && rows.length > 0) setShown(rows);
  }, [rows]);
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ e) => {
      const typing = e.target instanceof HTMLElement && e.target.closest("input, textarea, select, dialog");
      if (e.key === "/" && !typing && !e.ctrlKey && !e.metaKey && !e.altKey) {
        e.preventDefault();
        input.current?.focus();
      }
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);

  const type = (/** @type {any} */ e) => {
    setFilter(e.currentTarget.value);
    if (shown !== rows) setShown(rows);
  };
  const press = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "ArrowDown" || e.key === "Enter") {
      e.preventDefault();
      document.getElementById("tool-list")?.focus();
    }
  };
  const open = (/** @type {Row} */ r) => {
    location.hash = toTool(r.path);
  };
  const known = now.get(chosen) ?? shown.find((r) => r.path === chosen);
  const row = !chosen ? null : known ? current(known) : { path: chosen, title: "", state: "unknown", why: "", tool: null, told: null, words: "" };
  return html`<div class=${chosen ? "split has-chosen" : "split"}>
    <section class="left" aria-labelledby="tools-heading">
      ${row ? html`<h2 id="tools-heading">Tools</h2>` : html`<h1 id="tools-heading">Tools</h1>`}
      <label class="away" for="tool-filter">Filter tools</label>
      <input id="tool-filter" ref=${input} type="search" placeholder="Filter by name, title, words   /" autocomplete="off" spellcheck=${false} value=${filter} onInput=${type} onKeyDown=${press} />
      <p class="note status" role="status">
        ${filter ? `${count(found.length, "tool")} of ${shown.length.toLocaleString("en")}` : count(found.length, "tool")}
        ${came > 0 || went > 0 ? html` <button type="button" class="link" onClick=${() => setShown(rows)}>${[came > 0 ? came + " new" : "", went > 0 ? went + " gone" : ""].filter(Boolean).join(", ")}: update</button>` : null}
      </p>
      ${found.length > 0
        ? html`<${List} id="tool-list" label="Tools" items=${found} keyOf=${(/** @type {Row} */ r) => r.path} chosen=${chosen} onChoose=${open} row=${(/** @type {Row} */ r) => html`<${Item} row=${current(r)} />`} />`
        : html`<p class="empty">${filter ? "No tool has all these words. Delete some of them." : "There is no tool that you may call. Put a tool into the server's directory, or ask for a token that may call one."}</p>`}
    </section>
    <div class="right">
      ${row
        ? html`<a class="back" href="#/tools">All tools</a><${ToolPage} key=${row.path} row=${row} session=${session} changed=${changed} />`
        : html`<div class="empty middle"><p>Choose a tool to see and to call it.</p><p class="note"><kbd>/</kbd> goes to the filter, <kbd>↓</kbd> to the list, <kbd>Enter</kbd> opens a tool.</p></div>`}
    </div>
  </div>`;
}

/** @param {{row: Row}} p */
function Item({ row }) {
  return html`<span class="name"><bdi>${plain(row.path, 140)}</bdi>${row.state === "enabled" ? null : html` <span class=${"state " + row.state}>${stateName(row.state)}</span>`}</span>
    <span class="title"><bdi>${row.why && row.state !== "enabled" ? row.why : row.title}</bdi></span>`;
}
