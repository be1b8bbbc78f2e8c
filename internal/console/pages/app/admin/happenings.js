// What happens to the server, and its log, as it comes.

import { html, useEffect, useMemo, useRef, useState } from "../../html.js";
import { look, sentence } from "../api.js";
import { write } from "../json.js";
import { useStill } from "../still.js";
import { moment, plain } from "../text.js";
import { Table } from "./table.js";

const kept = 1000; // lines
const pause = 1000; // milliseconds: each question is itself a line of the log
const wait = 10; // seconds that the server waits for a line

/**
 * @typedef {{key: string, time: string, kind: string, what: string, of: string}} Line
 * @typedef {{operation: string, title: string, about: string, empty: string, kind: string, next: (answer: any) => object, lines: (answer: any) => Line[]}} Source
 * A source says which operation tells of what happens, where to go on, and what of it is shown.
 */

/** Writes members as a line of the log's text form has them. @param {Record<string, unknown>} all */
function wordsOf(all) {
  return Object.entries(all ?? {})
    .map(([name, value]) => name + "=" + (typeof value === "string" ? value : write(value, 0)))
    .join("  ");
}

/** @type {Source} */
const log = {
  operation: "logs",
  title: "Log",
  about: "The lines of the log as they come; the newest first.",
  empty: "The log is empty.",
  kind: "Level",
  next: (answer) => ({ after: answer.last, run: answer.run }),
  lines: (answer) =>
    answer.lines
      // That this page asks for lines is itself a line.
      .filter((/** @type {any} */ l) => l.attributes?.operation !== "admin logs" && l.attributes?.operation !== "admin events")
      .map((/** @type {any} */ l) => ({ key: answer.run + l.number, time: l.time, kind: l.level, what: l.message, of: wordsOf(l.attributes) })),
};

/** @type {Source} */
const events = {
  operation: "events",
  title: "Events",
  about: "Tools that come, change, go or are switched, files that are refused, and what the audit has, as it happens; the newest first.",
  empty: "Nothing has happened since the server's start.",
  kind: "Kind",
  next: (answer) => ({ after: answer.last }),
  lines: (answer) => answer.events.map(eventOf),
};

/** @param {any} event @returns {Line} */
function eventOf({ id, kind, time, tool, file, audit, ...rest }) {
  if (audit) return { key: id, time, kind, what: `${audit.action} ${audit.target ?? ""}`, of: wordsOf({ who: audit.who, from: audit.from, ...(audit.refused ? { refused: audit.refused } : {}), ...(audit.after ? { after: audit.after } : {}) }) };
  return { key: id, time, kind, what: tool ?? file ?? "", of: wordsOf({ ...rest, ...(rest.digest ? { digest: String(rest.digest).slice(0, 12) } : {}) }) };
}

/** @param {{source: Source}} p */
function Lines({ source }) {
  const { title, about, empty } = source;
  const [lines, setLines] = useState(/** @type {Line[]|undefined} */ (undefined));
  const [paused, setPaused] = useState(false);
  const [problem, setProblem] = useState("");
  const [tool, setTool] = useState(""); // a pattern: only lines of those that match
  const asked = useRef(tool); // an answer to what was asked before is not for this list
  const next = useRef(/** @type {object|undefined} */ (undefined));
  const shown = useRef(/** @type {Line[]|undefined} */ (undefined));
  const ask = (/** @type {any} */ e) => {
    e.preventDefault();
    const pattern = String(new FormData(e.currentTarget).get("tool")).trim();
    if (pattern === tool) return;
    asked.current = pattern;
    next.current = shown.current = undefined;
    setLines(undefined);
    setPaused(false);
    setTool(pattern);
  };
  useEffect(() => {
    if (paused) return;
    const control = new AbortController();
    const follow = async () => {
      while (!control.signal.aborted) {
        try {
          const answer = await look(source.operation, { tool, ...(next.current ? { ...next.current, wait, limit: 1000 } : { limit: 200 }) }, control.signal);
          if (asked.current !== tool) return;
          setProblem(answer.missed && next.current ? "There was more than the server keeps." : "");
          next.current = source.next(answer);
          const more = source.lines(answer).reverse();
          setLines((/** @type {Line[]|undefined} */ old) => (more.length > 0 || !old ? [...more, ...(old ?? [])].slice(0, kept) : old));
        } catch (e) {
          if (control.signal.aborted) return;
          setProblem(sentence(e));
        }
        await new Promise((go) => setTimeout(go, pause));
      }
    };
    follow();
    return () => control.abort();
  }, [paused, tool]);
  // Lines that come while somebody points at one or reads on would move it away: the list stands still then.
  const { still, handlers } = useStill();
  if (!still) shown.current = lines;
  const waiting = useMemo(() => (lines && shown.current ? lines.indexOf(shown.current[0]) : 0), [lines, still]);
  return html`<article class="page">
    <h1>${title}</h1>
    <p>${about}</p>
    <form class="row" onSubmit=${ask}>
      <label for="of-tool">Tools</label>
      <input id="of-tool" name="tool" autocomplete="off" spellcheck=${false} placeholder="all, or such as math/*" />
      <button>Ask</button>
    </form>
    <div class="row">
      <button type="button" aria-pressed=${paused ? "true" : "false"} onClick=${() => setPaused(!paused)}>Pause</button>
      <span class="note" role="status">${still && waiting > 0 ? `${waiting} new: they show once pointer and focus are away from the list` : ""} ${plain(problem, 300)}</span>
    </div>
    <div ...${handlers}>
      <${Table}
        label=${title}
        one="line"
        items=${shown.current}
        keyOf=${(/** @type {Line} */ l) => l.key}
        empty=${tool ? "There is nothing of such tools." : empty}
        columns=${[
          { title: "Time", kind: "time", cell: (/** @type {Line} */ l) => moment(l.time) },
          { title: source.kind, cell: (/** @type {Line} */ l) => l.kind },
          { title: "What", cell: (/** @type {Line} */ l) => l.what },
          { title: "Of", kind: "many", cell: (/** @type {Line} */ l) => l.of },
        ]}
      />
    </div>
  </article>`;
}

export const Events = () => html`<${Lines} source=${events} />`;

export const Log = () => html`<${Lines} source=${log} />`;
