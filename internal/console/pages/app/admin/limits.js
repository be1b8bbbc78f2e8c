// How the server is, and what uses up its limits.

import { html, useEffect, useRef } from "../../html.js";
import { look, sentence } from "../api.js";
import { amount, bytes, count, moment, plain } from "../text.js";
import { Table, useAnswer } from "./table.js";

const every = 5000; // milliseconds

export function Limits() {
  const { data, problem, again } = useAnswer(async () => ({ status: await look("status"), top: await look("top", { limit: 1000 }) }));
  // Rows keep their places while the numbers change, until somebody wants them sorted.
  const order = useRef(/** @type {string[]} */ ([]));
  const sort = () => {
    order.current = [];
    again();
  };
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState !== "hidden" && again(), every);
    return () => clearInterval(timer);
  }, []);
  if (!data) return html`<article class="page"><h1>Limits</h1><p class="empty">${problem ? plain(sentence(problem), 600) : "Asking the server…"}</p></article>`;
  const { status: s, top } = data;
  const l = s.limits;
  const tools = inOrder(order.current, toolsOf(top, s.calls.busy));
  return html`<article class="page">
    <h1>Limits</h1>
    ${problem ? html`<p class="wrong" role="alert">${plain(sentence(problem), 600)}</p>` : null}
    <dl class="numbers">
      <div><dt>takes calls</dt><dd>${s.ready ? "yes" : "no: " + plain(s.because, 200)}</dd></div>
      <div><dt>state</dt><dd>${plain(s.state, 200)}</dd></div>
      <div><dt>tools</dt><dd>${count(s.tools.all, "tool")}, ${s.tools.disabled} disabled, ${s.tools.not_granted} not granted</dd></div>
      <div><dt>calls</dt><dd>${s.calls.running} running, ${s.calls.waiting} waiting</dd></div>
      <div><dt>since</dt><dd>${moment(s.server.since)}</dd></div>
      <div><dt>version</dt><dd>${plain(s.server.version, 80)}</dd></div>
    </dl>
    <${Use} name="Memory of tools" use=${l.memory} unit=${bytes} />
    <${Use} name="Compiled code" use=${l.code} unit=${bytes} />
    <${Use} name="Manifests" use=${l.manifests} unit=${bytes} />
    <${Use} name="Modules and scripts" use=${l.sources} unit=${bytes} />
    <${Use} name="Arguments and results" use=${l.bodies} unit=${bytes} />
    <${Use} name="Mappings" use=${l.mappings} unit=${(/** @type {number} */ n) => count(n, "mapping")} />
    <${Use} name="Connections" use=${l.connections} unit=${(/** @type {number} */ n) => count(n, "connection")} />
    <h2>What uses them up</h2>
    <div class="row"><button type="button" onClick=${sort}>Sort by calls</button></div>
    <${Table}
      label="Tools with calls"
      one="tool"
      items=${tools}
      keyOf=${(/** @type {any} */ t) => t.path}
      empty="No tool was called in the last hour."
      columns=${[
        { title: "Tool", cell: (/** @type {any} */ t) => t.path },
        { title: "Running", text: () => "", cell: (/** @type {any} */ t) => (t.places ? `${t.running} of ${count(t.places, "place")}` : "no calls") },
        { title: "Waiting", text: () => "", cell: (/** @type {any} */ t) => count(t.waiting ?? 0, "call") },
        { title: "Last minute", text: () => "", cell: (/** @type {any} */ t) => count(t.calls, "call") },
        { title: "Fuel in it", text: () => "", cell: (/** @type {any} */ t) => `${amount(t.fuel / 60)} instructions/s` },
        { title: "Last hour", text: () => "", cell: (/** @type {any} */ t) => count(t.hour, "call") },
      ]}
    />
  </article>`;
}

/** Returns what is known of each tool with calls, the busiest first. @param {any} top @param {any[]} busy */
function toolsOf(top, busy) {
  const all = new Map(top.tools.map((/** @type {any} */ t) => [t.tool, { path: t.tool, calls: t.minute.calls, fuel: t.minute.fuel, hour: t.hour.calls }]));
  for (const b of busy) all.set(b.path, { calls: 0, fuel: 0, hour: 0, ...all.get(b.path), ...b });
  return all;
}

/** Puts tools where they were, and new ones at the end. @param {string[]} order which grows @param {Map<string, any>} tools */
function inOrder(order, tools) {
  const known = new Set(order);
  for (const path of tools.keys()) if (!known.has(path)) order.push(path);
  return order.map((path) => tools.get(path) ?? { path, calls: 0, fuel: 0, hour: 0 });
}

/** @param {{name: string, use: any, unit: (n: number) => string}} p */
function Use({ name, use, unit }) {
  const limited = use.limit > 0;
  return html`<div class="use">
    <span>${name}</span>
    ${limited ? html`<meter aria-label=${name} min="0" max=${use.limit} high=${use.limit * 0.9} value=${use.held}></meter>` : html`<span></span>`}
    <span>${unit(use.held)}${limited ? " of " + (unit === bytes ? bytes(use.limit) : use.limit.toLocaleString("en")) : ", without a limit"}${use.waiting > 0 ? `, ${use.waiting} waiting` : ""}</span>
  </div>`;
}
