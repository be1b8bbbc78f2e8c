// Who changed what.

import { html, useState } from "../../html.js";
import { look, sentence } from "../api.js";
import { write } from "../json.js";
import { moment, plain } from "../text.js";
import { Table, useAnswer } from "./table.js";

const last = 1000;

export function Audit() {
  const { data, problem, again } = useAnswer(async () => (await look("audit", { last })).entries.reverse());
  const [verified, setVerified] = useState("");
  const verify = async () => {
    try {
      const { ok, problem: why, first, last: end } = await look("audit/verify");
      setVerified(ok ? `Entries ${first} to ${end} are unaltered.` : "Something was altered: " + plain(why, 400));
    } catch (e) {
      setVerified(plain(sentence(e), 400));
    }
  };
  return html`<article class="page">
    <h1>Audit</h1>
    <p>Who changed what: the last ${last.toLocaleString("en")} entries, the newest first.</p>
    <div class="row">
      <button type="button" onClick=${verify}>Verify all entries</button>
      <span class="note" role="status">${verified}</span>
    </div>
    <${Table}
      label="Audit"
      one="entry"
      items=${data}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ e) => String(e.number)}
      empty="Nobody has changed anything yet."
      columns=${[
        { title: "Number", cell: (/** @type {any} */ e) => String(e.number) },
        { title: "Time", kind: "time", cell: (/** @type {any} */ e) => moment(e.time) },
        { title: "Who", cell: (/** @type {any} */ e) => e.who ?? "" },
        { title: "From", cell: (/** @type {any} */ e) => e.from ?? "" },
        { title: "Action", cell: (/** @type {any} */ e) => e.action + (e.refused ? " (refused)" : "") },
        { title: "Target", cell: (/** @type {any} */ e) => e.target ?? "" },
        { title: "What", kind: "many", cell: whatOf },
      ]}
    />
  </article>`;
}

/** @param {any} e */
const whatOf = (e) => [e.before ? "was " + write(e.before, 0) : "", e.after ? write(e.after, 0) : "", e.refused ? "because: " + e.refused : "", e.omitted ? `${e.omitted} others like it` : ""].filter(Boolean).join(" → ");
