// A button that copies a text, and says so without moving anything.

import { html, useEffect, useState } from "../html.js";

/** @param {{text: string, what: string}} p */
export function CopyButton({ text, what }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return;
    const t = setTimeout(() => setSaid(""), 2000);
    return () => clearTimeout(t);
  }, [said]);
  const copy = async () => setSaid(await write(text));
  return html`<button type="button" class="copy" onClick=${copy}>Copy ${what}<span class="said" role="status">${said}</span></button>`;
}

// navigator.clipboard is there on https and on this machine only; on others the old way still works.
/** @param {string} text */
async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return "copied";
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "away";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done ? "copied" : "can't copy: select it";
  }
}
