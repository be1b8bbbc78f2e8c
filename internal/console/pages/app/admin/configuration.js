// Reads the configuration again, after showing what that changes.

import { html, useState } from "../../html.js";
import { any, change } from "../api.js";
import { Asking } from "../confirm.js";
import { Field } from "../field.js";
import { mayChange } from "../session.js";
import { count, plain } from "../text.js";
import { useAnswer } from "./table.js";
import { sentence } from "../api.js";

const parts = /** @type {const} */ ([
  ["settings", "Settings"],
  ["limits", "Limits"],
  ["grants", "Grants"],
  ["tokens_added", "Tokens that come"],
  ["tokens_removed", "Tokens that go"],
  ["enabled", "Tools switched on"],
  ["disabled", "Tools switched off"],
  ["granted", "Tools granted what they lacked"],
  ["withdrawn", "Tools no longer granted what they need"],
]);

/** @param {{session: import("../session.js").Session, changed: () => void}} p */
export function Configuration({ session, changed }) {
  const may = mayChange(session.self);
  const { data, problem, again } = useAnswer(() => change("reload", { dry_run: true }, any));
  const act = async () => {
    await change("reload", {}, data?.version);
    await again();
    changed();
  };
  const some = data && parts.some(([key]) => data[key]?.length > 0);
  return html`<article class="page">
    <h1>Configuration</h1>
    <p>What the configuration's file says differently from what is in force.</p>
    <div class="row">
      <button type="button" onClick=${again}>Compare again</button>
      ${may && some && !problem ? html`<${Asking} label="Reload…" title="Put the new configuration in force?" yes="Reload" danger onYes=${act}><${Difference} data=${data} /><p>It changes just this: if somebody has saved the file since, nothing happens.</p><//>` : null}
    </div>
    ${problem ? html`<p class="wrong" role="alert">${plain(sentence(problem), 2000)}</p>` : null}
    ${data && !problem ? html`<${Difference} data=${data} />` : null}
    ${data && !some && !problem && !(data.restart?.length > 0) ? html`<p class="empty">Nothing differs. Change the file of the configuration on the server's machine, then compare again.</p>` : null}
  </article>`;
}

/** @param {{data: any}} p */
function Difference({ data }) {
  return html`
    ${parts.filter(([key]) => data[key]?.length > 0).map(([key, title]) => html`<${Part} key=${key} title=${title} lines=${data[key]} />`)}
    ${data.restart?.length > 0 ? html`<${Part} title="In force at a restart only" lines=${data.restart} />` : null}
  `;
}

const few = 20; // lines that need no filter
const most = 300; // that a page shows at once

/** @param {{title: string, lines: string[]}} p */
function Part({ title, lines }) {
  const [filter, setFilter] = useState("");
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const found = words.length === 0 ? lines : lines.filter((line) => words.every((w) => line.toLowerCase().includes(w)));
  return html`<section aria-label=${title}>
    <h2>${title} <span class="note" role="status">${filter ? `${count(found.length, "line")} of ${lines.length.toLocaleString("en")}` : count(lines.length, "line")}</span></h2>
    ${lines.length > few ? html`<${Field} label="Filter" type="search" value=${filter} onInput=${setFilter} />` : null}
    <ul>${found.slice(0, most).map((line) => html`<li><bdi>${plain(line, 400)}</bdi></li>`)}</ul>
    ${found.length > most ? html`<p class="wrong">${count(found.length - most, "other")} not shown: a word in the filter finds them.</p>` : null}
  </section>`;
}
