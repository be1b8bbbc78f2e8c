// A form made from a schema. Its value is what is sent, or undefined for what is left out: the server fills in defaults. What is optional and has
// members opens only where somebody wants it, so a schema that refers to itself is as deep as its user goes. What is required opens by itself as
// long as there are not too many fields: each field may have so many below it, which it shares out among them.

import { html, useContext, useId, useMemo, useState, createContext } from "../html.js";
import { placeOf } from "./api.js";
import { exact, isRaw, member, parse, withMember, write } from "./json.js";
import { begun, besideNull, boundsOf, choicesOf, inSentence, kindsOf, membersOf, resolve, sizeOfBase64, startOf, typeName, typeOf, typesOf, undeclared, variantName } from "./schema.js";
import { bytes, plain } from "./text.js";

/** @typedef {import("./schema.js").Schema} Schema */
/** @typedef {(string|number)[]} Place */

// What all fields of a form need: the whole schema, and what the server says of each place.
const Form = createContext({ root: /** @type {any} */ ({}), errors: /** @type {Map<string, string[]>} */ (new Map()) });

const deepest = 12;
const mostFields = 300; // that open by themselves
const fewMembers = 150; // of an object, and of what somebody opens
const fewOptions = 50; // more are found by typing
const mostOptions = 1000;
const largestFile = 32 << 20; // bytes: base64 of more is beyond what servers take

/** @param {Place} place */
export const keyOf = (place) => JSON.stringify(place);

/** The id of the element for a place, by which an error leads to its field. @param {Place} place */
export const fieldId = (place) => "field-" + encodeURIComponent(keyOf(place));

/** @param {{schema: any, value: any, onChange: (value: any) => void, errors: Map<string, string[]>}} p */
export function SchemaForm({ schema, value, onChange, errors }) {
  return html`<${Form.Provider} value=${{ root: schema, errors }}>
    <${Arguments} schema=${resolve(schema, schema)} value=${value} onChange=${onChange} depth=${0} />
  <//>`;
}

/** What a form begins with. @param {any} schema */
export function initialOf(schema) {
  let s = resolve(schema, schema);
  for (let depth = 0; depth < deepest && kindsOf(s) <= fewOptions; depth++) s = objectsOf(schema, s)[0] ?? s;
  return begun(schema, s, {});
}

/** The variants of the arguments, which are an object whatever else a schema says. @param {any} root @param {Schema} s */
function objectsOf(root, s) {
  return kindsOf(s) === 0 ? [] : choicesOf(root, s).filter((v) => typesOf(v).length === 0 || typesOf(v).includes("object"));
}

/** All arguments: members, one of several kinds of them, or JSON where the schema is beyond a form. @param {{schema: Schema, value: any, onChange: (value: any) => void, depth: number}} p */
function Arguments({ schema, value, onChange, depth }) {
  const { root } = useContext(Form);
  const id = useId();
  const all = schema.unknown || kindsOf(schema) > fewOptions ? [] : objectsOf(root, schema);
  const [at, setAt] = useState(() => Math.max(0, all.findIndex((v) => fits(root, v, value))));
  const props = { onChange, depth: depth + 1, place: [], share: mostFields };
  if (schema.unknown || depth >= deepest || (all.length === 0 && kindsOf(schema) > 0)) {
    return html`<${JSONField} ...${props} schema=${{ type: "object", description: schema.description }} name="arguments" required=${false} value=${value} onChange=${(/** @type {any} */ v) => onChange(v ?? {})} />`;
  }
  if (all.length === 0) return html`<${Said} place=${[]} /><${Members} ...${props} depth=${depth} schema=${schema} value=${value} />`;
  if (all.length === 1) return html`<${Arguments} ...${props} schema=${all[0]} value=${value} />`;
  const choose = (/** @type {any} */ e) => {
    const next = all[Number(valueOf(e))];
    const names = new Set(membersOf(next).map((m) => m.name));
    setAt(Number(valueOf(e)));
    onChange(begun(root, next, Object.fromEntries(Object.entries(value ?? {}).filter(([name]) => names.has(name)))));
  };
  return html`<div class="field">
      <label for=${id}>Which arguments</label>
      <select id=${id} value=${String(at)} onChange=${choose}>
        ${all.map((v, i) => html`<option value=${String(i)}>${variantName(root, v)}</option>`)}
      </select>
    </div>
    <${Arguments} key=${at} ...${props} schema=${all[at]} value=${value} />`;
}

/** @typedef {{schema: Schema, name: string, value: any, onChange: (value: any) => void, place: Place, required: boolean, depth: number, share: number}} FieldProps share is how many fields may open below it */

/** One value, with its name, what is said of it, and what is wrong with it. @param {FieldProps} p */
function Field(p) {
  const { root } = useContext(Form);
  const schema = resolve(root, p.schema);
  const kinds = p.depth < deepest ? kindsOf(schema) : 0;
  if (kinds > fewOptions) return html`<${JSONField} ...${p} schema=${schema} />`;
  const other = kinds === 2 ? besideNull(root, schema) : undefined;
  if (other) return html`<${OrNull} ...${p} schema=${other} />`;
  if (kinds > 1) return html`<${Choice} ...${p} schema=${schema} />`;
  const s = kinds === 1 ? { ...schema, ...choicesOf(root, schema)[0] } : schema;
  const types = typesOf(s);
  const props = { ...p, schema: s };
  if (p.depth >= deepest || s.unknown) return html`<${JSONField} ...${props} />`;
  if (Object.hasOwn(s, "const")) return html`<${Options} ...${props} options=${[s.const]} />`;
  if (Array.isArray(s.enum)) return s.enum.length > fewOptions ? html`<${ManyOptions} ...${props} options=${s.enum} />` : html`<${Options} ...${props} options=${s.enum} />`;
  switch (types[0]) {
    case "object":
      return html`<${ObjectField} ...${props} />`;
    case "array":
      return html`<${ArrayField} ...${props} />`;
    case "boolean":
      return html`<${Options} ...${props} options=${[true, false]} />`;
    case "null":
      return html`<${Options} ...${props} options=${[null]} />`;
    case "integer":
    case "number":
      return html`<${NumberField} ...${props} />`;
    case "string":
      return s.contentEncoding === "base64" ? html`<${FileField} ...${props} />` : html`<${StringField} ...${props} />`;
  }
  return html`<${JSONField} ...${props} />`;
}

/** A value or null. Where it is null if it is left out, there is nothing to choose. @param {FieldProps} p */
function OrNull(p) {
  const field = html`<${Field} ...${p} value=${p.value === null ? undefined : p.value} />`;
  const none = !p.required && p.schema.default === null;
  if (none && p.value !== null) return field;
  return html`<div class="or-null">
    ${field}
    <label><input type="checkbox" checked=${p.value === null} onChange=${(/** @type {any} */ e) => p.onChange(e.currentTarget.checked ? null : undefined)} /> <bdi>${plain(p.name, 120)}</bdi> is null</label>
  </div>`;
}

/** What stands around an input. below gives what is wrong with parts that have no input of their own. @param {{p: FieldProps, type?: string, input: (a: Record<string, any>) => any, note?: string, below?: typeof saidBelow}} a */
function Labelled({ p, type, input, note, below }) {
  const { root, errors } = useContext(Form);
  const said = [...(errors.get(keyOf(p.place)) ?? []), ...(below ? below(errors, p.place) : [])];
  const id = fieldId(p.place);
  const description = plain(p.schema.description ?? "", 400);
  const bounds = boundsOf(p.schema);
  const fallback = Object.hasOwn(p.schema, "default") ? "otherwise " + plain(write(p.schema.default, 0), 80) : "";
  const hint = inSentence([note ?? "", ...bounds, fallback].filter(Boolean));
  return html`<div class="field">
    <label for=${id}><bdi>${plain(p.name, 120)}</bdi>${p.required ? html` <span class="required">required</span>` : null} <span class="type">${type ?? typeName(root, p.schema)}</span></label>
    ${input({ id, "aria-describedby": id + "-hint", "aria-invalid": said.length > 0 ? "true" : undefined, "aria-required": p.required ? "true" : undefined })}
    <p class="hint" id=${id + "-hint"}>
      ${said.length > 0 ? html`<strong class="wrong">${plain(said.join("; "), 400)}</strong> ` : null}
      ${description ? html`<bdi class="words">${description}</bdi> ` : null}<span class="bounds">${hint}</span>
    </p>
  </div>`;
}

/** @param {any} e */
const valueOf = (e) => e.currentTarget.value;

/** @param {FieldProps} p */
function StringField(p) {
  // A required text that was emptied again is sent as an empty one; an optional one is left out.
  const change = (/** @type {any} */ e) => p.onChange(valueOf(e) === "" && !p.required ? undefined : valueOf(e));
  const example = Array.isArray(p.schema.examples) && typeof p.schema.examples[0] === "string" ? plain(p.schema.examples[0], 80) : undefined;
  return html`<${Labelled} p=${p} input=${(/** @type {any} */ a) => html`<textarea ...${a} rows="1" spellcheck=${false} autocomplete="off" placeholder=${example} value=${typeof p.value === "string" ? p.value : ""} onInput=${change}></textarea>`} />`;
}

/** @param {FieldProps} p */
function NumberField(p) {
  // What is not a number is sent as it is: the server says at which place it doesn't fit, as for everything else.
  const change = (/** @type {any} */ e) => {
    const text = valueOf(e).trim();
    p.onChange(text === "" ? undefined : (exact(text) ?? text));
  };
  const [typed, setTyped] = useState(/** @type {string|undefined} */ (undefined));
  const value = p.value === undefined ? "" : typeof p.value === "string" ? p.value : write(p.value, 0);
  const shown = typed !== undefined && same(typed.trim(), p.value) ? typed : value;
  return html`<${Labelled} p=${p} input=${(/** @type {any} */ a) => html`<input ...${a} type="text" inputmode="decimal" autocomplete="off" value=${shown} onInput=${(/** @type {any} */ e) => (setTyped(valueOf(e)), change(e))} />`} />`;
}

/** Whether a text is how a number was typed: 1. and 1.0 become 1 in the value, and must stay in the field. @param {string} text @param {any} value */
function same(text, value) {
  if (value === undefined) return text === "";
  const read = exact(text) ?? text;
  return isRaw(value) || isRaw(read) ? write(value, 0) === write(read, 0) : read === value;
}

/** @param {FieldProps & {options: any[]}} p */
function Options(p) {
  const at = p.options.findIndex((o) => write(o, 0) === write(p.value, 0));
  const change = (/** @type {any} */ e) => p.onChange(valueOf(e) === "" ? undefined : p.options[Number(valueOf(e))]);
  return html`<${Labelled}
    p=${{ ...p, schema: { ...p.schema, enum: undefined } }}
    type=${p.options.length > 2 ? "one of " + p.options.length : typeOf(p.options[0])}
    input=${(/** @type {any} */ a) => html`<select ...${a} value=${at < 0 ? "" : String(at)} onChange=${change}>
      <option value="">${p.required ? "choose…" : "left out"}</option>
      ${p.options.map((o, i) => html`<option value=${String(i)}>${plain(typeof o === "string" ? o : write(o, 0), 120)}</option>`)}
    </select>`}
  />`;
}

/** One of so many values that it is typed. They are in the page only while somebody is at the field. @param {FieldProps & {options: any[]}} p */
function ManyOptions(p) {
  const [near, setNear] = useState(false);
  const id = useId();
  const wordOf = (/** @type {any} */ o) => (typeof o === "string" ? o : write(o, 0));
  const typed = p.value === undefined ? "" : wordOf(p.value);
  // The list has as many as a browser can show: those of very many that have what was typed.
  const cut = p.options.length > mostOptions;
  const listed = useMemo(() => {
    if (!near) return [];
    const words = p.options.map(wordOf);
    const part = typed.toLowerCase();
    return (cut ? words.filter((word) => word.toLowerCase().includes(part)) : words).slice(0, mostOptions);
  }, [near, typed, p.options]);
  const change = (/** @type {any} */ e) => {
    const text = valueOf(e);
    const found = p.options.find((o) => wordOf(o) === text);
    p.onChange(found === undefined && text === "" ? undefined : found === undefined ? text : found);
  };
  return html`<${Labelled}
    p=${{ ...p, schema: { ...p.schema, enum: undefined } }}
    type=${"one of " + p.options.length.toLocaleString("en")}
    note=${cut ? `The list shows the first ${mostOptions.toLocaleString("en")} that have what is typed` : ""}
    input=${(/** @type {any} */ a) => html`<input ...${a} type="text" autocomplete="off" spellcheck=${false} list=${near ? id : undefined} value=${typed} onInput=${change} onFocus=${() => setNear(true)} onBlur=${() => setNear(false)} />
      ${near ? html`<datalist id=${id}>${listed.map((word) => html`<option value=${plain(word, 120)} />`)}</datalist>` : null}`}
  />`;
}

/** Any JSON. What is not JSON is a string, as a person would mean it. @param {FieldProps} p */
function JSONField(p) {
  const [text, setText] = useState(() => (p.value === undefined ? "" : write(p.value)));
  const change = (/** @type {any} */ e) => {
    setText(valueOf(e));
    p.onChange(readLoosely(valueOf(e)));
  };
  return html`<${Labelled} p=${p} below=${saidBelow} note="JSON: anything else is sent as a string" input=${(/** @type {any} */ a) => html`<textarea ...${a} rows="2" class="code" spellcheck=${false} value=${text} onInput=${change}></textarea>`} />`;
}

/** Returns what the server says of all parts of a place, each with its own. @param {Map<string, string[]>} errors @param {Place} place */
function saidBelow(errors, place) {
  const all = [];
  for (const [key, said] of errors) {
    const at = /** @type {Place} */ (JSON.parse(key));
    if (at.length > place.length && place.every((part, i) => part === at[i])) all.push(placeOf(["body", ...at]) + ": " + said.join("; "));
  }
  return all;
}

/** @param {string} text */
function readLoosely(text) {
  if (text.trim() === "") return undefined;
  try {
    return parse(text);
  } catch {
    return text;
  }
}

/** A file, sent in base64. @param {FieldProps} p */
function FileField(p) {
  const [note, setNote] = useState("");
  const take = async (/** @type {any} */ e) => {
    const file = e.currentTarget.files[0];
    if (!file) return p.onChange(undefined);
    if (file.size > largestFile) return setNote(`${bytes(file.size)} are too many: at most ${bytes(largestFile)}`);
    p.onChange(base64(new Uint8Array(await file.arrayBuffer())));
    setNote("");
  };
  const has = typeof p.value === "string" ? sizeOfBase64(p.value) + " chosen" : "";
  return html`<${Labelled} p=${p} type="file" note=${note || has} input=${(/** @type {any} */ a) => html`<input ...${a} type="file" onChange=${take} />`} />`;
}

/** @param {Uint8Array} data */
export function base64(data) {
  const parts = [];
  for (let i = 0; i < data.length; i += 0x8000) parts.push(String.fromCharCode(...data.subarray(i, i + 0x8000)));
  return btoa(parts.join(""));
}

/** A value that may have several forms. @param {FieldProps} p */
function Choice(p) {
  const { root } = useContext(Form);
  const id = useId();
  const all = choicesOf(root, p.schema);
  const [at, setAt] = useState(() => (p.value === undefined ? (p.required && p.share > 0 ? 0 : -1) : Math.max(0, all.findIndex((v) => fits(root, v, p.value)))));
  const [share, setShare] = useState(p.share - 1);
  const choose = (/** @type {any} */ e) => {
    const next = Number(valueOf(e));
    setAt(next);
    setShare(fewMembers);
    p.onChange(next < 0 ? undefined : typesOf(all[next])[0] === "null" ? null : startOf(root, all[next]));
  };
  return html`<fieldset class="group">
    <legend><bdi>${plain(p.schema.title ?? p.name, 120)}</bdi>${p.required ? html` <span class="required">required</span>` : null}</legend>
    ${p.schema.description ? html`<p class="hint"><bdi class="words">${plain(p.schema.description, 400)}</bdi></p>` : null}
    <div class="field">
      <label for=${id}>kind of <bdi>${plain(p.name, 120)}</bdi></label>
      <select id=${id} value=${String(at)} onChange=${choose}>
        ${p.required && at >= 0 ? null : html`<option value="-1">${p.required ? "choose…" : "left out"}</option>`}
        ${all.map((v, i) => html`<option value=${String(i)}>${variantName(root, v)}</option>`)}
      </select>
      ${Object.hasOwn(p.schema, "default") ? html`<p class="hint"><span class="bounds">Otherwise ${plain(write(p.schema.default, 0), 80)}.</span></p>` : null}
    </div>
    ${at < 0 ? html`<${Said} place=${p.place} />` : null}
    ${at >= 0 ? html`<${Field} key=${at} ...${p} schema=${all[at]} required=${true} depth=${p.depth + 1} share=${share} />` : null}
  </fieldset>`;
}

/** @param {any} root @param {Schema} s @param {any} value */
function fits(root, s, value) {
  const t = typeOf(value);
  const types = typesOf(s);
  if (t === "object" && types.includes("object")) {
    const other = (/** @type {any} */ m) => Object.hasOwn(value, m.name) && Object.hasOwn(resolve(root, m.schema), "const") && write(resolve(root, m.schema).const, 0) !== write(value[m.name], 0);
    return !membersOf(s).some((m) => (m.required && !Object.hasOwn(value, m.name)) || other(m));
  }
  return types.length === 0 || types.includes(t) || (t === "number" && types.includes("integer"));
}

/** What the server says of a place that has no input of its own. @param {{place: Place}} p */
function Said({ place }) {
  const { errors } = useContext(Form);
  const said = errors.get(keyOf(place));
  return said ? html`<p class="hint" id=${fieldId(place)} tabindex="-1"><strong class="wrong">${plain(said.join("; "), 400)}</strong></p>` : null;
}

/** @param {FieldProps} p */
function ObjectField(p) {
  const { root } = useContext(Form);
  const [asked, ask] = useState(false);
  // What is required may have begun as {}, by itself: that opens nothing.
  const empty = p.value === undefined || (p.required && typeOf(p.value) === "object" && Object.keys(p.value).length === 0);
  const fits = p.share >= widthOf(p.schema);
  const open = !empty || (p.required && (asked || fits));
  const start = () => (ask(true), p.onChange(begun(root, p.schema, {})));
  return html`<fieldset class="group">
    <legend><bdi>${plain(p.schema.title ?? p.name, 120)}</bdi>${p.required ? html` <span class="required">required</span>` : null}</legend>
    ${p.schema.description ? html`<p class="hint"><bdi class="words">${plain(p.schema.description, 400)}</bdi></p>` : null}
    <${Said} place=${p.place} />
    ${open
      ? html`<${Members} schema=${p.schema} value=${p.value} onChange=${p.onChange} place=${p.place} depth=${p.depth + 1} share=${fits ? p.share : fewMembers} />`
      : html`<button type="button" onClick=${start}>${p.required ? "Fill in" : "Add"} ${plain(p.name, 60)}</button>`}
    ${!empty && !p.required ? html`<button type="button" onClick=${() => p.onChange(undefined)}>Leave out ${plain(p.name, 60)}</button>` : null}
  </fieldset>`;
}

/** How many fields an object has at first. @param {Schema} schema */
const widthOf = (schema) => Math.max(1, Math.min(fewMembers, membersOf(schema).length));

/** The members of an object. @param {{schema: Schema, value: any, onChange: (value: any) => void, place: Place, depth: number, share: number}} p */
function Members({ schema, value, onChange, place, depth, share }) {
  const { root, errors } = useContext(Form);
  const [most, setMost] = useState(fewMembers);
  const members = membersOf(schema);
  const shown = members.slice(0, most);
  const each = useMemo(() => {
    const opening = members.slice(0, fewMembers).filter((m) => m.required && opens(resolve(root, m.schema)));
    return opening.length > 0 ? Math.floor((share - widthOf(schema)) / opening.length) : 0;
  }, [root, schema, share]);
  const object = typeOf(value) === "object" ? value : {};
  const declared = new Set(members.map((m) => m.name));
  const patterns = Object.entries(schema.patternProperties ?? {});
  const rest = schema.additionalProperties ?? schema.unevaluatedProperties;
  // Most schemas allow other members only because they don't say that there are none: those have a place where there is nothing else, or somebody has one.
  const free = patterns.length > 0 || (rest !== false && (rest !== undefined || members.length === 0));
  const others = Object.keys(object).filter((name) => !declared.has(name));
  const missing = [...new Set([...undeclared(schema), ...namesBelow(errors, place)])].filter((name) => !declared.has(name) && !Object.hasOwn(object, name));
  const entry = rest === false && patterns.length === 1 ? patterns[0][1] : patterns.length > 0 || rest === undefined ? true : rest;
  const bounds = patterns.length === 0 ? "" : "Names that match " + patterns.slice(0, 5).map(([pattern]) => plain(pattern, 80)).join(" or ") + (rest === false ? "." : ", and others.");
  if (members.length === 0 && !free && others.length === 0) return html`<p class="empty">${place.length === 0 ? "The tool takes no arguments." : "It has no members."}</p>`;
  return html`
    ${shown.map(
      (m, i) => html`<${Field}
        key=${m.name}
        schema=${m.schema}
        name=${m.name}
        required=${m.required}
        value=${member(object, m.name)}
        onChange=${(/** @type {any} */ v) => onChange(ordered(members, begun(root, schema, withMember(object, m.name, v))))}
        place=${[...place, m.name]}
        depth=${depth}
        share=${i < fewMembers ? each : 0}
      />`,
    )}
    ${shown.length < members.length ? html`<button type="button" onClick=${() => setMost(most + fewMembers)}>Show ${Math.min(fewMembers, members.length - shown.length)} other fields</button>` : null}
    ${free || others.length > 0 || missing.length > 0
      ? html`<${Entries} schema=${resolve(root, entry)} value=${object} onChange=${onChange} place=${place} depth=${depth} names=${others} missing=${missing} bounds=${bounds} beside=${members.length > 0} />`
      : null}
  `;
}

/** Returns the names of members of which the server says something. @param {Map<string, string[]>} errors @param {Place} place */
function namesBelow(errors, place) {
  const all = [];
  for (const key of errors.keys()) {
    const at = /** @type {Place} */ (JSON.parse(key));
    if (at.length === place.length + 1 && place.every((part, i) => part === at[i])) all.push(String(at[place.length]));
  }
  return all;
}

/** Whether a required value has fields of its own. @param {Schema} s */
const opens = (s) => kindsOf(s) > 0 || typesOf(s)[0] === "object";

/** Returns an object with its members in the order of the form. @param {{name: string}[]} members @param {any} value */
function ordered(members, value) {
  const known = new Set(members.map((m) => m.name));
  const first = members.filter((m) => Object.hasOwn(value, m.name)).map((m) => [m.name, value[m.name]]);
  return Object.fromEntries([...first, ...Object.entries(value).filter(([k]) => !known.has(k))]);
}

/**
 * Members whose names are chosen by who calls. missing are names that have to be among them.
 * @param {{schema: Schema, value: any, onChange: (value: any) => void, place: Place, depth: number, names: string[], missing: string[], bounds: string, beside: boolean}} p
 */
function Entries({ schema, value, onChange, place, depth, names, missing, bounds, beside }) {
  const { root, errors } = useContext(Form);
  const [name, setName] = useState("");
  const id = useId();
  const start = startOf(root, schema) ?? (typesOf(schema)[0] === "string" ? "" : blank);
  const put = (/** @type {string} */ n) => onChange(Object.fromEntries([...Object.entries(value), [n, start]]));
  const set = (/** @type {string} */ n, /** @type {any} */ v) => onChange(Object.fromEntries(Object.entries(value).map(([k, old]) => [k, k === n ? (v ?? start) : old])));
  const taken = name === "" || Object.hasOwn(value, name);
  const add = () => {
    if (taken) return;
    put(name);
    setName("");
  };
  return html`
    ${names.map(
      (n) => html`<div class="entry" key=${n}>
        <${Field} schema=${schema} name=${n} required=${true} value=${value[n] === blank ? undefined : value[n]} onChange=${(/** @type {any} */ v) => set(n, v)} place=${[...place, n]} depth=${depth + 1} share=${fewMembers} />
        <button type="button" onClick=${() => onChange(withMember(value, n, undefined))}>Remove ${plain(n, 60)}</button>
      </div>`,
    )}
    ${missing.slice(0, fewMembers).map(
      (n) => html`<div class="row" key=${n}>
        <button type="button" id=${fieldId([...place, n])} onClick=${() => put(n)}>Add <bdi>${plain(n, 60)}</bdi></button>
        ${errors.has(keyOf([...place, n])) ? html`<strong class="wrong">${plain((errors.get(keyOf([...place, n])) ?? []).join("; "), 400)}</strong>` : html`<span class="required">required</span>`}
      </div>`,
    )}
    <div class="row">
      <label for=${id}>${beside ? "New other name" : "New name"}</label>
      <input id=${id} type="text" autocomplete="off" aria-describedby=${bounds ? id + "-hint" : undefined} value=${name} onInput=${(/** @type {any} */ e) => setName(valueOf(e))} onKeyDown=${(/** @type {any} */ e) => e.key === "Enter" && !e.ctrlKey && !e.metaKey && (e.preventDefault(), add())} />
      <button type="button" onClick=${add} disabled=${taken}>Add</button>
      ${bounds ? html`<span class="note" id=${id + "-hint"}>${bounds}</span>` : null}
    </div>
  `;
}

/** @param {FieldProps} p */
function ArrayField(p) {
  const { root } = useContext(Form);
  /** @type {any[]} */
  const items = Array.isArray(p.value) ? p.value : [];
  const fixed = Array.isArray(p.schema.prefixItems) ? p.schema.prefixItems : [];
  const schemaOf = (/** @type {number} */ i) => (i < fixed.length ? fixed[i] : (p.schema.items ?? true));
  const more = p.schema.items !== false || items.length < fixed.length;
  const set = (/** @type {any[]} */ next) => p.onChange(next.length === 0 && !p.required ? undefined : next);
  const bounds = inSentence(boundsOf(p.schema));
  return html`<fieldset class="group">
    <legend><bdi>${plain(p.schema.title ?? p.name, 120)}</bdi>${p.required ? html` <span class="required">required</span>` : null} <span class="type">${typeName(root, p.schema)}</span></legend>
    <p class="hint"><bdi class="words">${plain(p.schema.description ?? "", 400)}</bdi> <span class="bounds">${bounds}</span></p>
    <${Said} place=${p.place} />
    ${items.map(
      (item, i) => html`<div class="entry" key=${i}>
        <${Field} schema=${schemaOf(i)} name=${`${p.name}[${i}]`} required=${true} value=${item === blank ? undefined : item} onChange=${(/** @type {any} */ v) => set(items.map((old, at) => (at === i ? (v === undefined ? blank : v) : old)))} place=${[...p.place, i]} depth=${p.depth + 1} share=${fewMembers} />
        <button type="button" onClick=${() => set(items.filter((_, at) => at !== i))}>Remove ${plain(p.name, 60)}[${i}]</button>
      </div>`,
    )}
    ${more ? html`<button type="button" onClick=${() => set([...items, startOf(root, schemaOf(items.length)) ?? blank])}>Add to ${plain(p.name, 60)}</button>` : null}
  </fieldset>`;
}

// An item that nobody has filled in. JSON has no such thing, so it is sent as null, and the server says that something belongs there.
const blank = null;
