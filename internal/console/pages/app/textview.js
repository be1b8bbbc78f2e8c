// A text of any length. A long one has only those lines in the page that can be seen: a browser lays out four megabytes in seconds, and does
// nothing else meanwhile.

import { html, useMemo, useState } from "../html.js";
import { count, visible } from "./text.js";

const lineHeight = 20; // pixels, as in the style sheet
const widest = 400; // characters: what is longer goes on in the next row
const mostPlain = 20_000; // characters
const mostRows = 1_000_000; // browsers have no element that is much taller than 33 million pixels
const height = 400; // pixels

/** @param {{text: string, label: string}} p */
export function TextView({ text, label }) {
  if (text.length <= mostPlain) return html`<pre class="text" tabindex="0" role="region" aria-label=${label}>${visible(text)}</pre>`;
  return html`<${LongText} text=${text} label=${label} />`;
}

/** @param {{text: string, label: string}} p */
function LongText({ text, label }) {
  const starts = useMemo(() => startsOf(text), [text]);
  const [first, setFirst] = useState(0);
  const rows = starts.length - 1;
  const from = Math.max(0, first - 10);
  const to = Math.min(rows, first + Math.ceil(height / lineHeight) + 10);
  const shown = [];
  for (let i = from; i < to; i++) shown.push(visible(text.slice(starts[i], starts[i + 1]).replace(/\n$/, "")));
  return html`
    <div
      class="text long"
      tabindex="0"
      role="region"
      aria-label=${label}
      onScroll=${(/** @type {any} */ e) => setFirst(Math.floor(e.currentTarget.scrollTop / lineHeight))}
    >
      <div class="tall" style=${{ height: rows * lineHeight + "px" }}>
        <pre style=${{ transform: `translateY(${from * lineHeight}px)` }}>${shown.join("\n")}</pre>
      </div>
    </div>
    <p class="note">${count(rows, "row")}${rows === mostRows ? ": the rest is in the saved file" : ""}</p>
  `;
}

/** Returns where each row starts, and where the last one ends. @param {string} text */
function startsOf(text) {
  const starts = [0];
  for (let at = 0; at < text.length && starts.length <= mostRows; ) {
    const end = text.indexOf("\n", at);
    const next = end < 0 ? text.length : end + 1;
    for (at += widest; at < next && starts.length <= mostRows; at += widest) starts.push(at);
    starts.push(next);
    at = next;
  }
  return starts;
}
