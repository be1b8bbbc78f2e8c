// A list of an administrator's page: with a filter, what it has where there is nothing, and no more rows than a browser shows at once.

import { html, useEffect, useId, useMemo, useState } from "../../html.js";
import { sentence } from "../api.js";
import { count, plain } from "../text.js";

const most = 300;

/**
 * @template T
 * @typedef {{title: string, cell: (t: T) => any, text?: (t: T) => string, kind?: "time"|"many"}} Column text is what the filter searches, where the cell is not text; kind says how wide it is
 */

/**
 * @template T
 * @param {{items: T[]|undefined, columns: Column<T>[], keyOf: (t: T) => string, label: string, one: string, empty: string, problem?: unknown, again?: () => void, above?: (found: T[]) => any}} p
 * above makes what stands above the rows that the filter leaves
 */
export function Table({ items, columns, keyOf, label, one, empty, problem, again, above }) {
  const [filter, setFilter] = useState("");
  const id = useId();
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const texts = useMemo(() => (items ?? []).map((t) => columns.map((c) => (c.text ? c.text(t) : String(c.cell(t) ?? ""))).join(" ").toLowerCase()), [items]);
  const found = useMemo(() => (items ?? []).filter((_, i) => words.every((w) => texts[i].includes(w))), [items, filter]);
  const look = again ? html`<button type="button" onClick=${again}>Look again</button>` : null;
  if (problem) return html`<div class="row">${look}</div><p class="wrong" role="alert">${plain(sentence(problem), 600)}</p>`;
  if (!items) return html`<p class="empty">Asking the server…</p>`;
  if (items.length === 0) return html`<div class="row">${look}</div><p class="empty">${empty}</p>`;
  return html`
    <div class="row">
      ${look}
      <label for=${id}>Filter</label>
      <input id=${id} type="search" autocomplete="off" spellcheck=${false} value=${filter} onInput=${(/** @type {any} */ e) => setFilter(e.currentTarget.value)} />
      <span class="note" role="status">${filter ? `${count(found.length, one)} of ${items.length.toLocaleString("en")}` : count(items.length, one)}</span>
    </div>
    ${found.length === 0 ? html`<p class="empty">None has all these words. Delete some of them.</p>` : above?.(found)}
    <div class="scroll" tabindex="0" role="region" aria-label=${label}>
      <table class="stacks" role="table">
        <thead role="rowgroup"><tr role="row">${columns.map((c) => html`<th scope="col" role="columnheader">${c.title}</th>`)}</tr></thead>
        <tbody role="rowgroup">
          ${found.slice(0, most).map((t) => html`<tr key=${keyOf(t)} role="row">${columns.map((c) => html`<td class=${c.kind} role="cell" data-title=${c.title}>${cellOf(c.cell(t))}</td>`)}</tr>`)}
        </tbody>
      </table>
    </div>
    ${found.length > most ? html`<p class="note">${count(found.length - most, "other")} match, too: a word in the filter finds them.</p>` : null}
  `;
}

const short = 400; // characters of a cell
const longest = 20_000;

// What is a text may be hostile; what is not was made here.
/** @param {any} cell */
const cellOf = (cell) => (cell === "" ? null : typeof cell !== "string" ? cell : cell.length > short ? html`<${Long} text=${cell} />` : html`<bdi>${plain(cell, short)}</bdi>`);

/** A long text, of which the rest can be opened. @param {{text: string}} p */
function Long({ text }) {
  const [all, setAll] = useState(false);
  return html`<bdi>${plain(text, all ? longest : short)}</bdi> <button type="button" class="link" aria-expanded=${all ? "true" : "false"} onClick=${() => setAll(!all)}>${all ? "Show less" : "Show all of it"}</button>`;
}

/** Asks when the page is shown, and again. @template T @param {() => Promise<T>} ask @returns {{data: T|undefined, problem: unknown, again: () => Promise<void>}} */
export function useAnswer(ask) {
  const [data, setData] = useState(/** @type {T|undefined} */ (undefined));
  const [problem, setProblem] = useState(/** @type {unknown} */ (undefined));
  const again = async () => {
    try {
      setData(await ask());
      setProblem(undefined);
    } catch (e) {
      setProblem(e);
    }
  };
  useEffect(() => void again(), []);
  return { data, problem, again };
}
