// The page at /docs: Swagger UI over /openapi.json, or over the document of the namespace in the page's path. What else the address says, such as
// ?url= or ?configUrl=, is not looked at: a link must not show another document here.
import { html, render, useState } from "./html.js";
import { root, token } from "./server.js";
import { Token } from "./token.js";

const namespace = location.pathname.slice(root.pathname.length).replace(/^docs\/?/, "");
const specification = new URL((namespace ? namespace + "/" : "") + "openapi.json", root);
if (namespace) document.title = `API of ${decodeURIComponent(namespace)}`;

// Swagger UI has colours for the dark, but does not ask for the system's.
const dark = matchMedia("(prefers-color-scheme: dark)");
const colour = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", colour);
colour();

function Bar({ wrong }) {
  const [, again] = useState(0);
  const changed = () => {
    again((n) => n + 1);
    show();
  };
  return html`<header class="bar">
    <nav aria-label="Pages"><a href=${root.href}>Tools</a> <a href=${new URL("docs", root).href}>API</a></nav>
    ${(wrong || token.get()) && html`<${Token} changed=${changed} wrong=${wrong} />`}
  </header>`;
}

// show shows the document, as whoever has the token sees it.
function show() {
  render(html`<${Bar} wrong=${false} />`, bar);
  const ui = globalThis.SwaggerUIBundle({
    url: specification.href,
    domNode: document.getElementById("api"),
    deepLinking: true,
    queryConfigEnabled: false,
    validatorUrl: null, // it would be asked over the network
    persistAuthorization: false,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    requestInterceptor(request) {
      if (token.get() && new URL(request.url, location.href).origin === location.origin && !request.headers.Authorization) {
        request.headers.Authorization = "Bearer " + token.get();
      }
      request.credentials = "omit";
      return request;
    },
    responseInterceptor(response) {
      if (response.status === 401 && response.url === specification.href) render(html`<${Bar} wrong=${true} />`, bar);
      return response;
    },
    onComplete() {
      // Authorize shows the token as given, and requests made here have it.
      const schemes = ui.specSelectors.securityDefinitions()?.toJS() ?? {};
      for (const [name, scheme] of Object.entries(schemes)) {
        if (token.get() && scheme.type === "http" && scheme.scheme === "bearer") ui.preauthorizeApiKey(name, token.get());
      }
    },
  });
}

const bar = document.getElementById("bar");
show();
