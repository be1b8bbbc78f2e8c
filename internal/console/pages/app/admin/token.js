// One token: all that is known of it, and what can be done with it.

import { html, useState } from "../../html.js";
import { change } from "../api.js";
import { Asking, Dialog } from "../confirm.js";
import { Field } from "../field.js";
import { BoundsFields, boundsOf, listed, unbounded } from "../newtoken.js";
import { count, moment, plain } from "../text.js";

/** Says what bounds a token's calls. @param {any} t */
export const boundsText = (t) => [t.rate, t.burst ? t.burst + " at once" : "", t.concurrent ? t.concurrent + " running" : ""].filter(Boolean).join(", ") || "as rates.default";

/** A button that shows all that is known of a token. @param {{token: any}} p */
export function Details({ token }) {
  const [shown, setShown] = useState(false);
  const close = () => setShown(false);
  return html`<button type="button" onClick=${() => setShown(true)}>Show</button>${shown
    ? html`<${Dialog} title=${`The token ${plain(token.name, 80)}`} onClose=${close}>
        <table>
          <tbody>
            ${factsOf(token).map(([what, value]) => html`<tr><th scope="row">${what}</th><td><bdi class="words">${plain(value, 2000)}</bdi></td></tr>`)}
          </tbody>
        </table>
        <div class="row"><button type="button" class="primary" autofocus onClick=${close}>Close</button></div>
      <//>`
    : null}`;
}

/** @param {any} t @returns {[string, string][]} */
function factsOf(t) {
  /** @type {[string, string|undefined][]} */
  const all = [
    ["Begins with", t.id],
    ["Scopes", t.scopes.join(" ") || "none"],
    ["Calls", boundsText(t)],
    ["From", (t.networks ?? []).join(" ") || "everywhere"],
    ["State", t.state + (t.declared ? ", declared by the configuration" : "")],
    ["Expires", moment(t.expires) || "never"],
    ["Used", moment(t.used) || "never"],
    ["Old secret taken until", moment(t.former_until)],
    ["Made", moment(t.created)],
    ["Made by", t.by],
  ];
  return all.flatMap(([what, value]) => (value ? [[what, value]] : []));
}

/** @param {{token: any, mine: boolean, onMade: (answer: any) => Promise<void>, again: () => Promise<void>}} p */
export function Acts({ token, mine, onMade, again }) {
  const [grace, setGrace] = useState("1h");
  const [scopes, setScopes] = useState("");
  const [bounds, setBounds] = useState(unbounded);
  const [ends, setEnds] = useState(/** @type {string[]} */ ([]));
  const { name, version } = token;
  const asNow = () => setBounds({ rate: token.rate ?? "", burst: String(token.burst || ""), concurrent: String(token.concurrent || "") });
  return html`
    <${Asking} label="Scopes" title=${`Give ${name} other scopes`} yes="Change scopes" onOpen=${() => setScopes(token.scopes.join(" "))} onYes=${async () => (await change("tokens/scopes", { name, scopes: listed(scopes) }, version), await again())}>
      <p>Now: <code>${plain(token.scopes.join(" ") || "none", 400)}</code></p>
      <${Field} label="From now on" hint="Patterns of tools such as math/*, a tool with its fingerprint as in math/add@…, and the roles admin, admin:read and metrics" value=${scopes} onInput=${setScopes} />
    <//>
    <${Asking} label="Rate" title=${`Give ${name} another rate`} yes="Change rate" onOpen=${asNow} onYes=${async () => (await change("tokens/rate", { name, ...boundsOf(bounds) }, version), await again())}>
      <p>Now: ${boundsText(token)}. Calls already counted stay counted, and calls with its narrower tokens count as well.</p>
      <${BoundsFields} bounds=${bounds} onInput=${setBounds} />
    <//>
    <${Asking} label="Rotate" title=${`Give ${name} a new secret?`} yes="Rotate" onYes=${async () => onMade(await change("tokens/rotate", { name, ...(grace.trim() ? { grace: grace.trim() } : {}) }, version))}>
      <p>Its lifetime begins anew. Its narrower tokens go on, so revoke one that has leaked.</p>
      <${Field} label="The old secret stays valid for" hint="Such as 1h; if empty, it ends at once" value=${grace} onInput=${setGrace} />
    <//>
    <${Asking} label="Revoke" title=${`Revoke ${name}?`} yes="Revoke" danger onOpen=${async () => setEnds((await change("tokens/revoke", { name, dry_run: true }, version)).ends)} onClose=${() => setEnds([])} onYes=${async () => (await change("tokens/revoke", { name }, version), await again())}>
      <p>The next request with it is refused, and its streams end. Nothing takes this back.</p>
      ${ends.length > 0
        ? html`<p><strong class="wrong">${count(ends.length, "narrower token")} made from it end with it:</strong></p>
            <ul class="ends" tabindex="0" aria-label="Tokens that end with it">${ends.map((end) => html`<li key=${end}><bdi><code>${plain(end, 200)}</code></bdi></li>`)}</ul>`
        : null}
      ${mine ? html`<p><strong class="wrong">It is the token that you are signed in with.</strong></p>` : null}
    <//>
  `;
}
