// The form in which people type their token.
import { html, useState } from "./html.js";
import { token } from "./server.js";

// Token shows the form, or that there is a token already. changed is called when there is another one.
export function Token({ changed, wrong }) {
  const [typed, type] = useState("");
  const submit = (event) => {
    event.preventDefault();
    token.set(typed.trim());
    type("");
    changed();
  };
  const forget = () => {
    token.set("");
    changed();
  };
  if (token.get() && !wrong) {
    return html`<p class="token">Your token is kept in this tab until you close it. <button type="button" onClick=${forget}>Forget it</button></p>`;
  }
  return html`<form class="token" onSubmit=${submit}>
    <label for="token">Token</label>
    <input id="token" type="password" autocomplete="off" spellcheck="false" value=${typed} onInput=${(e) => type(e.target.value)} />
    <button disabled=${!typed.trim()}>Use it</button>
    ${wrong && token.get() ? html`<p role="alert">The server does not accept this token.</p>` : html`<p>It stays in this tab, and is forgotten when you close it.</p>`}
  </form>`;
}
