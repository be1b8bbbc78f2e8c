// The settings that give an agent these tools.

import { clients } from "../clients.js";
import { html } from "../html.js";
import { root, token } from "../server.js";
import { CopyButton } from "./copy.js";

export function Connect() {
  const address = new URL("mcp", root).href;
  return html`<article class="page">
    <h1>Connect an agent</h1>
    <p>Agents find and call the tools over the Model Context Protocol at this address:</p>
    <div class="row"><code class="address">${address}</code><${CopyButton} text=${address} what="address" /></div>
    <p class="note">With a namespace at its end, such as <code>${address}/math</code>, it has the tools of that namespace only.</p>
    ${clients(address, token.get() !== "").map(
      (c) => html`<section key=${c.name} aria-label=${c.name}>
        <h2>${c.name}</h2>
        <p>${c.how}</p>
        <pre class="text snippet" tabindex="0" role="region" aria-label=${"Settings of " + c.name}>${c.text}</pre>
        <${CopyButton} text=${c.text} what=${"settings of " + c.name} />
      </section>`,
    )}
  </article>`;
}
