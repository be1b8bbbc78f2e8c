// Where in the author's files an error happened. The bundle's entry source.map has a line of JSON, { script, sources }: what the bundled
// script is called in stacks, and [name, text] of each source, the text only of the author's own. Then comes a line for each line of the
// bundle: "column,source,line,column;…" in base 36, all from 0. Between two columns, bundle and source go in step.
import { entry } from "#host";
import { Mistake, sentence } from "./error.js";

const frame = /^\s*at (?:(.*?) \()?(.*?):(\d+)(?::(\d+))?\)?$/;

// map is the source map, read at the first error.
let map;

// begin forgets the map of another script.
export function begin() {
  map = undefined;
}

function positions() {
  if (map === undefined) {
    const [head, ...lines] = (entry("source.map") ?? '{"script":"","sources":[]}').split("\n");
    map = { ...JSON.parse(head), lines };
  }
  return map;
}

// original returns where in the sources a place of the bundle comes from, or undefined. Lines and columns count from 1.
function original(line, column) {
  const { sources, lines } = positions();
  let found;
  for (const segment of (lines[line - 1] ?? "").split(";")) {
    const [at, ...rest] = segment.split(",").map((n) => parseInt(n, 36));
    if (rest.length !== 3 || (found !== undefined && at > column - 1)) {
      break;
    }
    found = [at, ...rest];
  }
  if (found === undefined || sources[found[1]] === undefined) {
    return undefined;
  }
  const [at, source, sourceLine, sourceColumn] = found;
  const [file, text] = sources[source];
  return { file, line: sourceLine + 1, column: sourceColumn + 1 + Math.max(0, column - 1 - at), text: text?.split("\n")[sourceLine] };
}

// frames returns the calls on a stack that are not this package's own: innermost first.
function frames(error) {
  const out = [];
  for (const text of stackOf(error).split("\n")) {
    const [, name = "", file, line, column = "1"] = frame.exec(text) ?? [];
    if (file !== positions().script) {
      continue;
    }
    const place = original(Number(line), Number(column));
    if (place !== undefined) {
      out.push({ name: name === "<anonymous>" || name === "<eval>" ? "" : name, ...place });
    }
  }
  return out;
}

function stackOf(error) {
  try {
    return typeof error.stack === "string" ? error.stack : "";
  } catch {
    return "";
  }
}

// trace returns what the log shows of a value that was thrown: its sentence, and the author's calls.
export function trace(thrown) {
  const lines = [];
  for (let i = 0; i < 5 && thrown !== undefined; i++) {
    lines.push((i === 0 ? "" : "caused by ") + sentence(thrown));
    if (typeof thrown !== "object" || thrown === null) {
      break;
    }
    for (const { name, file, line, column } of frames(thrown)) {
      lines.push(name === "" ? `    at ${file}:${line}:${column}` : `    at ${name} (${file}:${line}:${column})`);
    }
    try {
      thrown = thrown.cause;
    } catch {
      break;
    }
  }
  return lines.join("\n");
}

// explain returns what an author is told who builds the script: place, message, line and caret.
export function explain(thrown) {
  const message = thrown instanceof Mistake ? thrown.message : sentence(thrown);
  if (thrown?.place !== undefined) {
    return at(thrown.place, message);
  }
  const all = typeof thrown === "object" && thrown !== null ? frames(thrown.made ?? thrown) : [];
  return at(all.find((f) => f.text !== undefined) ?? all[0] ?? {}, message);
}

// where returns the author's place, such as "slow.ts:3", of one on a stack; undefined where it is not in the script. A loop with nothing in it
// has no place of its own, but that of the function, which may be lines before what comes from the author.
export function where(file, line, column) {
  const { script, lines } = positions();
  let place = file === script ? original(line, column) : undefined;
  for (; file === script && place === undefined && line <= lines.length; line++) {
    place = original(line, Infinity);
  }
  return place === undefined ? undefined : `${place.file}:${place.line}`;
}

// at puts a message to a place.
function at({ file, line, column, text }, message) {
  if (file === undefined) {
    const { script } = positions();
    return script === "" ? message : `${script}: ${message}`;
  }
  const head = `${file}:${line}:${column}: ${message}`;
  if (text === undefined || text.length > 200) {
    return head;
  }
  const indent = text.slice(0, column - 1).replace(/[^\t]/g, " ");
  return `${head}\n    ${text.trimEnd()}\n    ${indent}^`;
}
