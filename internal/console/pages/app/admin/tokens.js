// The tokens of the server: made, shown once, rotated and revoked.

import { html, useState } from "../../html.js";
import { any, change, look } from "../api.js";
import { Asking, Dialog } from "../confirm.js";
import { CopyButton } from "../copy.js";
import { Field } from "../field.js";
import { mayChange } from "../session.js";
import { moment, plain } from "../text.js";
import { Table, useAnswer } from "./table.js";

/** @param {string} text */
const listed = (text) => text.split(/[\s,]+/).filter(Boolean);

/** @param {{session: import("../session.js").Session}} p */
export function Tokens({ session }) {
  const { data, problem, again } = useAnswer(() => look("tokens/list"));
  const [made, setMade] = useState(/** @type {any} */ (null));
  const may = mayChange(session.self);
  const take = async (/** @type {any} */ answer) => {
    setMade(answer);
    await again();
  };
  const boundsOf = (/** @type {any} */ t) => [t.rate, t.burst ? t.burst + " at once" : "", t.concurrent ? t.concurrent + " running" : ""].filter(Boolean).join(", ");
  return html`<article class="page">
    <h1>Tokens</h1>
    <p>Each has a name, which the log tells, and scopes: patterns of tools, and roles. The server keeps no secret, only its SHA-256.</p>
    ${may ? html`<div class="row"><${Make} onMade=${take} /></div>` : null}
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
        { title: "Calls", cell: (/** @type {any} */ t) => boundsOf(t) || "as rates.default" },
        ...(may ? [{ title: "Actions", text: () => "", cell: (/** @type {any} */ t) => (t.declared ? "" : html`<${Acts} token=${t} mine=${t.name === session.self?.name} onMade=${take} again=${again} />`) }] : []),
      ]}
    />
    ${made ? html`<${Made} made=${made} onClose=${() => setMade(null)} />` : null}
  </article>`;
}

/** @param {{onMade: (answer: any) => Promise<void>}} p */
function Make({ onMade }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("");
  const [expires, setExpires] = useState("");
  const [rate, setRate] = useState("");
  const act = async () => {
    const args = { name: name.trim(), scopes: listed(scopes), ...(expires.trim() ? { expires: expires.trim() } : {}), ...(rate.trim() ? { rate: rate.trim() } : {}) };
    await onMade(await change("tokens/add", args, any));
    setName("");
    setScopes("");
  };
  return html`<${Asking} label="Make a token…" title="Make a token" yes="Make it" onYes=${act}>
    <${Field} label="Name" hint="Whose it is, such as ci" value=${name} onInput=${setName} required />
    <${Field} label="Scopes" hint="Patterns of tools such as math/* or *, and the roles admin, admin:read and metrics. Without any it may do nothing." value=${scopes} onInput=${setScopes} />
    <${Field} label="Expires" hint="Such as 30d, 12h or never; otherwise 90d" value=${expires} onInput=${setExpires} />
    <${Field} label="Rate" hint="Such as 100/min; otherwise as rates.default of the configuration" value=${rate} onInput=${setRate} />
  <//>`;
}

/** @param {{token: any, mine: boolean, onMade: (answer: any) => Promise<void>, again: () => Promise<void>}} p */
function Acts({ token, mine, onMade, again }) {
  const [grace, setGrace] = useState("1h");
  const [scopes, setScopes] = useState("");
  const { name, version } = token;
  return html`<div class="row">
    <${Asking} label="Scopes" title=${`Give ${name} other scopes`} yes="Change scopes" onOpen=${() => setScopes(token.scopes.join(" "))} onYes=${async () => (await change("tokens/scopes", { name, scopes: listed(scopes) }, version), await again())}>
      <p>Now: <code>${plain(token.scopes.join(" ") || "none", 400)}</code></p>
      <${Field} label="From now on" hint="Patterns of tools such as math/*, and the roles admin, admin:read and metrics" value=${scopes} onInput=${setScopes} />
    <//>
    <${Asking} label="Rotate" title=${`Give ${name} a new secret?`} yes="Rotate" onYes=${async () => onMade(await change("tokens/rotate", { name, ...(grace.trim() ? { grace: grace.trim() } : {}) }, version))}>
      <p>Its lifetime begins anew. Its narrower tokens go on, so revoke one that has leaked.</p>
      <${Field} label="The old secret is taken for" hint="Such as 1h; empty: at once no longer" value=${grace} onInput=${setGrace} />
    <//>
    <${Asking} label="Revoke" title=${`Revoke ${name}?`} yes="Revoke" danger onYes=${async () => (await change("tokens/revoke", { name }, version), await again())}>
      <p>The next request with it is refused, and its streams end. So do the narrower tokens that it made. Nothing takes this back.</p>
      ${mine ? html`<p><strong class="wrong">It is the token that you are signed in with.</strong></p>` : null}
    <//>
  </div>`;
}

/** The secret, this once. @param {{made: any, onClose: () => void}} p */
function Made({ made, onClose }) {
  return html`<${Dialog} title=${`The token of ${plain(made.token.name, 80)}`} onClose=${onClose} firm>
    <p>Keep it now: nobody can be told it again.</p>
    <p><code class="secret" id="made-secret">${made.secret}</code></p>
    ${(made.warnings ?? []).map((/** @type {string} */ w) => html`<p class="wrong">${plain(w, 400)}</p>`)}
    <div class="row"><${CopyButton} text=${made.secret} what="token" /><button type="button" class="primary" onClick=${onClose}>I have kept it</button></div>
  <//>`;
}
