// What went wrong with a call, with the places that it is about.

import { html } from "../html.js";
import { Failure, placeOf, sentence, violationsOf } from "./api.js";
import { fieldId } from "./form.js";
import { write } from "./json.js";
import { duration, plain } from "./text.js";
import { TextView } from "./textview.js";

const fewViolations = 50;

/** @param {{failure: unknown, after?: number}} p */
export function Failed({ failure, after }) {
  const violations = violationsOf(failure);
  const known = failure instanceof Failure ? failure : null;
  const more = known?.body?.error;
  return html`<div class="failed">
    <p>
      <strong class="wrong">${violations.length > 0 ? "The arguments don't fit" : "Failed"}</strong>
      ${after === undefined ? null : ` after ${duration(after)}`}
      ${known?.code ? html` <code>${plain(known.code, 60)}</code>` : null}
      ${known?.requestId ? html`, request <code>${plain(known.requestId, 64)}</code>` : null}
    </p>
    ${violations.length > 0
      ? html`<ul>
          ${violations.slice(0, fewViolations).map((v) => html`<li><${Place} loc=${v.loc} />: <bdi>${plain(v.msg, 400)}</bdi></li>`)}
          ${violations.length > fewViolations ? html`<li>and ${violations.length - fewViolations} others</li>` : null}
        </ul>`
      : html`<p class="words"><bdi>${plain(sentence(failure), 4000)}</bdi></p>`}
    ${more ? html`<${TextView} text=${write(more)} label="What the tool says of it" />` : null}
  </div>`;
}

/** A place in the arguments, which leads to its field. @param {{loc: (string|number)[]}} p */
function Place({ loc }) {
  const name = plain(placeOf(loc), 160);
  const go = () => {
    // What has no field of its own stands at what it is a part of, and arguments that are written as JSON all stand in one.
    let to = null;
    for (let end = loc.length; end > 1 && !to; end--) to = document.getElementById(fieldId(loc.slice(1, end)));
    (to ?? document.querySelector(`#${CSS.escape(fieldId([]))}, #arguments-json, form.call :is(input, textarea, select, button)`))?.focus();
  };
  return loc.length > 1 ? html`<button type="button" class="link" onClick=${go}><bdi>${name}</bdi></button>` : html`<bdi>${name}</bdi>`;
}
