// A schema as a table, with the schema itself below.

import { html, useMemo, useState } from "../html.js";
import { inSentence, rowsOf } from "./schema.js";
import { indented, write } from "./json.js";
import { plain } from "./text.js";
import { TextView } from "./textview.js";

const few = 100;
const most = 2000;

/** @param {{schema: any, name: string, empty: string}} p */
export function SchemaTable({ schema, name, empty }) {
  const [all, setAll] = useState(false);
  const { rows, more } = useMemo(() => rowsOf(schema, all ? most : few), [schema, all]);
  if (schema === null || schema === undefined) return html`<p class="empty">${empty}</p>`;
  return html`
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
    ${more && !all ? html`<button type="button" onClick=${() => setAll(true)}>Show all rows</button>` : null}
    ${more && all ? html`<p class="note">The table ends here: the schema below has the rest.</p>` : null}
    <${Source} schema=${schema} name=${name} />
  `;
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
