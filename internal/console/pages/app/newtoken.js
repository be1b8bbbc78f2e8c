// Makes a token, and shows its secret this once.

import { html, useState } from "../html.js";
import { any, change } from "./api.js";
import { Asking, Dialog } from "./confirm.js";
import { CopyButton } from "./copy.js";
import { Field } from "./field.js";
import { plain } from "./text.js";

/** Splits what was typed with blanks or commas between. @param {string} text */
export const listed = (text) => text.split(/[\s,]+/).filter(Boolean);

/** @typedef {{rate: string, burst: string, concurrent: string}} Bounds as they are typed */

/** @type {Bounds} */
export const unbounded = { rate: "", burst: "", concurrent: "" };

/** Returns bounds as the door takes them, without those that are empty. @param {Bounds} typed */
export function boundsOf({ rate, burst, concurrent }) {
  const number = (/** @type {string} */ text, /** @type {string} */ label) => {
    if (!/^[1-9][0-9]{0,6}$/.test(text.trim())) throw new Error(`“${label}” has to be a whole number from 1 to 1000000, or empty`);
    return Number(text.trim());
  };
  return {
    ...(rate.trim() ? { rate: rate.trim() } : {}),
    ...(burst.trim() ? { burst: number(burst, "At once") } : {}),
    ...(concurrent.trim() ? { concurrent: number(concurrent, "Running") } : {}),
  };
}

/** @param {{bounds: Bounds, onInput: (bounds: Bounds) => void}} p */
export function BoundsFields({ bounds, onInput }) {
  return html`
    <${Field} label="Rate" hint="Calls on average, such as 100/min; if empty, rates.default of the configuration" value=${bounds.rate} onInput=${(/** @type {string} */ rate) => onInput({ ...bounds, rate })} />
    <${Field} label="At once" hint="How many may come in a burst after a pause; if empty, rates.default, or the number in the rate" value=${bounds.burst} onInput=${(/** @type {string} */ burst) => onInput({ ...bounds, burst })} />
    <${Field} label="Running" hint="How many calls may run at the same time; empty: as rates.default" value=${bounds.concurrent} onInput=${(/** @type {string} */ concurrent) => onInput({ ...bounds, concurrent })} />
  `;
}

/**
 * A button that makes a token by one of two operations: an administrator's, or the one by which a caller gives away a part of what they may do.
 * @param {{operation: "tokens/add"|"tokens/attenuate", label: string, title: string, onMade: (answer: any) => Promise<void>, children?: any}} p
 */
export function MakeToken({ operation, label, title, onMade, children }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState("");
  const [expires, setExpires] = useState("");
  const [networks, setNetworks] = useState("");
  const [bounds, setBounds] = useState(unbounded);
  const act = async () => {
    const from = listed(networks);
    const args = { name: name.trim(), scopes: listed(scopes), ...(expires.trim() ? { expires: expires.trim() } : {}), ...(from.length > 0 ? { networks: from } : {}), ...boundsOf(bounds) };
    await onMade(await change(operation, args, any));
    setName("");
    setScopes("");
  };
  return html`<${Asking} label=${label} title=${title} yes="Make it" onYes=${act}>
    ${children}
    <${Field} label="Name" hint="Whose it is, such as ci" value=${name} onInput=${setName} required />
    <${Field} label="Scopes" hint="Patterns of tools such as math/* or *, and the roles admin, admin:read and metrics. Without any it may do nothing." value=${scopes} onInput=${setScopes} />
    <${Field} label="Expires" hint="Such as 30d, 12h or never; otherwise 90d" value=${expires} onInput=${setExpires} />
    <${Field} label="Networks" hint="Ranges of addresses that may use it, such as 10.0.0.0/8; empty: from everywhere" value=${networks} onInput=${setNetworks} />
    <${BoundsFields} bounds=${bounds} onInput=${setBounds} />
  <//>`;
}

/** The secret, this once. @param {{made: any, onClose: () => void}} p */
export function Made({ made, onClose }) {
  return html`<${Dialog} title=${`The token of ${plain(made.token.name, 80)}`} onClose=${onClose} firm>
    <p>Store it now: it can't be shown again.</p>
    <p><code class="secret" id="made-secret">${made.secret}</code></p>
    ${(made.warnings ?? []).map((/** @type {string} */ w) => html`<p class="wrong">${plain(w, 400)}</p>`)}
    <div class="row"><${CopyButton} text=${made.secret} what="token" /><button type="button" class="primary" onClick=${onClose}>I have kept it</button></div>
  <//>`;
}
