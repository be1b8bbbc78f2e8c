// The page at /docs: Swagger UI over /openapi.json, or over the document of the namespace in the page's path. What else the address says, such as
// ?url= or ?configUrl=, is not looked at: a link must not show another document here.
import { visible } from "./app/text.js";
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

const bar = document.getElementById("bar");
const api = document.getElementById("api");

function Bar() {
  return html`<header class="bar">
    <nav aria-label="Pages"><a href=${root.href}>Tools</a> <a href=${new URL("docs", root).href}>API</a></nav>
    ${token.get() && html`<${Token} changed=${show} />`}
  </header>`;
}

// Missing is shown in place of the document.
function Missing({ failure }) {
  const closed = failure instanceof Failure && failure.status === 401;
  return html`<main class="page">
    <h1>API</h1>
    ${closed
      ? html`<p>To see it you need a token. Whoever runs this server can give you one.</p><${Token} changed=${show} wrong=${true} />`
      : html`<p role="alert">${failure.message}. <button type="button" onClick=${show}>Try again</button></p>`}
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
  for (const path of Object.values(spec.paths)) path.post.summary = visible(path.post.summary ?? "");
  showWith(spec);
}

// namespacesOf returns the namespaces one level below one, with how many tools each has.
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

function Namespaces({ all, count }) {
  return html`<main class="page">
    <h1>API${namespace && " of " + namespace}</h1>
    <p>There are ${count.toLocaleString("en")} tools. Choose a namespace to see its tools.</p>
    <ul class="links">${all.map(([name, n]) => html`<li key=${name}>
      <a href=${new URL("docs/" + name, root).href}><code>${name}</code></a> ${n.toLocaleString("en")} ${n === 1 ? "tool" : "tools"}
    </li>`)}</ul>
  </main>`;
}

// showWith shows a document with Swagger UI.
function showWith(spec) {
  const ui = globalThis.SwaggerUIBundle({
    spec,
    domNode: place(),
    deepLinking: true,
    queryConfigEnabled: false,
    validatorUrl: null, // it would be asked over the network
    persistAuthorization: false,
    docExpansion: "list",
    syntaxHighlight: false,
    plugins: [plain],
    defaultModelsExpandDepth: -1,
    requestInterceptor(request) {
      if (token.get() && new URL(request.url, location.href).origin === location.origin && !request.headers.Authorization) {
        request.headers.Authorization = "Bearer " + token.get();
      }
      request.credentials = "omit";
      return request;
    },
    onComplete() {
      // Authorize shows that there is a token.
      const schemes = spec.components?.securitySchemes ?? {};
      for (const [name, scheme] of Object.entries(schemes)) {
        if (token.get() && scheme.type === "http" && scheme.scheme === "bearer") ui.preauthorizeApiKey(name, token.get());
      }
    },
  });
}

// plain shows what tools say as text. As Markdown it could have pictures, links and elements of HTML.
function plain(system) {
  return { components: { Markdown: ({ source }) => source ? system.React.createElement("div", { className: "plain" }, visible(source)) : null } };
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
