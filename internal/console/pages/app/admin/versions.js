// The versions of files that are kept, and the way back to one.

import { html, useState } from "../../html.js";
import { any, change, look } from "../api.js";
import { Asking } from "../confirm.js";
import { Field } from "../field.js";
import { mayChange } from "../session.js";
import { bytes, moment, plain } from "../text.js";
import { Table, useAnswer } from "./table.js";

/** @param {{session: import("../session.js").Session, changed: () => void}} p */
export function Versions({ session, changed }) {
  const { data, problem, again } = useAnswer(() => look("history"));
  const may = mayChange(session.self);
  const rows = data?.files.flatMap((/** @type {any} */ f) => f.versions.map((/** @type {any} */ v) => ({ ...v, file: f.file, of: f })));
  return html`<article class="page">
    <h1>Versions</h1>
    <p>Files of which several versions are kept. To go back changes no file: once a file's content changes, that is served.</p>
    <${Table}
      label="Versions of files"
      one="version"
      items=${rows}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ v) => v.file + v.digest}
      empty="No file has more than one version yet. When one changes, the version before is kept, and stands here."
      columns=${[
        { title: "File", cell: (/** @type {any} */ v) => v.file },
        { title: "Version", cell: (/** @type {any} */ v) => html`<code>${v.digest.slice(0, 12)}</code>`, text: (/** @type {any} */ v) => v.digest },
        { title: "Size", cell: (/** @type {any} */ v) => bytes(v.size) },
        { title: "Kept since", kind: "time", cell: (/** @type {any} */ v) => moment(v.since) },
        { title: "State", cell: stateOf },
        ...(may ? [{ title: "Actions", text: () => "", cell: (/** @type {any} */ v) => (v.served ? "" : html`<${Back} version=${v} done=${async () => (await again(), changed())} />`) }] : []),
      ]}
    />
  </article>`;
}

/** @param {any} v */
function stateOf(v) {
  if (!v.served) return v.of.removed ? "removed" : "kept";
  const back = v.of.rolled_back;
  return back ? `served, rolled back by ${back.who}${back.reason ? ": " + back.reason : ""}` : "served";
}

/** @param {{version: any, done: () => Promise<void>}} p */
function Back({ version: v, done }) {
  const [reason, setReason] = useState("");
  // What is served was seen when the list was made: if that has changed meanwhile, nothing happens. Of a removed file the server looks itself
  // whether it is still gone.
  const act = async () => {
    await change("rollback", { path: v.file, version: v.digest, ...(reason.trim() ? { reason: reason.trim() } : {}) }, v.of.served || any);
    await done();
  };
  return html`<${Asking} label="Serve this" title=${`Serve version ${v.digest.slice(0, 12)}?`} yes="Serve it" danger onYes=${act}>
    <p><code>${plain(v.file, 300)}</code></p>
    <p>Now <code>${(v.of.served ?? "nothing").slice(0, 12)}</code> is served, and from then on <code>${v.digest.slice(0, 12)}</code>, ${bytes(v.size)}, kept since ${moment(v.since)}. Running calls finish on the version that they began with.</p>
    <${Field} label="Reason" value=${reason} onInput=${setReason} />
  <//>`;
}
