// What callers reach outside of the sandboxes, themselves and through tools that call others.

import { html } from "../../html.js";
import { look } from "../api.js";
import { Table, useAnswer } from "./table.js";

export function Reach() {
  const { data, problem, again } = useAnswer(async () => (await look("reach")).ways);
  return html`<article class="page">
    <h1>Reach</h1>
    <p>What each caller reaches outside of the sandboxes by what was granted, with each tool and through the tools that it calls.</p>
    <${Table}
      label="Reach"
      one="way"
      items=${data}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ w) => [w.principal, w.tool, w.capability, w.entry, ...(w.through ?? [])].join(" ")}
      empty="Nobody reaches anything outside of the sandboxes: no tool of theirs was granted something. Grants stand in the configuration."
      columns=${[
        { title: "Caller", cell: (/** @type {any} */ w) => w.principal },
        { title: "Tool", cell: (/** @type {any} */ w) => w.tool },
        { title: "Capability", cell: (/** @type {any} */ w) => w.capability ?? "" },
        { title: "Reaches", cell: (/** @type {any} */ w) => w.entry + (w.detail ? ": " + w.detail : "") + (w.own ? " (the caller's own)" : "") },
        { title: "Through", cell: (/** @type {any} */ w) => (w.through ?? []).join(" → ") },
      ]}
    />
  </article>`;
}
