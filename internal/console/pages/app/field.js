// An input with its label and a line that says more.

import { html, useId } from "../html.js";

/** @param {{label: string, value: string, onInput: (text: string) => void, hint?: string, type?: string, list?: string[], class?: string, required?: boolean}} p */
export function Field({ label, value, onInput, hint, type = "text", list, required, ...rest }) {
  const id = useId();
  return html`<div class=${"field " + (rest.class ?? "")}>
    <label for=${id}>${label}</label>
    <input id=${id} type=${type} autocomplete="off" spellcheck=${false} required=${required} list=${list ? id + "-list" : undefined} value=${value} aria-describedby=${hint ? id + "-hint" : undefined} onInput=${(/** @type {any} */ e) => onInput(e.currentTarget.value)} />
    ${list ? html`<datalist id=${id + "-list"}>${list.map((one) => html`<option value=${one}></option>`)}</datalist>` : null}
    ${hint ? html`<p class="hint" id=${id + "-hint"}>${hint}</p>` : null}
  </div>`;
}
