// Words of tools, callers and logs are hostile: they may be a megabyte long, run backwards, or hide what they say. This file makes them fit to
// be shown. None of them ever becomes markup: see lib.js.

import { isRaw, write } from "./json.js";

// Characters that change the direction of what is around them, or that nobody sees. The joiners U+200C and U+200D are not among them: words of
// some languages and many emoji need them, and they move nothing.
const hidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** Returns text with its hidden characters spelt out. @param {string} text */
export function visible(text) {
  return text.replace(hidden, (c) => "⟨U+" + Number(c.codePointAt(0)).toString(16).toUpperCase().padStart(4, "0") + "⟩");
}

/** Returns what may be shown of a value in one place: visible, and at most so many characters. @param {unknown} value */
export function plain(value, most = 300) {
  const text = typeof value === "string" ? value : value === undefined || value === null ? "" : isRaw(value) ? write(value) : String(value);
  return text.length <= most ? visible(text) : visible(whole(text, most)) + "…";
}

/** Cuts a text without cutting a character in two. @param {string} text @param {number} most */
function whole(text, most) {
  const last = text.charCodeAt(most - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? most - 1 : most);
}

/** Returns how many bytes a text has where it is sent or saved. @param {string} text */
export const sizeOf = (text) => new Blob([text]).size;

/** @param {number} n */
export function bytes(n) {
  if (n < 1024) return n + (n === 1 ? " byte" : " bytes");
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let at = -1;
  do {
    n /= 1024;
    at++;
  } while (n >= 1024 && at < units.length - 1);
  return (n < 10 ? n.toFixed(1) : Math.round(n)) + " " + units[at];
}

/** Writes a large number in few characters, such as 12.3 M. @param {number} n */
export function amount(n) {
  const units = ["", " k", " M", " G", " T", " P"];
  let at = 0;
  for (; n >= 999.5 && at < units.length - 1; at++) n /= 1000;
  return round(n) + units[at];
}

/** @param {number} s seconds */
export function duration(s) {
  if (!(s > 0)) return "0 ms";
  if (s < 0.001) return round(s * 1e6) + " µs";
  if (s < 1) return round(s * 1e3) + " ms";
  return s < 120 ? round(s) + " s" : Math.round(s / 60) + " min";
}

/** @param {number} n */
function round(n) {
  return n < 10 ? +n.toFixed(1) : Math.round(n);
}

/** @param {number} n @param {string} one */
export function count(n, one) {
  return n.toLocaleString("en") + " " + (n === 1 ? one : one.replace(/([^aeiou])y$/, "$1ie").replace(/ch$/, "che") + "s");
}

/** Returns a time as the reader's clock has it. @param {string|undefined} time */
export function moment(time) {
  const t = new Date(time ?? "");
  if (Number.isNaN(t.getTime())) return "";
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`;
}
