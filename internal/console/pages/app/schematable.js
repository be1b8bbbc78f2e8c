// A schema as a table, with the schema itself below.

import { html, useMemo, useState } from "../html.js";
import { Field } from "./field.js";
import { inSentence, rowsOf } from "./schema.js";
import { indented, write } from "./json.js";
import { count, plain } from "./text.js";
import { TextView } from "./textview.js";

const noFilter = 20; // rows that need none
const few = 100;
const most = 2000;

/** @param {{schema: any, name: string, empty: string}} p */
export function SchemaTable({ schema, name, empty }) {
  const [all, setAll] = useState(false);
  const [filter, setFilter] = useState("");
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const whole = all || words.length > 0;
  const { rows: known, more } = useMemo(() => rowsOf(schema, whole ? most : few), [schema, whole]);
  const { rows, found } = useMemo(() => (words.length > 0 ? matching(known, words) : { rows: known, found: known.length }), [known, filter]);
  if (schema === null || schema === undefined) return html`<p class="empty">${empty}</p>`;
  return html`
    ${known.length > noFilter
      ? html`<${Field} label=${"Filter the " + name} type="search" value=${filter} onInput=${setFilter} />
          <p class="note" role="status">${words.length === 0 ? "" : found > 0 ? count(found, "row") + ", with those around them" : "No row has all these words. Delete some of them."}</p>`
      : null}
    <div class="scroll" tabindex="0" role="region" aria-label=${"Table of the " + name}>
      <table class="schema">
        <thead>
          <tr><th scope="col">Name</th><th scope="col">Type</th><th scope="col">What it is</th></tr>
        </thead>
        <tbody>
          ${rows.map(
            (row) => html`<tr>
              <th scope="row" class=${"depth" + Math.min(row.depth, 8)}>
                <bdi>${plain(row.name, 120)}</bdi>${row.required ? html` <span class="required">required</span>` : null}
              </th>
              <td>${row.type}</td>
              <td>
                ${row.description ? html`<bdi class="words">${row.description}</bdi>` : null}
                ${row.bounds.length > 0 ? html`<span class="bounds">${inSentence(row.bounds)}</span>` : null}
                ${row.fallback !== undefined ? html`<span class="bounds">Otherwise <code>${row.fallback}</code>.</span>` : null}
              </td>
            </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${more && !whole ? html`<button type="button" onClick=${() => setAll(true)}>Show all rows</button>` : null}
    ${more && whole ? html`<p class="note">The table ends here: the schema below has the rest.</p>` : null}
    <${Source} schema=${schema} name=${name} />
  `;
}

/** Returns the rows that have all words, with those that they are within, and how many they are. @param {import("./schema.js").Row[]} all @param {string[]} words */
function matching(all, words) {
  /** @type {import("./schema.js").Row[]} */
  const rows = [];
  /** @type {import("./schema.js").Row[]} */
  const within = []; // of the row that is looked at, the outermost first
  const shown = new Set();
  let found = 0;
  for (const row of all) {
    while (within.length > 0 && within[within.length - 1].depth >= row.depth) within.pop();
    within.push(row);
    const text = [row.name, row.type, row.description, ...row.bounds].join(" ").toLowerCase();
    if (!words.every((word) => text.includes(word))) continue;
    found++;
    for (const one of within) {
      if (!shown.has(one)) rows.push(one);
      shown.add(one);
    }
  }
  return { rows, found };
}

/** The schema itself, which is written out only for those who open it. @param {{schema: any, name: string}} p */
function Source({ schema, name }) {
  const [open, setOpen] = useState(false);
  const text = useMemo(() => (open ? indented(write(schema, 0)) : ""), [schema, open]);
  return html`<details onToggle=${(/** @type {any} */ e) => setOpen(e.currentTarget.open)}>
    <summary>JSON Schema</summary>
    ${open ? html`<${TextView} text=${text} label=${"JSON Schema of the " + name} />` : null}
  </details>`;
}
