// The same call, to be copied into a terminal or a program.

import { html, useMemo, useState } from "../html.js";
import { root } from "../server.js";
import { CopyButton } from "./copy.js";
import { snippetsOf } from "./snippets.js";

/** @param {{tool: any, args: string, token: boolean}} p */
export function Snippets({ tool, args, token }) {
  const [chosen, choose] = useState("curl");
  const all = useMemo(() => snippetsOf(tool, args, root.href.replace(/\/$/, ""), token), [tool, args, token]);
  const one = all.find((s) => s.name === chosen) ?? all[0];
  return html`<details>
    <summary>The same call from elsewhere</summary>
    <div class="row" role="group" aria-label="Where the call is made">
      ${all.map((s) => html`<button type="button" key=${s.name} aria-pressed=${s.name === one.name ? "true" : "false"} onClick=${() => choose(s.name)}>${s.name}</button>`)}
    </div>
    <pre class="text snippet" tabindex="0" role="region" aria-label=${"The call with " + one.name}>${one.text}</pre>
    <div class="row">
      <${CopyButton} text=${one.text} what=${one.name} />
      ${token ? html`<span class="note">It takes the token from the environment variable <code>TOOLSRV_TOKEN</code>.</span>` : null}
    </div>
  </details>`;
}
