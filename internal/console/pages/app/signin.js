// Where the token is typed. It is kept for this window, and sent to this server only.

import { html, useEffect, useRef, useState } from "../html.js";
import { token } from "../server.js";

/** @param {{wrong: boolean, needed: boolean, onToken: (text: string) => void, onCancel: () => void}} p */
export function SignIn({ wrong, needed, onToken, onCancel }) {
  const [text, setText] = useState("");
  const [problem, setProblem] = useState(wrong ? "The server does not take this token: it is mistyped, has expired or was revoked." : "");
  const input = useRef(/** @type {HTMLInputElement|null} */ (null));
  useEffect(() => {
    if (wrong) token.set("");
    input.current?.focus();
  }, []);
  const submit = (/** @type {any} */ e) => {
    e.preventDefault();
    const typed = text.trim();
    const why = typed === "" ? "Type a token." : token.set(typed);
    if (why) setProblem(why);
    else onToken(typed);
  };
  return html`<form class="signin" onSubmit=${submit} noValidate>
    <h1>${needed ? "This server wants a token" : "Sign in"}</h1>
    <p>Its operator gives you one${needed ? "" : ", with which you may see and do more"}. On the server's machine, <code>toolsrv tokens add NAME --scope '*'</code> makes one.</p>
    <div class="field">
      <label for="token">Token</label>
      <input id="token" ref=${input} type="password" autocomplete="off" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)} aria-describedby="token-hint" aria-invalid=${problem ? "true" : undefined} />
      <p class="hint" id="token-hint" role="alert">${problem ? html`<strong class="wrong">${problem}</strong>` : ""}</p>
    </div>
    <div class="row">
      <button class="primary">Sign in</button>
      ${needed ? null : html`<button type="button" onClick=${onCancel}>Back</button>`}
    </div>
    <p class="note">The token stays in this window until you sign out or close it. No cookie has it.</p>
  </form>`;
}
