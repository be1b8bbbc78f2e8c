// What a tool answered. It is hostile: text is shown as text, whatever markup it has; pictures and sounds only of types that are nothing but
// pictures and sounds. Everything else can be saved, and is never opened in this page or at its address.

import { html, useEffect, useMemo, useState } from "../html.js";
import { indented } from "./json.js";
import { bytes, count, plain, sizeOf } from "./text.js";
import { CopyButton } from "./copy.js";
import { TextView } from "./textview.js";

// SVG is not among them: it is a document.
const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);
const sounds = new Set(["audio/mpeg", "audio/mp3", "audio/wav", "audio/x-wav", "audio/wave", "audio/ogg", "audio/flac", "audio/aac", "audio/mp4", "audio/webm"]);
const fewFiles = 12;

/** @param {{result: import("./call.js").Result, name: string}} p */
export function ResultView({ result, name }) {
  const [all, setAll] = useState(false);
  const text = useMemo(() => (result.json ? indented(result.text) : result.text), [result]);
  const size = useMemo(() => sizeOf(result.text), [result]);
  const files = all ? result.files : result.files.slice(0, fewFiles);
  return html`
    ${files.map((f, i) => html`<${FileView} key=${i} file=${f} name=${`${name}-${i + 1}`} />`)}
    ${files.length < result.files.length ? html`<button type="button" onClick=${() => setAll(true)}>Show ${count(result.files.length - files.length, "other file")}</button>` : null}
    <${TextView} text=${text === "" ? "(empty)" : text} label="Answer" />
    <div class="row">
      <${CopyButton} text=${result.text} what="result" />
      <button type="button" onClick=${() => save(new Blob([result.text]), name + (result.json ? ".json" : ".txt"))}>Save result</button>
      <span class="note">${bytes(size)}</span>
    </div>
  `;
}

/** @param {{file: import("./call.js").File, name: string}} p */
function FileView({ file, name }) {
  const type = file.type.toLowerCase().split(";")[0].trim();
  const data = useMemo(() => decoded(file.data), [file.data]);
  const shown = data && (pictures.has(type) || sounds.has(type));
  const [url, setURL] = useState("");
  useEffect(() => {
    if (!data || !shown) return;
    const made = URL.createObjectURL(new Blob([data], { type }));
    setURL(made);
    return () => URL.revokeObjectURL(made);
  }, [data, type, shown]);
  const label = plain(file.type, 80) || "file";
  if (!data) return html`<p class="note">A file (${label}) that can't be decoded</p>`;
  return html`<figure class="file">
    ${url && pictures.has(type) ? html`<img src=${url} alt=${`Picture in the result, ${label}`} />` : null}
    ${url && sounds.has(type) ? html`<audio controls src=${url} aria-label=${`Sound in the result, ${label}`}></audio>` : null}
    <figcaption class="row">
      <span><bdi>${label}</bdi>, ${bytes(data.length)}</span>
      <button type="button" onClick=${() => save(new Blob([data]), name + endingOf(type))}>Save file</button>
    </figcaption>
  </figure>`;
}

/** @param {string} text */
function decoded(text) {
  try {
    const raw = atob(text);
    const data = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i++) data[i] = raw.charCodeAt(i);
    return data;
  } catch {
    return null;
  }
}

/** @param {string} type */
function endingOf(type) {
  const known = /^(?:image|audio|text|application)\/(?:x-)?([a-z0-9]{1,8})$/.exec(type);
  return known ? "." + known[1] : ".bin";
}

/** Saves bytes as a file. Their type is left out, and no link stays in the page: a document of a tool, opened at an address of this page, would
 * be a page of this origin. @param {Blob} data @param {string} name */
export function save(data, name) {
  const url = URL.createObjectURL(new Blob([data], { type: "application/octet-stream" }));
  const a = document.createElement("a");
  a.href = url;
  a.download = name.replace(/[^A-Za-z0-9._-]/g, "-");
  a.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
