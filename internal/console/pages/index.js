// The page at /: what this server is, which tools the visitor may call, and how to connect clients.
import { sentence } from "./app/api.js";
import { CopyButton } from "./app/copy.js";
import { toTool } from "./app/route.js";
import { plain } from "./app/text.js";
import { clients } from "./clients.js";
import { html, render, useEffect, useMemo, useState } from "./html.js";
import { ask, Failure, root, token } from "./server.js";
import { Token } from "./token.js";

// shown is how many tools are listed at most: who looks for another one types a part of its name.
const shown = 100;

function Page() {
  const [state, set] = useState(/** @type {{about?: any, tools?: any[], failure?: unknown, loading?: boolean}} */ ({ loading: true }));
  const load = async () => {
    try {
      const [about, tools] = await Promise.all([ask("./"), ask("tools")]);
      document.title = about.title;
      set({ about, tools });
    } catch (failure) {
      set({ failure });
    }
  };
  useEffect(() => void load(), []);
  const { about, tools, failure, loading } = state;
  const closed = failure instanceof Failure && failure.status === 401;
  return html`<main class="page">
    <header>
      <h1>${plain(about?.title ?? "Tools")}</h1>
      ${about && html`<p class="version">version ${plain(about.version)} of the tools, served by toolsrv</p>`}
      ${about?.description && html`<p class="description">${plain(about.description, 2000)}</p>`}
      <p>This server has tools for language models and for programs. Programs call them over HTTP, and agents over the Model Context Protocol.</p>
    </header>
    ${loading && html`<p>Asking the server…</p>`}
    ${failure && !closed && html`<p role="alert">${plain(sentence(failure), 600)} <button type="button" onClick=${load}>Try again</button></p>`}
    ${closed && html`<p>To see the tools you need a token. Whoever runs this server can give you one.</p>`}
    ${(closed || token.get()) && html`<${Token} changed=${load} wrong=${closed} />`}
    ${about && html`<nav aria-label="Pages"><ul class="links">
      ${about.links.console && html`<li><a href=${new URL("console", root).href}>Console</a> shows and tries the tools</li>`}
      <li><a href=${new URL("docs", root).href}>API</a> for programs, to read and to try</li>
      <li><a href=${new URL("openapi.json", root).href}>openapi.json</a> for generators of clients${closed || token.get() ? ", with a token" : ""}</li>
      ${about.links.mcp && html`<li><a href="#connect" onClick=${toConnect}>Connect an agent</a>: settings for Claude, Cursor, VS Code and others</li>`}
    </ul></nav>`}
    ${tools && html`<${Tools} tools=${tools} />`}
    ${about?.links.mcp && html`<${Connect} about=${about} />`}
  </main>`;
}

/** @param {{tools: any[]}} p */
function Tools({ tools }) {
  const [filter, type] = useState("");
  const found = useMemo(() => {
    const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
    return tools.filter((t) => {
      const text = `${t.path} ${t.title ?? ""} ${t.description}`.toLowerCase();
      return words.every((w) => text.includes(w));
    });
  }, [tools, filter]);
  if (tools.length === 0) {
    return html`<section aria-labelledby="tools"><h2 id="tools">Tools</h2><p>There is none that you may call. Whoever runs this server puts tools into its directory, and says who may call them.</p></section>`;
  }
  return html`<section aria-labelledby="tools">
    <h2 id="tools">${tools.length.toLocaleString("en")} ${tools.length === 1 ? "tool" : "tools"}</h2>
    <label for="filter">Filter</label> <input id="filter" type="search" value=${filter} onInput=${(/** @type {any} */ e) => type(e.target.value)} />
    <p role="status" class="count">${found.length === tools.length ? "" : `${found.length.toLocaleString("en")} match`}</p>
    ${found.length === 0 && html`<p>No tool has all these words. Use fewer.</p>`}
    <ul class="tools">${found.slice(0, shown).map((t) => html`<li key=${t.path}>
      <a href=${new URL("console" + toTool(t.path), root).href}><code>${t.path}</code></a>${t.title && t.title !== t.name && html` <b>${plain(t.title)}</b>`}
      <p>${plain(t.description.split("\n", 1)[0])}</p>
    </li>`)}</ul>
    ${found.length > shown && html`<p>${(found.length - shown).toLocaleString("en")} more are not shown. Type a word to find them.</p>`}
  </section>`;
}

/** Goes to the heading, whose page has no address of its own for it. @param {Event} e */
function toConnect(e) {
  e.preventDefault();
  const heading = document.getElementById("connect");
  heading?.scrollIntoView();
  heading?.focus();
}

/** @param {{about: any}} p */
function Connect({ about }) {
  const address = new URL(about.links.mcp.href, root).href;
  const settings = clients(address, Boolean(token.get()));
  const [chosen, choose] = useState(settings[0].name);
  const { how, text } = settings.find((s) => s.name === chosen) ?? settings[0];
  return html`<section aria-labelledby="connect">
    <h2 id="connect" tabindex="-1">Connect an agent</h2>
    <p>The address for clients of the Model Context Protocol is <code>${address}</code>.</p>
    <label for="client">Client</label> <select id="client" value=${chosen} onChange=${(/** @type {any} */ e) => choose(e.target.value)}>
      ${settings.map((s) => html`<option key=${s.name}>${s.name}</option>`)}
    </select>
    <p>${how}</p>
    <pre tabindex="0" aria-label="Settings">${text}</pre>
    <p><${CopyButton} text=${text} what="settings" /></p>
  </section>`;
}

render(html`<${Page} />`, document.body);
