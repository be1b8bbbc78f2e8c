// What happens to the server, and its log, as it comes.

import { html, useEffect, useMemo, useRef, useState } from "../../html.js";
import { look, sentence } from "../api.js";
import { write } from "../json.js";
import { duration, moment, plain } from "../text.js";
import { Table } from "./table.js";

const kept = 1000; // lines
const pause = 1000; // milliseconds: each question is itself a line of the log
const wait = 10; // seconds that the server waits for a line

/** Writes attributes as a line of the log's text form has them. @param {Record<string, unknown>} attributes */
function wordsOf(attributes) {
  return Object.entries(attributes ?? {})
    .map(([name, value]) => name + "=" + (name === "duration" && typeof value === "number" ? duration(value / 1e9) : typeof value === "string" ? value : write(value, 0)))
    .join("  ");
}

/** Whether a line tells of something else than that this page asks for lines. @param {any} line */
const isOther = (line) => line.attributes?.operation !== "admin logs" && line.attributes?.operation !== "admin events";

/** @param {{operation: string, title: string, about: string, empty: string}} p */
function Lines({ operation, title, about, empty }) {
  const [lines, setLines] = useState(/** @type {any[]|undefined} */ (undefined));
  const [paused, setPaused] = useState(false);
  const [problem, setProblem] = useState("");
  const after = useRef(/** @type {number|undefined} */ (undefined));
  useEffect(() => {
    if (paused) return;
    const control = new AbortController();
    const follow = async () => {
      while (!control.signal.aborted) {
        try {
          const answer = await look(operation, after.current === undefined ? { limit: 200 } : { after: after.current, wait, limit: 1000 }, control.signal);
          after.current = answer.last;
          setProblem(answer.missed > 0 ? `${answer.missed} lines came too fast to be kept.` : "");
          setLines((/** @type {any[]|undefined} */ old) => (answer.lines.length > 0 || !old ? [...answer.lines.filter(isOther).reverse(), ...(old ?? [])].slice(0, kept) : old));
        } catch (e) {
          if (control.signal.aborted) return;
          setProblem(sentence(e));
        }
        await new Promise((next) => setTimeout(next, pause));
      }
    };
    follow();
    return () => control.abort();
  }, [paused, operation]);
  // Lines that come while somebody points at one or reads on would move it away: the list stands still then.
  const [still, setStill] = useState(false);
  const shown = useRef(lines);
  if (!still) shown.current = lines;
  const waiting = useMemo(() => (lines && shown.current ? lines.indexOf(shown.current[0]) : 0), [lines, still]);
  return html`<article class="page">
    <h1>${title}</h1>
    <p>${about}</p>
    <div class="row">
      <button type="button" aria-pressed=${paused ? "true" : "false"} onClick=${() => setPaused(!paused)}>Pause</button>
      <span class="note" role="status">${still && waiting > 0 ? `${waiting} new: move the pointer away from the list to see them` : ""} ${plain(problem, 300)}</span>
    </div>
    <div onPointerEnter=${() => setStill(true)} onPointerLeave=${() => setStill(false)}>
      <${Table}
        label=${title}
        one="line"
        items=${shown.current}
        keyOf=${(/** @type {any} */ l) => String(l.number)}
        empty=${empty}
        columns=${[
          { title: "Time", kind: "time", cell: (/** @type {any} */ l) => moment(l.time) },
          { title: "Level", cell: (/** @type {any} */ l) => l.level },
          { title: "What", cell: (/** @type {any} */ l) => l.message },
          { title: "Of", kind: "many", cell: (/** @type {any} */ l) => wordsOf(l.attributes) },
        ]}
      />
    </div>
  </article>`;
}

export const Events = () => html`<${Lines} operation="events" title="Events" about="Changes of files, switches, tokens and the configuration, as they happen; the newest first." empty="Nothing has happened since the server's start." />`;

export const Log = () => html`<${Lines} operation="logs" title="Log" about="The lines of the log as they come; the newest first." empty="The log is empty." />`;
