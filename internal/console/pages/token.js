// The form in which people type their token.
import { html, useState } from "./html.js";
import { token } from "./server.js";

/**
 * Shows the form, or that there is a token already. changed is called when there is another one, and returns once the server was asked.
 * @param {{changed: () => Promise<void>, wrong?: boolean}} p
 */
export function Token({ changed, wrong }) {
  const [typed, type] = useState("");
  const [problem, tell] = useState("");
  const [asking, ask] = useState(false);
  const take = async (/** @type {string} */ text) => {
    const why = token.set(text);
    tell(why);
    if (why) return;
    type("");
    ask(true);
    await changed();
    ask(false);
  };
  const submit = (/** @type {Event} */ event) => {
    event.preventDefault();
    take(typed.trim());
  };
  if (token.get() && !wrong) {
    return html`<p class="token">Your token is kept in this tab until you close it. <button type="button" onClick=${() => take("")}>Forget it</button></p>`;
  }
  const refused = problem || (wrong && token.get() && !asking ? "The server does not accept this token." : "");
  return html`<form class="token" onSubmit=${submit}>
    <label for="token">Token</label>
    <input id="token" type="password" autocomplete="off" spellcheck="false" value=${typed} onInput=${(/** @type {any} */ e) => type(e.currentTarget.value)} />
    <button disabled=${!typed.trim()}>Use it</button>
    ${refused ? html`<p role="alert">${refused}</p>` : html`<p>It stays in this tab, and is forgotten when you close it.</p>`}
  </form>`;
}
