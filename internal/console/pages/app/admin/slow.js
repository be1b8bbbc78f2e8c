// The slowest calls of the last hour, and where each has spent its time.

import { html } from "../../html.js";
import { look } from "../api.js";
import { duration, moment } from "../text.js";
import { Table, useAnswer } from "./table.js";

export function Slow() {
  const { data, problem, again } = useAnswer(async () => (await look("slow", { limit: 200 })).calls);
  return html`<article class="page">
    <h1>Slow</h1>
    <p>The slowest calls of the last hour, the slowest first, and where each spent its time.</p>
    <${Table}
      label="Slowest calls"
      one="call"
      items=${data}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ c) => c.request_id + c.tool + c.began}
      empty="No tool was called in the last hour."
      columns=${[
        { title: "Tool", cell: (/** @type {any} */ c) => c.tool + (c.version ? " " + c.version : "") },
        { title: "Took", cell: (/** @type {any} */ c) => duration(c.seconds) },
        { title: "Of that", kind: "many", cell: (/** @type {any} */ c) => c.phases.map((/** @type {any} */ p) => `${p.name} ${duration(p.seconds)}`).join(", ") },
        { title: "Used", cell: (/** @type {any} */ c) => c.uses.map((/** @type {any} */ u) => `${u.capability} ${u.count} times, ${duration(u.seconds)}`).join("; ") },
        { title: "Failed", cell: (/** @type {any} */ c) => c.code ?? "" },
        { title: "Caller", cell: (/** @type {any} */ c) => c.principal ?? "" },
        { title: "Request", cell: (/** @type {any} */ c) => c.request_id },
        { title: "Began", kind: "time", cell: (/** @type {any} */ c) => moment(c.began) },
      ]}
    />
  </article>`;
}
