// Why a caller can call a tool, or can't.

import { html, useEffect, useState } from "../../html.js";
import { look, sentence } from "../api.js";
import { Field } from "../field.js";
import { plain } from "../text.js";

const fewNames = 500;

/** @type {Record<string, string>} */
const asked = { scope: "A scope of the caller matches", tool: "There is the tool", switch: "It is switched on", grants: "It has what it needs", rate: "The caller may make a call now" };

/** @param {{rows: import("../rows.js").Row[]}} p */
export function Explain({ rows }) {
  const [principal, setPrincipal] = useState("");
  const [tool, setTool] = useState("");
  const [names, setNames] = useState(/** @type {string[]} */ ([]));
  const [answer, setAnswer] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  useEffect(() => {
    look("tokens/list").then(
      (all) => setNames(all.tokens.map((/** @type {any} */ t) => t.name)),
      () => {}, // names are only offered
    );
  }, []);
  const submit = async (/** @type {any} */ e) => {
    e.preventDefault();
    const question = { principal: principal.trim(), tool: tool.trim() };
    try {
      setAnswer({ ...question, ...(await look("explain", question)) });
      setProblem("");
    } catch (failure) {
      setAnswer(null);
      setProblem(sentence(failure));
    }
  };
  return html`<article class="page">
    <h1>Explain</h1>
    <p>Why a caller can call a tool, or can't, rule by rule. A caller who may not call a tool is told that there is none.</p>
    <form onSubmit=${submit}>
      <${Field} label="Caller" hint="The name of a token, or as the log has the caller" value=${principal} onInput=${setPrincipal} list=${names.slice(0, fewNames)} required />
      <${Field} label="Tool" hint="Such as math/add" value=${tool} onInput=${setTool} list=${rows.slice(0, fewNames).map((r) => r.path.slice(1))} required />
      <button class="primary">Explain</button>
    </form>
    <p class="hint" role="alert">${problem ? html`<strong class="wrong">${plain(problem, 1000)}</strong>` : null}</p>
    <div role="status">${answer ? html`<${Answer} answer=${answer} />` : null}</div>
  </article>`;
}

/** @param {{answer: any}} p */
function Answer({ answer }) {
  return html`<p><bdi>${plain(answer.principal, 128)}</bdi> <strong class=${answer.allowed ? "right" : "wrong"}>${answer.allowed ? "can call" : "can't call"}</strong> <bdi>${plain(answer.tool, 200)}</bdi>.</p>
    <div class="scroll" tabindex="0" role="region" aria-label="Rules">
      <table>
        <thead><tr><th scope="col">Rule</th><th scope="col">Holds</th><th scope="col">Because</th></tr></thead>
        <tbody>${answer.rules.map((/** @type {any} */ r) => html`<tr><th scope="row">${asked[r.rule] ?? plain(r.rule, 40)}</th><td>${r.holds ? "yes" : html`<strong class="wrong">no</strong>`}</td><td class="many"><bdi>${plain(r.because, 1000)}</bdi></td></tr>`)}</tbody>
      </table>
    </div>`;
}
