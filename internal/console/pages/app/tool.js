// The page of one tool: what it is, a form that calls it, what it answers, and the same call from elsewhere.

import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { token } from "../server.js";
import { violationsOf } from "./api.js";
import { call } from "./call.js";
import { Dialog } from "./confirm.js";
import { Failed } from "./failed.js";
import { SchemaForm, initialOf, keyOf } from "./form.js";
import { Hour } from "./hour.js";
import { parse, write } from "./json.js";
import { ResultView } from "./result.js";
import { SchemaTable } from "./schematable.js";
import { typeOf } from "./schema.js";
import { mayChange, mayLook } from "./session.js";
import { Snippets } from "./snippetview.js";
import { Switch } from "./switch.js";
import { bytes, duration, plain, sizeOf } from "./text.js";

/** @param {{row: import("./rows.js").Row, session: import("./session.js").Session, changed: () => void}} p */
export function ToolPage({ row, session, changed }) {
  const { tool } = row;
  const heading = useRef(/** @type {HTMLElement|null} */ (null));
  useEffect(() => heading.current?.focus({ preventScroll: true }), []);
  return html`<article class="tool" aria-labelledby="tool-name">
    <header>
      <h1 id="tool-name" tabindex="-1" ref=${heading}><bdi>${plain(tool?.title || tool?.name || row.path, 200)}</bdi></h1>
      <p class="facts">
        <code>${row.path}</code> ${row.state === "unknown" ? null : html`<span class=${"state " + row.state}>${stateName(row.state)}</span>`}
        ${row.why ? html` <bdi class="why">${row.why}</bdi>` : null}
        ${tool?.version ? html` <span>version <bdi>${plain(tool.version, 60)}</bdi></span>` : null}
      </p>
      ${mayChange(session.self) ? html`<${Switch} row=${row} changed=${changed} />` : null}
    </header>
    ${tool ? html`<${About} tool=${tool} /><${Call} tool=${tool} callable=${row.state === "enabled"} mcp=${session.mcp} />` : html`<p class="empty">${absence(row, session)}</p>`}
    ${tool
      ? html`<section aria-labelledby="arguments"><h2 id="arguments">Arguments</h2><${SchemaTable} schema=${tool.parameters} name="arguments" empty="It takes none." /></section>
          <section aria-labelledby="result-schema"><h2 id="result-schema">Result</h2><${SchemaTable} schema=${tool.result} name="result" empty="Its author has not said what the result looks like. Call it to see one." /></section>`
      : null}
    ${mayLook(session.self) ? html`<${Hour} path=${row.path} />` : null}
  </article>`;
}

/** Says why there is nothing to call. @param {import("./rows.js").Row} row @param {import("./session.js").Session} session */
function absence(row, session) {
  if (row.state === "unknown") return "There is no such tool, or you may not call it.";
  if (row.state === "gone") return "The server no longer serves this tool, or you may no longer call it.";
  return "Nobody can call this tool at the moment, so its schema is not served." + (mayChange(session.self) && row.state === "disabled" ? " Enable it to see and to try it." : "");
}

/** @param {string} state */
export const stateName = (state) => ({ enabled: "enabled", disabled: "disabled", not_granted: "not granted", gone: "no longer served" })[state] ?? plain(state, 30);

const marks = /** @type {const} */ ([
  ["readOnly", "changes nothing", "changes something"],
  ["destructive", "may overwrite or delete something", "overwrites and deletes nothing"],
  ["idempotent", "can be repeated", "does more when it is repeated"],
  ["openWorld", "reaches other services", "reaches no other service"],
]);

const short = 1200; // characters of a description
const longest = 20_000;

/** @param {{tool: any}} p */
function About({ tool }) {
  const [all, setAll] = useState(false);
  const description = String(tool.description || "Its author has not described it.");
  const said = tool.annotations ?? {};
  const known = marks.filter(([name]) => typeof said[name] === "boolean").map(([name, yes, no]) => (said[name] ? yes : no));
  return html`<div class="about">
    <p class="description words"><bdi>${plain(description, all ? longest : short)}</bdi></p>
    ${description.length > short && !all ? html`<button type="button" onClick=${() => setAll(true)}>Show more of it</button>` : null}
    ${known.length > 0 ? html`<ul class="marks" aria-label="What its author says of a call">${known.map((k) => html`<li>${k}</li>`)}</ul>` : null}
  </div>`;
}

/** @typedef {{result?: import("./call.js").Result, failure?: unknown, cancelled?: boolean, seconds: number}} Outcome */

/** @param {{tool: any, callable: boolean, mcp: boolean}} p */
function Call({ tool, callable, mcp }) {
  const [mode, setMode] = useState(/** @type {"form"|"json"} */ ("form"));
  const [value, setValue] = useState(() => initialOf(tool.parameters));
  const [text, setText] = useState(() => write(value));
  const [problem, setProblem] = useState("");
  const [outcome, setOutcome] = useState(/** @type {Outcome|null} */ (null));
  const [running, setRunning] = useState(/** @type {AbortController|null} */ (null));
  const [progress, setProgress] = useState(/** @type {import("./call.js").Progress|null} */ (null));
  useEffect(() => () => running?.abort(), [running]);
  const [leaving, stay] = useLeaving(running !== null);

  const args = mode === "form" ? write(value, 0) : text.trim() || "{}";
  const invalid = useMemo(() => (mode === "json" ? wrongIn(args) : ""), [mode, args]);
  const errors = useMemo(() => {
    /** @type {Map<string, string[]>} */
    const all = new Map();
    for (const v of violationsOf(outcome?.failure)) all.set(keyOf(v.loc.slice(1)), [...(all.get(keyOf(v.loc.slice(1))) ?? []), String(v.msg)]);
    return all;
  }, [outcome]);

  const run = async () => {
    setProblem(invalid);
    if (invalid || running) return;
    const control = new AbortController();
    const began = performance.now();
    setRunning(control);
    setProgress(null);
    /** @type {Partial<Outcome>} */
    let next;
    try {
      next = { result: await call(tool, args, { mcp, signal: control.signal, onProgress: setProgress }) };
    } catch (failure) {
      next = control.signal.aborted ? { cancelled: true } : { failure };
    }
    setRunning(null);
    setOutcome({ ...next, seconds: (performance.now() - began) / 1000 });
  };

  const toForm = () => {
    const wrong = wrongIn(text.trim() || "{}");
    setProblem(wrong);
    if (wrong) return;
    setValue(parse(text.trim() || "{}"));
    setMode("form");
  };
  const toJSON = () => {
    setText(write(value));
    setMode("json");
  };
  const submit = (/** @type {any} */ e) => {
    e.preventDefault();
    run();
  };
  const press = (/** @type {KeyboardEvent} */ e) => {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) submit(e);
    if (e.key === "Escape" && running) running.abort();
  };

  return html`<section aria-labelledby="call">
    <div class="row spread">
      <h2 id="call">Call it</h2>
      <div class="row" role="group" aria-label="How to write the arguments">
        <button type="button" aria-pressed=${mode === "form" ? "true" : "false"} onClick=${() => mode === "json" && toForm()}>Form</button>
        <button type="button" aria-pressed=${mode === "json" ? "true" : "false"} onClick=${() => mode === "form" && toJSON()}>JSON</button>
      </div>
    </div>
    <form class="call" onSubmit=${submit} onKeyDown=${press} noValidate>
      ${mode === "form"
        ? html`<${SchemaForm} schema=${tool.parameters} value=${value} onChange=${setValue} errors=${errors} />`
        : html`<div class="field">
            <label for="arguments-json">Arguments, a JSON object</label>
            <textarea id="arguments-json" class="code" rows="10" spellcheck=${false} value=${text} onInput=${(/** @type {any} */ e) => setText(e.currentTarget.value)} aria-describedby="arguments-problem" aria-invalid=${problem ? "true" : undefined}></textarea>
            <p class="hint" id="arguments-problem">${problem ? html`<strong class="wrong">${plain(problem)}</strong>` : null}</p>
          </div>`}
      <div class="actions">
        <button class="primary" aria-disabled=${running || !callable ? "true" : undefined} onClick=${(/** @type {any} */ e) => (running || !callable) && e.preventDefault()}>Call</button>
        <button type="button" disabled=${!running} onClick=${() => running?.abort()}>Cancel</button>
        <${Progress} running=${running !== null} progress=${progress} outcome=${outcome} />
        <span class="note keys"><kbd>Ctrl</kbd> <kbd>Enter</kbd> calls, <kbd>Esc</kbd> cancels</span>
      </div>
    </form>
    <div class="outcome" id="outcome" tabindex="-1" role="group" aria-label="Outcome of the call">${outcome ? html`<${OutcomeView} outcome=${outcome} tool=${tool} />` : html`<p class="empty">What the tool answers stands here.</p>`}</div>
    <${Snippets} tool=${tool} args=${args} problem=${invalid} token=${token.get() !== ""} mcp=${mcp} />
    ${leaving && running
      ? html`<${Dialog} title="The call is still running" onClose=${stay}>
          <p>Who leaves the page of ${tool.path} cancels its call. What the tool has done by then stays done.</p>
          <div class="row">
            <button type="button" autofocus onClick=${stay}>Stay</button>
            <button type="button" class="danger" onClick=${leaving}>Cancel the call and leave</button>
          </div>
        <//>`
      : null}
  </section>`;
}

/**
 * Keeps the page from being left as long as something runs: it returns what leaves it after all, once somebody wants to, and what stays.
 * @param {boolean} runs @returns {[(() => void)|null, () => void]}
 */
function useLeaving(runs) {
  const [to, setTo] = useState(/** @type {{go: () => void}|null} */ (null));
  const left = useRef(false);
  useLayoutEffect(() => { // so that no moment is left in which the call shows and the page can be left
    if (!runs) return;
    left.current = false;
    const leave = (/** @type {any} */ e) => {
      if (left.current) return;
      e.preventDefault();
      setTo({ go: e.detail });
    };
    const close = (/** @type {Event} */ e) => e.preventDefault();
    addEventListener("leave", leave);
    addEventListener("beforeunload", close);
    return () => {
      removeEventListener("leave", leave);
      removeEventListener("beforeunload", close);
      setTo(null);
    };
  }, [runs]);
  const go = () => {
    left.current = true;
    to?.go();
  };
  return [to ? go : null, () => setTo(null)];
}

/** Says why a text is not a JSON object, or "". @param {string} text */
function wrongIn(text) {
  try {
    return typeOf(parse(text)) === "object" ? "" : "The arguments have to be a JSON object, such as {}";
  } catch (e) {
    return e instanceof Error ? e.message : String(e);
  }
}

/** How far the call is, and then how it ended: a long form hides what stands below it. @param {{running: boolean, progress: import("./call.js").Progress|null, outcome: Outcome|null}} p */
function Progress({ running, progress, outcome }) {
  if (!running) {
    const show = () => document.getElementById("outcome")?.focus();
    return html`<span class="progress" role="status">${outcome ? html`<button type="button" class="link" onClick=${show}>${outcome.result ? "Answered" : outcome.cancelled ? "Cancelled" : "Failed"} after ${duration(outcome.seconds)}</button>` : null}</span>`;
  }
  const known = progress && progress.total > 0;
  return html`<span class="progress" role="status">
    <progress aria-label="How far the call is" ...${known ? { value: progress.done, max: progress.total } : {}}></progress>
    <span>${progress ? (known ? `${plain(progress.done, 20)} of ${plain(progress.total, 20)}` : plain(progress.done, 20)) : "running"} <bdi>${plain(progress?.message ?? "", 120)}</bdi></span>
  </span>`;
}

/** @param {{outcome: Outcome, tool: any}} p */
function OutcomeView({ outcome, tool }) {
  const { result, failure, seconds } = outcome;
  if (outcome.cancelled) return html`<p><strong>Cancelled</strong> after ${duration(seconds)}</p>`;
  if (failure) return html`<${Failed} failure=${failure} after=${seconds} />`;
  if (!result) return null;
  return html`<p><strong class="right">Answered</strong> in ${duration(seconds)}, ${bytes(sizeOf(result.text))}${result.requestId ? html`, request <code>${plain(result.requestId, 64)}</code>` : null}</p>
    <${ResultView} key=${result} result=${result} name=${tool.operation_id} />`;
}
