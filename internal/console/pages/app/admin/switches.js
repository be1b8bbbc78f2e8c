// What is switched on and off, above what the configuration says.

import { html, useState } from "../../html.js";
import { change, look } from "../api.js";
import { Asking } from "../confirm.js";
import { Field } from "../field.js";
import { mayChange } from "../session.js";
import { Passing } from "../switch.js";
import { count, moment, plain } from "../text.js";
import { Table, useAnswer } from "./table.js";

/** @param {{session: import("../session.js").Session, rows: import("../rows.js").Row[], changed: () => void}} p */
export function Switches({ session, rows, changed }) {
  const { data, problem, again } = useAnswer(() => look("switches"));
  const may = mayChange(session.self);
  const act = async (/** @type {string} */ operation, /** @type {object} */ args) => {
    await change(operation, args, data?.version);
    await again();
    changed();
  };
  return html`<article class="page">
    <h1>Switches</h1>
    <p>A switch overrides the configuration. If several cover a tool, the most specific one counts.</p>
    ${may ? html`<div class="row"><${SwitchOne} to="disable" rows=${rows} act=${act} again=${again} /><${SwitchOne} to="enable" rows=${rows} act=${act} again=${again} /></div>` : null}
    <${Table}
      label="Switches"
      one="switch"
      items=${data?.switches}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ s) => s.scope}
      empty="Nothing has been switched: the configuration decides about every tool. A tool is switched on its page."
      columns=${[
        { title: "Tool or namespace", cell: (/** @type {any} */ s) => s.scope },
        { title: "State", cell: (/** @type {any} */ s) => (s.enabled ? "enabled" : "disabled") + (s.until_restart ? " until restart" : "") },
        { title: "Reason", cell: (/** @type {any} */ s) => s.reason ?? "" },
        { title: "By", cell: (/** @type {any} */ s) => s.who ?? "the program" },
        { title: "Since", kind: "time", cell: (/** @type {any} */ s) => moment(s.since) },
        ...(may
          ? [
              {
                title: "Actions",
                text: () => "",
                cell: (/** @type {any} */ s) => html`<${Asking} label="Reset" title=${`Reset ${s.scope}?`} yes="Reset" onOpen=${again} onYes=${() => act("reset", { names: [s.scope.slice(1) || "*"] })}>
                  <p>The switch of <code>${s.scope}</code> is taken back. The configuration decides again, or a switch of a namespace around it.</p>
                <//>`,
              },
            ]
          : []),
      ]}
    />
  </article>`;
}

/** Returns the tools that names mean, as the server does. @param {string[]} names @param {import("../rows.js").Row[]} rows */
function meant(names, rows) {
  const paths = names.map((name) => "/" + name.replace(/^\//, ""));
  return rows.filter((r) => names.includes("*") || paths.some((path) => r.path === path || r.path.startsWith(path + "/")));
}

const fewMeant = 10;

/** @param {{to: "enable"|"disable", rows: import("../rows.js").Row[], act: (operation: string, args: object) => Promise<void>, again: () => Promise<void>}} p */
function SwitchOne({ to, rows, act, again }) {
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const [passing, setPassing] = useState(false);
  const off = to === "disable";
  const names = name.split(/\s+/).filter(Boolean);
  const tools = meant(names, rows);
  const label = off ? "Disable…" : "Enable…";
  return html`<${Asking}
    label=${label}
    title=${off ? "Disable tools" : "Enable tools"}
    yes=${off ? "Disable" : "Enable"}
    danger=${off}
    onOpen=${again}
    onYes=${() => act(to, { names, ...(passing ? { until_restart: true } : {}), ...(reason.trim() ? { reason: reason.trim() } : {}) })}
  >
    <${Field} label="Tools and namespaces" hint="Such as math/add, math, or * for all; several with spaces between" value=${name} onInput=${setName} required />
    <${Field} label=${off ? "Reason, which callers are told" : "Reason"} value=${reason} onInput=${setReason} />
    <${Passing} passing=${passing} onChange=${setPassing} />
    <p role="status">${names.length === 0 ? "Which tools that means stands here." : html`<strong>${off ? "Disables" : "Enables"} ${count(tools.length, "tool")}</strong>${tools.length > 0 ? ": " : "."}<bdi>${plain(tools.slice(0, fewMeant).map((r) => r.path).join(", "), 600)}</bdi>${tools.length > fewMeant ? ` and ${count(tools.length - fewMeant, "other")}` : ""}`}</p>
    <p>${off ? "Running calls go on. Later ones are answered with 503 and the reason." : "They can be called at once, whatever the configuration says of them."}</p>
  <//>`;
}
