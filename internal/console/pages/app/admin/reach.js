// What callers reach outside of the sandboxes, themselves and through tools that call others: as a picture, and as a table.

import { html, useMemo, useRef, useState } from "../../html.js";
import { look } from "../api.js";
import { plain } from "../text.js";
import { Picture, partsOf } from "./reachpicture.js";
import { Table, useAnswer } from "./table.js";

/** @typedef {import("./reachpicture.js").Way} Way */

export function Reach() {
  const asked = useRef({ pattern: "", principal: "" });
  const { data, problem, again } = useAnswer(async () => /** @type {Way[]} */ ((await look("reach", asked.current)).ways));
  const [chosen, choose] = useState(/** @type {import("./reachpicture.js").Part|null} */ (null));
  const ways = useMemo(() => (data && chosen ? data.filter((w) => partsOf(w).some((p) => p.key === chosen.key)) : data), [data, chosen]);
  const ask = (/** @type {any} */ e) => {
    e.preventDefault();
    const fields = new FormData(e.currentTarget);
    asked.current = { pattern: String(fields.get("pattern")), principal: String(fields.get("principal")) };
    choose(null);
    again();
  };
  return html`<article class="page">
    <h1>Reach</h1>
    <p>What each caller can reach outside the sandboxes through grants, with each tool and through the tools that it calls. Choose a box to see its ways alone.</p>
    <form class="row" onSubmit=${ask}>
      <label for="reach-tools">Tools</label>
      <input id="reach-tools" name="pattern" autocomplete="off" spellcheck=${false} placeholder="all, or such as math/*" />
      <label for="reach-caller">Caller</label>
      <input id="reach-caller" name="principal" autocomplete="off" spellcheck=${false} placeholder="all" />
      <button>Ask</button>
    </form>
    <div class="row chosen" role="status">${chosen
      ? html`<span>Only ways of the ${plain(chosen.kind, 40)} <bdi><code>${plain(chosen.name, 200)}</code></bdi></span> <button type="button" onClick=${() => choose(null)}>Show all ways</button>`
      : html`<span class="note">All ways</span>`}</div>
    <${Table}
      label="Reach"
      one="way"
      items=${ways}
      problem=${problem}
      again=${again}
      above=${(/** @type {Way[]} */ found) => html`<${Picture} ways=${found} chosen=${chosen} choose=${choose} />`}
      keyOf=${(/** @type {Way} */ w) => [w.principal, w.tool, w.capability, w.entry, w.detail, ...(w.through ?? [])].join(" ")}
      empty=${chosen ? "There is no such way any more." : "Nobody reaches anything outside of the sandboxes: no tool of theirs was granted something. Grants stand in the configuration."}
      columns=${[
        { title: "Caller", cell: (/** @type {Way} */ w) => w.principal },
        { title: "Tool", cell: (/** @type {Way} */ w) => w.tool },
        { title: "Capability", cell: (/** @type {Way} */ w) => w.capability },
        { title: "Reaches", cell: (/** @type {Way} */ w) => w.entry + (w.detail ? ": " + w.detail : "") + (w.own ? " (the caller's own)" : "") },
        { title: "Through", cell: (/** @type {Way} */ w) => (w.through ?? []).join(" → ") },
      ]}
    />
  </article>`;
}
