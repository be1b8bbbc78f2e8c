// How the server is, and what uses up its limits.

import { html, useEffect, useRef } from "../../html.js";
import { look, sentence } from "../api.js";
import { useStill } from "../still.js";
import { amount, bytes, count, moment, plain } from "../text.js";
import { Table, useAnswer } from "./table.js";

const every = 5000; // milliseconds

export function Limits() {
  const { data, problem, again } = useAnswer(async () => ({ status: await look("status"), top: await look("top", { limit: 1000 }) }));
  // Rows keep their places while the numbers change, until somebody wants them sorted. New ones wait while somebody points at a list.
  const order = useRef(/** @type {string[]} */ ([]));
  const held = useRef(/** @type {Map<string, Held>} */ (new Map()));
  const { still, handlers } = useStill();
  const sort = () => {
    order.current = [];
    held.current = new Map();
    again();
  };
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState !== "hidden" && again(), every);
    return () => clearInterval(timer);
  }, []);
  if (!data) return html`<article class="page"><h1>Limits</h1><p class="empty">${problem ? plain(sentence(problem), 600) : "Asking the server…"}</p></article>`;
  const { status: s, top } = data;
  const l = s.limits;
  const tools = inOrder(order.current, toolsOf(top, s.calls.busy), still);
  const holders = keptOf(held.current, holdersOf(l), still);
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
    <${Use} name="Streams" use=${l.streams} unit=${(/** @type {number} */ n) => count(n, "stream")} />
    ${l.sessions ? html`<${Use} name="Sessions of MCP" use=${l.sessions} unit=${(/** @type {number} */ n) => count(n, "session")} />` : null}
    ${l.state ? html`<${Use} name="State on disk" use=${l.state} unit=${bytes} />` : null}
    <h2>What uses them up</h2>
    <div class="row"><button type="button" onClick=${sort}>Sort by calls</button></div>
    <div ...${handlers}>
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
    <h2>Who holds most</h2>
    <${Table}
      label="Who holds most"
      one="holder"
      items=${holders}
      keyOf=${(/** @type {Held} */ h) => h.key}
      empty="Nobody holds anything."
      columns=${[
        { title: "Of", cell: (/** @type {Held} */ h) => h.of },
        { title: "Who", cell: (/** @type {Held} */ h) => h.who },
        { title: "Held", text: () => "", cell: (/** @type {Held} */ h) => (h.held > 0 ? h.unit(h.held) : "less than others") },
      ]}
    />
    </div>
  </article>`;
}

/** @typedef {{key: string, of: string, who: string, held: number, unit: (n: number) => string}} Held */

/** Returns who holds most of each limit. @param {any} limits @returns {Map<string, Held>} */
function holdersOf(limits) {
  const all = new Map();
  for (const [name, of, unit] of /** @type {[string, string, (n: number) => string][]} */ ([
    ["memory", "memory of tools", bytes],
    ["code", "compiled code", bytes],
    ["mappings", "mappings", (n) => count(n, "mapping")],
    ["bodies", "arguments and results", bytes],
    ["connections", "connections", (n) => count(n, "connection")],
    ["streams", "streams", (n) => count(n, "stream")],
    ["sessions", "sessions of MCP", (n) => count(n, "session")],
  ])) {
    for (const h of limits[name]?.by ?? []) {
      const who = h.caller ?? (h.tools ?? []).join(", ") + (h.others ? ` and ${h.others} more` : "");
      all.set(name + " " + who, { key: name + " " + who, of, who, held: h.held, unit });
    }
  }
  return all;
}

/** Puts who holds something where they were, and new ones at the end. @param {Map<string, Held>} kept which grows @param {Map<string, Held>} now @param {boolean} still */
function keptOf(kept, now, still) {
  const empty = kept.size === 0;
  for (const [key, h] of kept) if (!now.has(key)) kept.set(key, { ...h, held: 0 });
  for (const [key, h] of now) if (!still || empty || kept.has(key)) kept.set(key, h);
  return [...kept.values()];
}

/** Returns what is known of each tool with calls, the busiest first. @param {any} top @param {any[]} busy */
function toolsOf(top, busy) {
  const all = new Map(top.tools.map((/** @type {any} */ t) => [t.tool, { path: t.tool, calls: t.minute.calls, fuel: t.minute.fuel, hour: t.hour.calls }]));
  for (const b of busy) all.set(b.path, { calls: 0, fuel: 0, hour: 0, ...all.get(b.path), ...b });
  return all;
}

/** Puts tools where they were, and new ones at the end. @param {string[]} order which grows @param {Map<string, any>} tools @param {boolean} still */
function inOrder(order, tools, still) {
  const known = new Set(order);
  for (const path of tools.keys()) if (!known.has(path) && (!still || known.size === 0)) order.push(path);
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
