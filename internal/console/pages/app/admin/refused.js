// Files that can't be served, and tools that were not granted what they need.

import { html } from "../../html.js";
import { look } from "../api.js";
import { moment } from "../text.js";
import { Table, useAnswer } from "./table.js";

export function Refused() {
  const { data, problem, again } = useAnswer(() => look("refused"));
  return html`<article class="page">
    <h1>Refused</h1>
    <p>Files that can't be served, and tools that were not granted what they need. Nothing else suffers from them.</p>
    <${Table}
      label="Refused files and tools"
      one="entry"
      items=${data?.refused}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ r) => r.kind + r.what}
      empty="Nothing is refused: every file is served, and every tool has what it needs."
      columns=${[
        { title: "What", cell: (/** @type {any} */ r) => r.what },
        { title: "Kind", cell: (/** @type {any} */ r) => r.kind },
        { title: "Reason", kind: "many", cell: reasonOf },
        { title: "Since", kind: "time", cell: (/** @type {any} */ r) => moment(r.since) },
      ]}
    />
  </article>`;
}

/** @param {any} r */
const reasonOf = (r) => r.reason + (r.older ? " (an older version is served)" : "") + (r.waits ? " (it waits for a path that another file has)" : "");
