// The same call, to be copied into a terminal or a program.

import { html, useMemo, useState } from "../html.js";
import { root } from "../server.js";
import { CopyButton } from "./copy.js";
import { save } from "./result.js";
import { snippetsOf } from "./snippets.js";
import { plain } from "./text.js";

/** problem says why the arguments are not JSON, and then there is no call. @param {{tool: any, args: string, problem: string, token: boolean, mcp: boolean}} p */
export function Snippets({ tool, args, problem, token, mcp }) {
  const [chosen, choose] = useState("curl");
  const all = useMemo(() => snippetsOf(tool, problem ? "{}" : args, root.href.replace(/\/$/, ""), token, mcp), [tool, args, problem, token, mcp]);
  const one = all.find((s) => s.name === chosen) ?? all[0];
  const summary = html`<summary>The same call from elsewhere</summary>`;
  if (problem) return html`<details>${summary}<p class="note">The call stands here once the arguments are right: ${plain(problem)}</p></details>`;
  const { file } = one;
  return html`<details>
    ${summary}
    <div class="row" role="group" aria-label="Where the call is made">
      ${all.map((s) => html`<button type="button" key=${s.name} aria-pressed=${s.name === one.name ? "true" : "false"} onClick=${() => choose(s.name)}>${s.name}</button>`)}
    </div>
    <pre class="text snippet" tabindex="0" role="region" aria-label=${"The call with " + one.name}>${one.text}</pre>
    ${file
      ? html`<div class="row">
          <button type="button" onClick=${() => save(new Blob([file.text]), file.name)}>Save ${file.name}</button>
          <span class="note">The arguments are too long for a command. It reads them from <code>${file.name}</code>: save that file, and run the command in its folder.</span>
        </div>`
      : null}
    <div class="row">
      <${CopyButton} text=${one.text} what=${one.name} />
      ${token ? html`<span class="note">It takes the token from the environment variable <code>TOOLSRV_TOKEN</code>.</span>` : null}
    </div>
  </details>`;
}
