// What callers have of their own: secrets, and what tools keep for each of them apart.

import { html, useState } from "../../html.js";
import { any, change, look } from "../api.js";
import { Asking } from "../confirm.js";
import { RemoveSecret, SetSecret } from "../ownsecrets.js";
import { mayChange } from "../session.js";
import { bytes, count, moment, plain } from "../text.js";
import { Table, useAnswer } from "./table.js";

/** @param {{session: import("../session.js").Session}} p */
export function Callers({ session }) {
  const may = mayChange(session.self);
  const secrets = useAnswer(async () => (await look("secrets/list")).secrets);
  const [said, setSaid] = useState("");
  const done = async (/** @type {string} */ what) => {
    setSaid(what);
    await secrets.again();
  };
  return html`<article class="page">
    <h1>Callers</h1>
    <h2>Secrets of their own</h2>
    <p>Where a grant has <code>${"${secret:NAME@principal}"}</code>, a tool acts for each caller with that caller's secret. Callers set theirs on the page You, and nobody is shown a value.</p>
    <div class="row">${may ? html`<${SetSecret} label="Set a secret…" others done=${done} />` : null}<span class="note words" role="status">${plain(said, 400)}</span></div>
    <${Table}
      label="Secrets of callers"
      one="secret"
      items=${secrets.data}
      problem=${secrets.problem}
      again=${secrets.again}
      keyOf=${(/** @type {any} */ s) => s.principal + " " + s.name + s.source}
      empty="No caller has one."
      columns=${[
        { title: "Caller", cell: (/** @type {any} */ s) => s.principal },
        { title: "Name", cell: (/** @type {any} */ s) => s.name },
        { title: "From", cell: (/** @type {any} */ s) => (s.source === "directory" ? "secrets.directory" : "the state") },
        { title: "Set", kind: "time", cell: (/** @type {any} */ s) => moment(s.set) },
        { title: "By", cell: (/** @type {any} */ s) => s.by ?? "" },
        ...(may
          ? [
              {
                title: "Actions",
                text: () => "",
                cell: (/** @type {any} */ s) =>
                  s.source === "directory" ? "" : html`<div class="row"><${SetSecret} label="Change" name=${s.name} principal=${s.principal} others version=${s.version} done=${done} /><${RemoveSecret} secret=${s} others done=${done} /></div>`,
              },
            ]
          : []),
      ]}
    />
    <${Kept} may=${may} />
  </article>`;
}

/** @param {{may: boolean}} p */
function Kept({ may }) {
  const { data, problem, again } = useAnswer(all);
  const [said, setSaid] = useState("");
  const done = async (/** @type {string} */ what) => {
    setSaid(what);
    await again();
  };
  return html`
    <h2>What tools keep for them</h2>
    <p>Where a grant has <code>${'kv = {by = "principal"}'}</code>, tools keep values for each caller apart.</p>
    <p class="note words" role="status">${plain(said, 400)}</p>
    ${data?.cut ? html`<p class="note">There is more: <code>toolsrv kv list --after</code> goes on where this ends.</p>` : null}
    <${Table}
      label="Values of callers"
      one="space"
      items=${data?.kept}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ k) => k.principal + " " + k.namespace}
      empty="Nothing is kept for single callers."
      columns=${[
        { title: "Caller", cell: (/** @type {any} */ k) => k.principal },
        { title: "Namespace", cell: (/** @type {any} */ k) => k.namespace },
        { title: "Values", cell: (/** @type {any} */ k) => count(k.entries, "value") },
        { title: "Size", cell: (/** @type {any} */ k) => bytes(k.bytes) },
        ...(may ? [{ title: "Actions", text: () => "", cell: (/** @type {any} */ k) => html`<${Erase} principal=${k.principal} done=${done} />` }] : []),
      ]}
    />
  `;
}

const mostPages = 20; // of 1,000 lines

async function all() {
  const kept = [];
  let after = "";
  for (let n = 0; n < mostPages; n++) {
    const answer = await look("kv/list", { after });
    kept.push(...answer.kept);
    after = answer.more ?? "";
    if (!after) break;
  }
  return { kept, cut: after !== "" };
}

/** @param {{principal: string, done: (what: string) => Promise<void>}} p */
function Erase({ principal, done }) {
  const [own, setOwn] = useState(/** @type {any[]} */ ([]));
  const opened = async () => setOwn((await all()).kept.filter((/** @type {any} */ k) => k.principal === principal));
  const act = async () => {
    const { kept } = await change("kv/erase", { principal }, any);
    await done(`${count(kept.length, "space")} of ${principal} erased.`);
  };
  return html`<${Asking} label="Erase" title="Erase what is kept?" yes="Erase" danger onOpen=${opened} onYes=${act}>
    <p>Of <code>${plain(principal, 200)}</code>, in every namespace:</p>
    <ul>${own.map((k) => html`<li><code>${plain(k.namespace, 200)}</code>, ${count(k.entries, "value")}, ${bytes(k.bytes)}</li>`)}</ul>
    <p>What tools keep until then goes, too. Nothing takes this back.</p>
  <//>`;
}
