// Who the caller is, and what is its own: secrets that tools use for it, and tokens that it makes of its own.

import { html, useState } from "../html.js";
import { look, sentence } from "./api.js";
import { Table, useAnswer } from "./admin/table.js";
import { boundsText } from "./admin/token.js";
import { Made, MakeToken } from "./newtoken.js";
import { RemoveSecret, SetSecret } from "./ownsecrets.js";
import { count, moment, plain } from "./text.js";

/** @typedef {{name: string, tools: string[], set?: any}} Own a secret that tools use, or that is set */

export function You() {
  const who = useAnswer(() => look("self"));
  const [made, setMade] = useState(/** @type {any} */ (null));
  const self = who.data;
  if (!self) return html`<article class="page"><h1>You</h1><p class="empty">${who.problem ? plain(sentence(who.problem), 600) : "Asking the server…"}</p></article>`;
  return html`<article class="page">
    <h1>You</h1>
    <table>
      <tbody>
        <tr><th scope="row">Name</th><td><bdi class="words">${plain(self.name, 200)}</bdi></td></tr>
        <tr><th scope="row">Tools</th><td><bdi class="words">${plain(self.scopes.join(" ") || "none", 2000)}</bdi></td></tr>
        <tr><th scope="row">Roles</th><td><bdi class="words">${plain(self.roles.join(" ") || "none", 200)}</bdi></td></tr>
        ${self.token ? html`<tr><th scope="row">Expires</th><td>${moment(self.token.expires) || "never"}</td></tr>` : null}
        ${self.rates.map((/** @type {any} */ r) => html`<tr><th scope="row">Calls</th><td><bdi class="words">${plain(rateOf(r, self), 400)}</bdi></td></tr>`)}
        ${self.principal ? html`<tr><th scope="row">Written as</th><td><code>${plain(self.principal, 200)}</code></td></tr>` : null}
      </tbody>
    </table>
    ${self.token
      ? html`<div class="row">
          <${MakeToken} operation="tokens/attenuate" label="Make a narrower token…" title="Make a narrower token" onMade=${async (/** @type {any} */ answer) => setMade(answer)}>
            <p>It may do part of what yours may, and ends with it. Its calls count as yours, too.</p>
          <//>
        </div>`
      : null}
    <h2>Your own secrets</h2>
    <p>With some tools you act as yourself at another service: they send it a secret that only you have.</p>
    ${self.principal ? html`<${OwnSecrets} />` : html`<p class="empty">Your token has no name, so nothing can be your own. Ask the operator for one that has.</p>`}
    ${made ? html`<${Made} made=${made} onClose=${() => setMade(null)} />` : null}
  </article>`;
}

/** @param {any} r @param {any} self */
function rateOf(r, self) {
  return boundsText(r) + (r.rate ? `, ${r.left.toLocaleString("en")} left now` : "") + (r.concurrent ? `, ${count(r.running, "call")} running now` : "") + (r.of === self.name ? "" : ", with all of " + r.of);
}

function OwnSecrets() {
  const [said, setSaid] = useState("");
  const { data, problem, again } = useAnswer(async () => ownOf(await look("secrets/list")));
  const done = async (/** @type {string} */ what) => {
    setSaid(what);
    await again();
  };
  return html`
    <div class="row"><${SetSecret} label="Set a secret…" done=${done} /><span class="note words" role="status">${plain(said, 400)}</span></div>
    <${Table}
      label="Your own secrets"
      one="secret"
      items=${data}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {Own} */ o) => o.name}
      empty="No tool that you may call uses one."
      columns=${[
        { title: "Name", cell: (/** @type {Own} */ o) => o.name },
        { title: "State", cell: (/** @type {Own} */ o) => (!o.set ? "not set: these tools can't act for you" : o.set.source === "directory" ? "given by the operator" : "set") },
        { title: "Tools that use it", kind: "many", cell: (/** @type {Own} */ o) => o.tools.join(" ") || "none that you may call" },
        { title: "Set", kind: "time", cell: (/** @type {Own} */ o) => moment(o.set?.set) },
        { title: "By", cell: (/** @type {Own} */ o) => o.set?.by ?? "" },
        {
          title: "Actions",
          text: () => "",
          cell: (/** @type {Own} */ o) =>
            o.set?.source === "directory"
              ? ""
              : html`<div class="row"><${SetSecret} label=${o.set ? "Change" : "Set"} name=${o.name} version=${o.set?.version} done=${done} />${o.set ? html`<${RemoveSecret} secret=${o.set} tools=${o.tools} done=${done} />` : null}</div>`,
        },
      ]}
    />
  `;
}

/** Puts together what is wanted and what is set. An administrator is told of everybody's. @param {any} all @returns {Own[]} */
function ownOf(all) {
  /** @type {Map<string, Own>} */
  const own = new Map(all.wanted.map((/** @type {any} */ w) => [w.name, { name: w.name, tools: w.tools }]));
  for (const set of all.secrets) {
    if (set.principal !== all.principal) continue;
    own.set(set.name, { name: set.name, tools: own.get(set.name)?.tools ?? [], set });
  }
  return [...own.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}
