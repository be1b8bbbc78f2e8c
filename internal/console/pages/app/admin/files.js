// The files of the tools: put on the server, and removed from it.

import { html, useState } from "../../html.js";
import { any, change, look } from "../api.js";
import { Asking } from "../confirm.js";
import { mayChange } from "../session.js";
import { moment, plain } from "../text.js";
import { Put, Words } from "./putting.js";
import { Table, useAnswer } from "./table.js";

/** @param {{session: import("../session.js").Session, rows: import("../rows.js").Row[], changed: () => void}} p */
export function Files({ session, rows, changed }) {
  const { data, problem, again } = useAnswer(() => look("status", { all: true }));
  const [putting, setPutting] = useState(false);
  const [dropped, setDropped] = useState(/** @type {File|undefined} */ (undefined));
  const [said, setSaid] = useState("");
  const may = mayChange(session.self);
  const can = may && data?.puts.enabled;
  const done = async (/** @type {string} */ what) => {
    setPutting(false);
    setSaid(what);
    await again();
    changed();
  };
  const open = (/** @type {File|undefined} */ file) => {
    setDropped(file);
    setSaid("");
    setPutting(true);
  };
  // A file that is dropped beside a field would have the browser leave the page.
  const over = (/** @type {DragEvent} */ e) => e.preventDefault();
  const drop = (/** @type {DragEvent} */ e) => {
    e.preventDefault();
    if (can && e.dataTransfer?.files.length) open(e.dataTransfer.files[0]);
  };
  return html`<article class="page" onDragOver=${over} onDrop=${drop}>
    <h1>Files</h1>
    <p>The modules and scripts that the tools are in. Each version of one is checked before it is served, and a bad one changes nothing.</p>
    ${can ? html`<div class="row"><button type="button" onClick=${() => open(undefined)}>Put a file…</button><span class="note">or drop it here</span></div>` : null}
    ${may && data && !can ? html`<p class="note">Files are neither put nor removed here: the configuration has not set <code>[admin] upload = true</code>.</p>` : null}
    <p class="words" role="status">${plain(said, 2000)}</p>
    <${Table}
      label="Files"
      one="file"
      items=${data?.files}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ f) => f.file}
      empty="The server has no files of tools. Put one into its directory, and it stands here."
      columns=${[
        { title: "File", cell: (/** @type {any} */ f) => f.file },
        { title: "State", kind: "many", cell: (/** @type {any} */ f) => f.state + (f.reason ? ": " + f.reason : "") },
        { title: "Version", cell: (/** @type {any} */ f) => f.version ?? "" },
        { title: "Tools", cell: (/** @type {any} */ f) => (f.tools ?? []).join(" ") },
        { title: "Since", kind: "time", cell: (/** @type {any} */ f) => moment(f.since) },
        ...(can ? [{ title: "Actions", text: () => "", cell: (/** @type {any} */ f) => (f.name ? html`<${Remove} file=${f} done=${done} />` : "") }] : []),
      ]}
    />
    ${putting && data ? html`<${Put} dropped=${dropped} directories=${data.puts.directories} rows=${rows} done=${done} onClose=${() => setPutting(false)} />` : null}
  </article>`;
}

/** @param {{file: any, done: (what: string) => Promise<void>}} p */
function Remove({ file, done }) {
  const [told, setTold] = useState(/** @type {any} */ (null));
  const args = { name: file.name, directory: file.directory };
  // What goes is what was shown: if somebody has changed the file meanwhile, it stays.
  const opened = async () => {
    setTold(null);
    setTold(await change("remove", { ...args, dry_run: true }, any));
  };
  const act = async () => {
    await change("remove", args, told?.before);
    await done(`${file.name} is removed.`);
  };
  return html`<${Asking} label="Remove" title=${`Remove ${plain(file.name, 80)}?`} yes="Remove" danger onOpen=${opened} onYes=${act}>
    <p><code>${plain(file.file, 300)}</code></p>
    ${told
      ? html`<${Words} title="Tools that go" all=${told.tools} />
          ${told.tools.length === 0 ? html`<p>No tool of it is served.</p>` : html`<p>Running calls finish. Later ones are answered with 404.</p>`}
          <p>Where the server keeps versions, the page Versions has it, and puts it back.</p>`
      : null}
  <//>`;
}
