// The page at /docs: Swagger UI over /openapi.json, or over the document of the namespace in the page's path. What else the address says, such as
// ?url= or ?configUrl=, is not looked at: a link must not show another document here.
import { sentence } from "./app/api.js";
import { snippetsOf } from "./app/snippets.js";
import { plain, visible } from "./app/text.js";
import { prepare, resolve } from "./document.js";
import { html, render } from "./html.js";
import { ask, Failure, root, token } from "./server.js";
import { Token } from "./token.js";

// most is how many tools are shown at once. With more, people choose a namespace first: Swagger UI takes seconds for a thousand.
const most = 300;

const namespace = decodeURIComponent(location.pathname.slice(root.pathname.length)).replace(/^docs\/?/, "");
if (namespace) document.title = `API of ${namespace}`;

// Swagger UI has colours for the dark, but does not ask for the system's.
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", colour);
colour();

const bar = /** @type {HTMLElement} */ (document.getElementById("bar"));
const api = /** @type {HTMLElement} */ (document.getElementById("api"));

function Bar() {
  return html`<header class="bar">
    <nav aria-label="Pages"><a href=${root.href}>Tools</a> <a href=${new URL("docs", root).href}>API</a></nav>
    ${token.get() && html`<${Token} changed=${show} />`}
  </header>`;
}

/** Is shown in place of the document. @param {{failure: unknown}} p */
function Missing({ failure }) {
  const closed = failure instanceof Failure && failure.status === 401;
  const none = namespace && failure instanceof Failure && failure.status === 404;
  return html`<main class="page">
    <h1>API</h1>
    ${closed
      ? html`<p>To see it you need a token. Whoever runs this server can give you one.</p><${Token} changed=${show} wrong=${true} />`
      : html`<p role="alert">${none ? html`The namespace <code>${namespace}</code> has no tools that you may call. <a href=${new URL("docs", root).href}>See those that have some</a>.` : plain(sentence(failure), 600)} <button type="button" onClick=${show}>Try again</button></p>
          ${token.get() && html`<${Token} changed=${show} />`}`}
  </main>`;
}

// place returns an element for what is shown, in place of what was.
function place() {
  const element = document.createElement("div");
  api.replaceChildren(element);
  return element;
}

// show shows the document as whoever has the token sees it.
async function show() {
  let spec;
  try {
    spec = await ask((namespace ? namespace + "/" : "") + "openapi.json");
  } catch (failure) {
    render(null, bar);
    render(html`<${Missing} failure=${failure} />`, place());
    return;
  }
  render(html`<${Bar} />`, bar);
  const all = Object.keys(spec.paths);
  if (all.length > most) {
    const below = namespacesOf(all, namespace);
    if (below.length > 0) {
      render(html`<${Namespaces} all=${below} count=${all.length} />`, place());
      return;
    }
  }
  showWith(prepare(spec));
}

/** Returns the namespaces one level below one, with how many tools each has. @param {string[]} paths @param {string} above */
function namespacesOf(paths, above) {
  const counts = new Map();
  for (const path of paths) {
    const parts = path.slice(1).split("/").slice(0, -1);
    const depth = above ? above.split("/").length : 0;
    if (parts.length > depth) {
      const name = parts.slice(0, depth + 1).join("/");
      counts.set(name, (counts.get(name) ?? 0) + 1);
    }
  }
  return [...counts];
}

/** @param {{all: [string, number][], count: number}} p */
function Namespaces({ all, count }) {
  return html`<main class="page">
    <h1>API${namespace && " of " + namespace}</h1>
    <p>There are ${count.toLocaleString("en")} tools. Choose a namespace to see its tools.</p>
    <ul class="links">${all.map(([name, n]) => html`<li key=${name}>
      <a href=${new URL("docs/" + name, root).href}><code>${name}</code></a> ${n.toLocaleString("en")} ${n === 1 ? "tool" : "tools"}
    </li>`)}</ul>
  </main>`;
}

/** Shows a document with Swagger UI. @param {any} spec */
function showWith(spec) {
  const ui = /** @type {any} */ (globalThis).SwaggerUIBundle({
    spec,
    domNode: place(),
    deepLinking: true,
    queryConfigEnabled: false,
    validatorUrl: null, // it would be asked over the network
    persistAuthorization: false,
    docExpansion: "list",
    syntaxHighlight: false,
    plugins: [own],
    defaultModelsExpandDepth: -1,
    showMutatedRequest: false, // it has the token
    /** @param {any} request */
    requestInterceptor(request) {
      const { Authorization: given } = request.headers;
      if (!given || given.startsWith("Bearer ")) {
        delete request.headers.Authorization;
        if (token.get() && new URL(request.url, location.href).origin === location.origin) request.headers.Authorization = "Bearer " + token.get();
      }
      request.credentials = "omit";
      return request;
    },
    onComplete() {
      // Authorize shows that there is a token.
      for (const [name, scheme] of Object.entries(spec.components?.securitySchemes ?? {})) {
        if (token.get() && isBearer(scheme)) ui.preauthorizeApiKey(name, kept);
      }
    },
  });
}

// kept is what Swagger UI has in place of the token. Where it had the token itself, it would go on sending it after that was forgotten.
const kept = "$TOOLSRV_TOKEN";

const isBearer = (/** @type {any} */ scheme) => scheme.type === "http" && scheme.scheme === "bearer";

/** Says what Swagger UI does in our way. Its parts have no types. @param {any} system */
function own(system) {
  return {
    fn: {
      resolveSubtree: async (/** @type {any} */ spec, /** @type {string[]} */ path) => ({ spec: resolve(spec, path), errors: [] }),
      // Its own samples are as large as a schema asks for. All that has one has an example.
      getSampleSchema: (/** @type {any} */ _schema, /** @type {any} */ _type, /** @type {any} */ _config, /** @type {any} */ example) => example ?? "",
    },
    components: {
      // What tools say is text. As Markdown it could have pictures, links and elements of HTML.
      Markdown: (/** @type {any} */ { source }) => source ? system.React.createElement("div", { className: "plain" }, visible(source)) : null,
      // What a call answers. What is copied or saved of it stays as it is.
      PlainTextViewer: (/** @type {any} */ { className, children }) => system.React.createElement("pre", { className: "microlight " + (className ?? "") }, visible(String(children))),
      curl: (/** @type {any} */ { request }) => system.React.createElement("div", { className: "curl-command" }, system.React.createElement("h4", null, "Curl"), system.React.createElement("pre", { className: "curl" }, curl(request))),
    },
    statePlugins: {
      auth: {
        wrapActions: {
          // The dialog of Authorize takes and forgets the token of the page.
          authorize: (/** @type {any} */ next, /** @type {any} */ { errActions }) => (/** @type {Record<string, any>} */ given) => {
            for (const [name, one] of Object.entries(given)) {
              const schema = one.schema?.toJS?.() ?? one.schema;
              if (!schema || !isBearer(schema) || one.value === kept) continue;
              const message = token.set(one.value.trim());
              if (message) return errActions.newAuthErr({ authId: name, level: "error", source: "auth", message });
              show();
              given = { ...given, [name]: { ...one, value: kept } };
            }
            return next(given);
          },
          logout: (/** @type {any} */ next) => (/** @type {string[]} */ names) => {
            token.set("");
            show();
            return next(names);
          },
        },
      },
    },
  };
}

/** Returns the command of a request, with the token where its user keeps it. @param {any} request */
function curl(request) {
  const { origin, pathname } = new URL(request.get("url"), location.href);
  const body = request.get("body") ?? "{}";
  return snippetsOf({ path: pathname, operation_id: "" }, typeof body === "string" ? body : JSON.stringify(body), origin, Boolean(token.get()), false)[0].text;
}

// mend mends what of Swagger UI people with screen readers stumble over: headings that leave out a level, links inside buttons that do the same,
// fields without a name, texts that scroll and can't be reached by the keyboard.
function mend() {
  for (const heading of api.querySelectorAll("h3:not([aria-level])")) heading.setAttribute("aria-level", "2");
  for (const heading of api.querySelectorAll(":is(h4, h5, h6):not([aria-level])")) heading.setAttribute("aria-level", "3");
  for (const link of api.querySelectorAll("button a[href]")) link.removeAttribute("href");
  for (const part of api.querySelectorAll(".information-container:not([role]), .scheme-container:not([role])")) {
    part.setAttribute("role", "region");
    part.setAttribute("aria-label", part.matches(".scheme-container") ? "Access" : "About");
  }
  for (const button of api.querySelectorAll(".close-modal:not([aria-label])")) button.setAttribute("aria-label", "Close");
  for (const button of api.querySelectorAll(".modal-btn[aria-label]")) button.removeAttribute("aria-label");
  for (const field of api.querySelectorAll("textarea:not([aria-label])")) field.setAttribute("aria-label", "Body");
  for (const pre of api.querySelectorAll("pre:not([tabindex])")) pre.setAttribute("tabindex", "0");
}
new MutationObserver(mend).observe(api, { childList: true, subtree: true });

show();
