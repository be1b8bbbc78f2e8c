// The numbers of a tool's last hour, and its last errors, for who may see them. They are asked for while the page is looked at.

import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { root } from "../server.js";
import { look } from "./api.js";
import { LastErrors, entriesOf } from "./lasterrors.js";
import { amount, count, duration } from "./text.js";

const every = 10_000; // milliseconds: the server counts in steps of ten seconds
const steps = 360;

/** @param {{path: string}} p */
export function Hour({ path }) {
  const [top, setTop] = useState(/** @type {any} */ (undefined));
  const [errors, setErrors] = useState(/** @type {any[]} */ ([]));
  useEffect(() => {
    const control = new AbortController();
    const read = async () => {
      if (document.visibilityState === "hidden") return;
      const pattern = path.slice(1);
      try {
        const [numbers, log] = await Promise.all([look("top", { pattern, steps, limit: 1 }, control.signal), look("logs", { tool: pattern, limit: 1000 }, control.signal)]);
        setTop(numbers.tools.find((/** @type {any} */ t) => t.tool === path) ?? null);
        setErrors(entriesOf(log.lines, path));
      } catch {
        // The numbers stay as they were. What is wrong shows where something is done.
      }
    };
    read();
    const timer = setInterval(read, every);
    return () => {
      clearInterval(timer);
      control.abort();
    };
  }, [path]);
  return html`<section aria-labelledby="hour">
    <h2 id="hour">Last hour</h2>
    <div class="hour">${top === undefined ? html`<p class="empty">Asking…</p>` : top === null ? html`<p class="empty">Nobody has called it in the last hour.</p>` : html`<${Numbers} top=${top} />`}</div>
    <${LastErrors} entries=${errors} />
  </section>`;
}

/** @param {{top: any}} p */
function Numbers({ top }) {
  const { minute, hour } = top;
  return html`<dl class="numbers">
      <div><dt>in the last minute</dt><dd>${(minute.calls / 60).toFixed(1)} calls/s</dd></div>
      <div><dt>half took at most</dt><dd>${duration(minute.p50)}</dd></div>
      <div><dt>99 % took at most</dt><dd>${duration(minute.p99)}</dd></div>
      <div><dt>fuel burned, in instructions</dt><dd>${amount(minute.fuel / 60)}/s${minute.calls > 0 ? `, ${amount(minute.fuel / minute.calls)} a call` : ""}</dd></div>
      <div><dt>in the last hour</dt><dd>${count(hour.calls, "call")}</dd></div>
      <div><dt>of these failed</dt><dd>${hour.failed.toLocaleString("en")}${hour.calls > 0 ? ` (${((100 * hour.failed) / hour.calls).toFixed(1)} %)` : ""}</dd></div>
    </dl>
    <div class="plots">
      <${Plot} steps=${top.steps ?? []} title="calls/s" pick=${(/** @type {any} */ s) => [s.calls / 10, s.failed / 10]} names=${["calls/s", "failed/s"]} />
      <${Plot} steps=${top.steps ?? []} title="time in ms" pick=${(/** @type {any} */ s) => [s.calls ? s.p50 * 1000 : null, s.calls ? s.p99 * 1000 : null]} names=${["p50 in ms", "p99 in ms"]} />
      <${Plot} steps=${top.steps ?? []} title="fuel" pick=${(/** @type {any} */ s) => [s.fuel / 10]} names=${["instructions/s"]} />
    </div>`;
}

/** A plot. The numbers above it say in words what it shows. @param {{steps: any[], title: string, names: string[], pick: (step: any) => (number|null)[]}} p */
function Plot({ steps, title, names, pick }) {
  const place = useRef(/** @type {HTMLElement|null} */ (null));
  const plot = useRef(/** @type {any} */ (null));
  const data = useMemo(() => {
    const picked = steps.map(pick);
    return [steps.map((_, i) => (i - steps.length + 1) / 6), ...names.map((_, n) => picked.map((v) => v[n]))]; // x in minutes
  }, [steps]);
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    let gone = false;
    let watch = /** @type {ResizeObserver|null} */ (null);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const redraw = () => plot.current?.redraw(false);
    dark.addEventListener("change", redraw);
    library().then((uPlot) => {
      if (gone || !place.current) return;
      const colour = (/** @type {string} */ name) => () => colourOf(place.current, name);
      const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
      const width = () => Math.max(200, place.current?.clientWidth ?? 200);
      plot.current = new uPlot(
        {
          width: width(),
          height: 160,
          legend: { show: false },
          cursor: { show: false },
          scales: { x: { time: false }, y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [0, high > 0 ? high * 1.1 : 1] } },
          axes: [{ ...axis, values: (/** @type {any} */ _, /** @type {number[]} */ v) => v.map((m) => (m === 0 ? "now" : m + " min")) }, { ...axis, size: 60, values: (/** @type {any} */ _, /** @type {number[]} */ v) => v.map(amount) }],
          series: [{}, ...names.map((label, n) => ({ label, stroke: colour(["--link", "--warn"][n]), width: 2 }))],
        },
        latest.current,
        place.current,
      );
      watch = new ResizeObserver(() => plot.current?.setSize({ width: width(), height: 160 }));
      watch.observe(place.current);
    });
    return () => {
      gone = true;
      dark.removeEventListener("change", redraw);
      watch?.disconnect();
      plot.current?.destroy();
    };
  }, []);
  useEffect(() => plot.current?.setData(data), [data]);
  return html`<figure class="plot">
    <figcaption>${title} ${names.map((name, n) => html`<span class=${"key " + ["first", "second"][n]}>${name}</span> `)}</figcaption>
    <div ref=${place} class="canvas" aria-hidden="true"></div>
  </figure>`;
}

// A canvas knows no light-dark(), which a variable of the style sheet has as its text, so an element says which colour that is now.
/** @param {HTMLElement|null} place @param {string} name */
function colourOf(place, name) {
  if (!place) return "";
  place.style.color = `var(${name})`;
  return getComputedStyle(place).color;
}

// The library is for those only who see numbers, so it is loaded with the first plot.
let loaded = /** @type {Promise<any>|undefined} */ (undefined);
function library() {
  loaded ??= import("../lib/uplot.js").then((m) => {
    const link = document.createElement("link");
    link.rel = "stylesheet";
    link.href = new URL("console/lib/uplot.css", root).href;
    document.head.append(link);
    return m.default;
  });
  return loaded;
}
