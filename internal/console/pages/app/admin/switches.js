// What is switched on and off, above what the configuration says.

import { html, useState } from "../../html.js";
import { change, look } from "../api.js";
import { Asking } from "../confirm.js";
import { Field } from "../field.js";
import { mayChange } from "../session.js";
import { moment } from "../text.js";
import { Table, useAnswer } from "./table.js";

/** @param {{session: import("../session.js").Session, changed: () => void}} p */
export function Switches({ session, changed }) {
  const { data, problem, again } = useAnswer(() => look("switches"));
  const may = mayChange(session.self);
  const act = async (/** @type {string} */ operation, /** @type {object} */ args) => {
    await change(operation, args, data?.version);
    await again();
    changed();
  };
  return html`<article class="page">
    <h1>Switches</h1>
    <p>A switch holds above the configuration. Of those that cover a tool, the nearest counts.</p>
    ${may ? html`<div class="row"><${SwitchOne} to="disable" act=${act} again=${again} /><${SwitchOne} to="enable" act=${act} again=${again} /></div>` : null}
    <${Table}
      label="Switches"
      one="switch"
      items=${data?.switches}
      problem=${problem}
      again=${again}
      keyOf=${(/** @type {any} */ s) => s.scope}
      empty="Nothing is switched: the configuration decides of every tool. A tool is switched on its page."
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

/** @param {{to: "enable"|"disable", act: (operation: string, args: object) => Promise<void>, again: () => Promise<void>}} p */
function SwitchOne({ to, act, again }) {
  const [name, setName] = useState("");
  const [reason, setReason] = useState("");
  const off = to === "disable";
  const label = off ? "Disable…" : "Enable…";
  return html`<${Asking}
    label=${label}
    title=${off ? "Disable tools" : "Enable tools"}
    yes=${off ? "Disable" : "Enable"}
    danger=${off}
    onOpen=${again}
    onYes=${() => act(to, { names: name.split(/\s+/).filter(Boolean), ...(reason.trim() ? { reason: reason.trim() } : {}) })}
  >
    <${Field} label="Tools and namespaces" hint="Such as math/add, math, or * for all; several with spaces between" value=${name} onInput=${setName} required />
    <${Field} label=${off ? "Reason, which callers are told" : "Reason"} value=${reason} onInput=${setReason} />
    <p>${off ? "Running calls go on. Later ones are answered with 503 and the reason." : "They can be called at once, whatever the configuration says of them."}</p>
  <//>`;
}
