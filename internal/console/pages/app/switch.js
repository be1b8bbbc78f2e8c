// Switches a tool off and on, over what the configuration says.

import { html, useState } from "../html.js";
import { change, look } from "./api.js";
import { Asking } from "./confirm.js";
import { Field } from "./field.js";

/** A box for a switch that a restart takes back. @param {{passing: boolean, onChange: (passing: boolean) => void}} p */
export const Passing = ({ passing, onChange }) =>
  html`<p><label><input type="checkbox" checked=${passing} onChange=${(/** @type {any} */ e) => onChange(e.currentTarget.checked)} /> Until the server is restarted only</label></p>`;

/** @param {{row: import("./rows.js").Row, changed: () => void}} p */
export function Switch({ row, changed }) {
  const [reason, setReason] = useState("");
  const [passing, setPassing] = useState(false);
  const [version, setVersion] = useState("");
  const names = [row.path.slice(1)];
  const by = row.told?.why?.by;
  // The version is from the moment in which the question was shown: if somebody else switches meanwhile, nothing is changed.
  const opened = async () => setVersion((await look("switches")).version);
  const act = (/** @type {string} */ operation, /** @type {object} */ args) => async () => {
    await change(operation, args, version);
    setReason("");
    setPassing(false);
    changed();
  };
  const until = passing ? { until_restart: true } : {};
  const reasoned = { names, ...until, ...(reason.trim() === "" ? {} : { reason: reason.trim() }) };
  return html`<div class="row">
    ${row.state === "enabled"
      ? html`<${Asking} label="Disable" title=${"Disable " + row.path + "?"} yes="Disable" danger onOpen=${opened} onYes=${act("disable", reasoned)}>
          <p>Running calls go on. Later ones are answered with 503 and the reason, until somebody enables the tool.</p>
          <${Field} label="Reason, which callers are told" value=${reason} onInput=${setReason} />
          <${Passing} passing=${passing} onChange=${setPassing} />
        <//>`
      : null}
    ${row.state === "disabled"
      ? html`<${Asking} label="Enable" title=${"Enable " + row.path + "?"} yes="Enable" onOpen=${opened} onYes=${act("enable", { names, ...until })}>
          <p>It can be called at once, whatever the configuration says of it.</p>
          <${Passing} passing=${passing} onChange=${setPassing} />
        <//>`
      : null}
    ${by === "switch"
      ? html`<${Asking} label="Reset" title=${"Reset " + row.path + "?"} yes="Reset" onOpen=${opened} onYes=${act("reset", { names })}>
          <p>The switch is taken back, and the configuration decides again whether the tool can be called.</p>
        <//>`
      : null}
  </div>`;
}
