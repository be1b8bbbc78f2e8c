// Puts a file on the server. It is checked there first, and what would change is shown before it does.

import { html, useEffect, useId, useRef, useState } from "../../html.js";
import { any, give, sentence } from "../api.js";
import { Dialog } from "../confirm.js";
import { Field } from "../field.js";
import { bytes, count, plain } from "../text.js";

// What the server takes, in bytes.
const mostModule = 64 << 20;
const mostScript = 16 << 20;
const fewWords = 100;

/** @param {{dropped: File|undefined, directories: string[], rows: import("../rows.js").Row[], done: (what: string) => Promise<void>, onClose: () => void}} p */
export function Put({ dropped, directories, rows, done, onClose }) {
  const id = useId();
  const [file, setFile] = useState(/** @type {{name: string, size: number, content: ArrayBuffer}|null} */ (null));
  const [name, setName] = useState("");
  const [directory, setDirectory] = useState(directories[0] ?? "");
  const [checked, setChecked] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(/** @type {""|"check"|"put"} */ (""));
  const asked = useRef(new AbortController()); // what is under way, for what is chosen now
  const own = useRef(""); // the name that the chosen file has brought

  // What was checked was another file, or another place.
  const anew = () => {
    asked.current.abort();
    setChecked(null);
    setProblem("");
    setBusy("");
    return (asked.current = new AbortController()).signal;
  };
  useEffect(() => () => asked.current.abort(), []);
  useEffect(() => void (dropped && choose(dropped)), [dropped]);

  const choose = async (/** @type {File|undefined} */ f) => {
    const signal = anew();
    setFile(null);
    if (!f) return;
    const most = f.name.endsWith(".wasm") ? mostModule : mostScript;
    if (f.size > most) return setProblem(`The file has ${bytes(f.size)}, and the server takes at most ${bytes(most)} of a ${most === mostModule ? "module" : "script"}.`);
    try {
      // What is checked and what is put are the same bytes, whatever becomes of the file here.
      const content = await f.arrayBuffer();
      if (signal.aborted) return;
      setFile({ name: f.name, size: f.size, content });
      const before = own.current;
      own.current = f.name;
      setName((/** @type {string} */ typed) => (typed === before ? f.name : typed));
    } catch {
      if (!signal.aborted) setProblem("The browser can't read it: choose a file, not a folder, and one that is still there.");
    }
  };
  const act = async (/** @type {"check"|"put"} */ doing, /** @type {(signal: AbortSignal) => Promise<void>} */ what) => {
    const { signal } = asked.current;
    setProblem("");
    setBusy(doing);
    try {
      await what(signal);
    } catch (e) {
      if (!signal.aborted) setProblem(sentence(e));
    }
    if (!signal.aborted) setBusy("");
  };
  const args = { name: name.trim(), directory: directories.length > 1 ? directory : undefined };
  const check = (/** @type {any} */ e) => {
    e.preventDefault();
    if (busy) return;
    if (!file) return setProblem("Choose a file first.");
    act("check", async (signal) => {
      const answer = await give("put", { ...args, dry_run: true }, file.content, any, signal);
      if (!signal.aborted) setChecked(answer);
    });
  };
  const ready = checked?.changed && !busy;
  const put = () => {
    if (!ready || !file) return;
    act("put", async (signal) => {
      const answer = await give("put", args, file.content, checked.before || "none", signal);
      await done(`${answer.file} is served: ${answer.tools.join(", ")}.`);
    });
  };
  return html`<${Dialog} title="Put a file" onClose=${onClose}>
    <form onSubmit=${check}>
      <div inert=${busy === "put"}>
      <div class="field">
        <label for=${id}>File</label>
        <input id=${id} type="file" aria-describedby=${id + "-hint"} onChange=${(/** @type {any} */ e) => choose(e.currentTarget.files[0])} />
        <p class="hint" id=${id + "-hint"}>${file ? html`<bdi>${plain(file.name, 120)}</bdi>, ${bytes(file.size)}` : `A module of at most ${bytes(mostModule)}, or a script of at most ${bytes(mostScript)}`}</p>
      </div>
      <${Field} label="Name on the server" hint="Its path in the tools directory, such as math/add.wasm" value=${name} onInput=${(/** @type {string} */ text) => (anew(), setName(text))} required />
      ${directories.length > 1
        ? html`<div class="field">
            <label for=${id + "-directory"}>Directory</label>
            <select id=${id + "-directory"} value=${directory} onChange=${(/** @type {any} */ e) => (anew(), setDirectory(e.currentTarget.value))}>${directories.map((d) => html`<option value=${d}>${plain(d, 200)}</option>`)}</select>
          </div>`
        : null}
      </div>
      <div role="status">
        ${busy ? html`<p class="note">${busy === "check" ? "The server checks it…" : "It is put, and served…"}</p>` : null}
        ${checked ? html`<${Outcome} placed=${checked} rows=${rows} />` : null}
      </div>
      <p class="hint" role="alert">${problem ? html`<strong class="wrong">${plain(problem, 2000)}</strong>` : null}</p>
      <div class="row">
        <button type="button" onClick=${onClose}>Cancel</button>
        <button aria-disabled=${busy ? "true" : undefined}>Check it</button>
        <button type="button" class=${checked?.before ? "danger" : "primary"} aria-disabled=${ready ? undefined : "true"} onClick=${put}>Put it</button>
      </div>
    </form>
  <//>`;
}

/** What a file would change. @param {{placed: any, rows: import("../rows.js").Row[]}} p */
function Outcome({ placed, rows }) {
  if (!placed.changed) return html`<p>The server has just this file already: nothing would change.</p>`;
  const known = new Set(rows.map((r) => r.path));
  return html`
    <p>${placed.before ? html`It replaces version <code>${placed.before.slice(0, 12)}</code> of ` : "It is new: "}<code>${plain(placed.file, 300)}</code></p>
    <${Words} title="Tools that come" all=${placed.tools.filter((/** @type {string} */ t) => !known.has(t))} />
    <${Words} title="Tools that change" all=${placed.tools.filter((/** @type {string} */ t) => known.has(t))} />
    <${Words} title="Tools that go" all=${placed.gone} />
    <${Words} title="Not granted" all=${placed.ungranted} />
    <${Words} title="Warnings" all=${placed.warnings} />
  `;
}

/** A list of words with a heading, or nothing. @param {{title: string, all: string[]}} p */
export function Words({ title, all }) {
  if (all.length === 0) return null;
  return html`<h3>${title}</h3>
    <ul>
      ${all.slice(0, fewWords).map((one) => html`<li><bdi class="words">${plain(one, 400)}</bdi></li>`)}
      ${all.length > fewWords ? html`<li>and ${count(all.length - fewWords, "other")}</li>` : null}
    </ul>`;
}
