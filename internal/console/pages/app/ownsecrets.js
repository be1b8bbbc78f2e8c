// Sets and removes secrets that callers have of their own. No page is ever told a value.

import { html, useState } from "../html.js";
import { any, change } from "./api.js";
import { Asking } from "./confirm.js";
import { Field } from "./field.js";
import { plain } from "./text.js";

/**
 * A button that sets a secret. Without a principal it is the caller's own. What is empty of name and principal is asked for, if all is there.
 * @param {{label: string, name?: string, principal?: string, others?: boolean, version?: string, done: (what: string) => Promise<void>}} p others is whether it is somebody else's
 */
export function SetSecret({ label, name = "", principal = "", others, version, done }) {
  const [typedName, setName] = useState("");
  const [typedOwner, setOwner] = useState("");
  const [value, setValue] = useState("");
  const act = async () => {
    const owner = principal || typedOwner.trim();
    const { secret, warnings } = await change("secrets/set", { name: name || typedName.trim(), value, ...(others ? { principal: owner } : {}) }, version ?? any);
    await done([`${secret.name} is set.`, ...(warnings ?? [])].join(" Note: "));
  };
  return html`<${Asking} label=${label} title=${name ? `Set ${plain(name, 64)}` : "Set a secret"} yes="Set it" onYes=${act} onClose=${() => setValue("")}>
    ${others && principal ? html`<p>Of <code>${plain(principal, 200)}</code></p>` : null}
    ${others && !principal ? html`<${Field} label="Caller" hint="Such as issued+ann: each caller finds this on the page You" value=${typedOwner} onInput=${setOwner} required />` : null}
    ${name ? null : html`<${Field} label="Name" hint="As grants have it, such as github" value=${typedName} onInput=${setName} required />`}
    <${Field} label="Secret" type="password" hint="16 bytes to 4 KiB, without blanks. Nobody is ever shown it again." value=${value} onInput=${setValue} required />
    <p>It is in force at once${version ? ", in place of the one that is set" : ""}.</p>
  <//>`;
}

/** @param {{secret: any, others?: boolean, tools?: string[], done: (what: string) => Promise<void>}} p */
export function RemoveSecret({ secret, others, tools = [], done }) {
  const { name, principal, version } = secret;
  const act = async () => {
    await change("secrets/remove", { name, ...(others ? { principal } : {}) }, version);
    await done(`${name} is removed.`);
  };
  return html`<${Asking} label="Remove" title=${`Remove ${plain(name, 64)}?`} yes="Remove" danger onYes=${act}>
    ${others ? html`<p>Of <code>${plain(principal, 200)}</code></p>` : null}
    <p>From then on, tools that use it can't act for ${others ? "this caller" : "you"}${tools.length > 0 ? html`: <code>${plain(tools.join(" "), 600)}</code>` : ""}. Nobody can be told its value, so nothing but the value itself sets it again.</p>
  <//>`;
}
