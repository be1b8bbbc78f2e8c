// The console: its frame, who is signed in, and which page is shown.

import { html, render, useCallback, useEffect, useMemo, useRef, useState } from "../html.js";
import { root, token } from "../server.js";
import { look, sentence } from "./api.js";
import { listen } from "./changes.js";
import { pages } from "./pages.js";
import { leave, to, useRoute } from "./route.js";
import { rowsOf } from "./rows.js";
import { mayLook, open } from "./session.js";
import { SignIn } from "./signin.js";
import { plain } from "./text.js";
import { ToolsPage } from "./tools.js";

/** @typedef {import("./session.js").Session} Session */

/** @type {Session} */
const asking = { state: "asking", tools: [], self: null, mcp: true };

function Console() {
  const [session, setSession] = useState(asking);
  const [told, setTold] = useState(/** @type {any[]|null} */ (null));
  const [signing, setSigning] = useState(false);
  const latest = useRef(session); // for what is asked while an older one is shown
  const asked = useRef(new AbortController()); // the load under way
  const route = useRoute();

  const load = useCallback(async () => {
    asked.current.abort();
    const { signal } = (asked.current = new AbortController());
    const next = await open(latest.current, signal);
    if (signal.aborted) return; // somebody has signed in or out since, or a later answer is on its way
    let all = null;
    if (mayLook(next.self)) {
      try {
        all = (await look("tools", { all: true }, signal)).tools;
      } catch {
        // The list of callers is still right.
      }
    }
    if (signal.aborted) return;
    latest.current = next;
    setTold(all);
    setSession(next);
  }, []);
  useEffect(() => void load(), []);
  const letIn = session.state === "in";
  useEffect(() => (letIn ? listen(load) : undefined), [letIn, session.self?.name]);

  const rows = useMemo(() => rowsOf(session.tools, told), [session.tools, told]);
  // Another person begins: nothing of what was told, or is still on its way, is for them.
  const become = (/** @type {string} */ text) => {
    token.set(text);
    latest.current = asking;
    setTold(null);
    setSigning(false);
    setSession(asking);
    load();
  };

  const served = pages.filter((p) => !p.needsMCP || session.mcp);
  const mine = served.filter((p) => p.may(session.self));
  const page = mine.find((p) => p.name === route.page);
  const others = page ? undefined : served.find((p) => p.name === route.page);
  useEffect(() => {
    document.title = (route.tool || page?.title || "Tools") + " – Console";
  }, [route, session]);

  return html`
    <a class="skip" href="#main" onClick=${(/** @type {Event} */ e) => (e.preventDefault(), document.getElementById("main")?.focus())}>To the content</a>
    <header class="bar">
      <a class="brand" href=${root.href}>toolsrv</a>
      <nav aria-label="Console">
        <ul>
          ${letIn
            ? [{ name: "tools", title: "Tools" }, ...mine].map(
                (p) => html`<li key=${p.name}><a href=${to(p.name)} aria-current=${route.page === p.name ? "page" : undefined}>${p.title}</a></li>`,
              )
            : null}
          <li><a href=${new URL("docs", root).href}>API</a></li>
        </ul>
      </nav>
      <div class="who">
        ${session.self ? html`<span class="name"><bdi>${plain(session.self.name, 40)}</bdi></span>` : null}
        ${token.get() && (letIn || session.state === "failed") ? html`<button type="button" onClick=${() => leave(() => become(""))}>Sign out</button>` : null}
        ${!token.get() && letIn ? html`<button type="button" onClick=${() => leave(() => setSigning(true))}>Sign in</button>` : null}
      </div>
    </header>
    <main id="main" tabindex="-1">
      ${session.state === "asking" ? html`<p class="empty middle" role="status">Asking the server…</p>` : null}
      ${session.state === "failed" ? html`<div class="empty middle" role="alert"><p>${plain(sentence(session.error), 600)}</p><button type="button" onClick=${load}>Try again</button></div>` : null}
      ${session.state === "locked" || (letIn && signing) ? html`<${SignIn} wrong=${session.wrong === true} needed=${!letIn} onToken=${become} onCancel=${() => setSigning(false)} />` : null}
      ${letIn && !signing && page ? html`<${page.view} key=${page.name} session=${session} rows=${rows} changed=${load} />` : null}
      ${letIn && !signing && others ? html`<div class="empty middle"><h1>${others.title}</h1><p>This page is for administrators: sign in with a token that has the role it needs.</p><p><a href=${to("tools")}>To the tools</a></p></div>` : null}
      ${letIn && !signing && !page && !others ? html`<${ToolsPage} rows=${rows} session=${session} chosen=${route.tool} changed=${load} />` : null}
    </main>
  `;
}

render(html`<${Console} />`, document.body);
