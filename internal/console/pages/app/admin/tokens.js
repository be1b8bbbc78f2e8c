// The tokens of the server: made, shown once, rotated and revoked.

import { html, useState } from "../../html.js";
import { look } from "../api.js";
import { Made, MakeToken } from "../newtoken.js";
import { mayChange } from "../session.js";
import { moment } from "../text.js";
import { Table, useAnswer } from "./table.js";
import { Acts, Details, boundsText } from "./token.js";

/** @param {{session: import("../session.js").Session}} p */
export function Tokens({ session }) {
  const { data, problem, again } = useAnswer(() => look("tokens/list"));
  const [made, setMade] = useState(/** @type {any} */ (null));
  const may = mayChange(session.self);
  const take = async (/** @type {any} */ answer) => {
    setMade(answer);
    await again();
  };
  return html`<article class="page">
    <h1>Tokens</h1>
    <p>Each has a name, which appears in the log, and scopes: patterns of tools, and roles. The server keeps no secret, only its SHA-256.</p>
    ${may ? html`<div class="row"><${MakeToken} operation="tokens/add" label="Make a token…" title="Make a token" onMade=${take} /></div>` : null}
    <${Table}
      label="Tokens"
      one="token"
      items=${data?.tokens}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ t) => (t.id ?? "declared ") + t.name}
      empty="There are none. From the first one on, callers without a token are refused."
      columns=${[
        { title: "Name", cell: (/** @type {any} */ t) => t.name },
        { title: "Scopes", cell: (/** @type {any} */ t) => (t.scopes ?? []).join(" ") || "none" },
        { title: "State", cell: (/** @type {any} */ t) => t.state + (t.declared ? ", declared by the configuration" : "") },
        { title: "Expires", kind: "time", cell: (/** @type {any} */ t) => moment(t.expires) || "never" },
        { title: "Used", kind: "time", cell: (/** @type {any} */ t) => moment(t.used) || "never" },
        { title: "Calls", cell: boundsText },
        {
          title: "Actions",
          text: () => "",
          cell: (/** @type {any} */ t) => html`<div class="row"><${Details} token=${t} />${may && !t.declared ? html`<${Acts} token=${t} mine=${t.name === session.self?.name} onMade=${take} again=${again} />` : null}</div>`,
        },
      ]}
    />
    ${made ? html`<${Made} made=${made} onClose=${() => setMade(null)} />` : null}
  </article>`;
}
