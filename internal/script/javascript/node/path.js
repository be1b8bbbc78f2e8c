// What node:path is on Linux. There is no current folder: a path that is not absolute is resolved from "/".
export const sep = "/";
export const delimiter = ":";

function text(value, name = "path") {
  if (typeof value !== "string") {
    throw new TypeError(`The "${name}" argument must be of type string. Received ${value === null ? "null" : typeof value}`);
  }
  return value;
}

// steps returns the parts of a path without "." and, as far as there is something to leave, "..".
function steps(path, absolute) {
  const out = [];
  for (const step of path.split("/")) {
    if (step === "" || step === ".") {
      continue;
    }
    if (step !== "..") {
      out.push(step);
    } else if (out.length > 0 && out.at(-1) !== "..") {
      out.pop();
    } else if (!absolute) {
      out.push("..");
    }
  }
  return out;
}

export function isAbsolute(path) {
  return text(path).startsWith("/");
}

export function normalize(path) {
  if (text(path) === "") {
    return ".";
  }
  const absolute = isAbsolute(path);
  const joined = steps(path, absolute).join("/");
  const end = path.endsWith("/") && joined !== "" ? "/" : "";
  return (absolute ? "/" : "") + joined + end || (path.endsWith("/") ? "./" : ".");
}

export function join(...paths) {
  const joined = paths.map((p) => text(p)).filter((p) => p !== "").join("/");
  return joined === "" ? "." : normalize(joined);
}

export function resolve(...paths) {
  let whole = "";
  for (let i = paths.length - 1; i >= 0 && !whole.startsWith("/"); i--) {
    if (text(paths[i], `paths[${i}]`) !== "") {
      whole = whole === "" ? paths[i] : `${paths[i]}/${whole}`;
    }
  }
  return "/" + steps(whole, true).join("/");
}

export function relative(from, to) {
  const a = resolve(text(from, "from")).split("/").filter(Boolean);
  const b = resolve(text(to, "to")).split("/").filter(Boolean);
  let same = 0;
  while (same < a.length && same < b.length && a[same] === b[same]) {
    same++;
  }
  return [...a.slice(same).map(() => ".."), ...b.slice(same)].join("/");
}

// trimmed returns a path without the slashes at its end.
function trimmed(path) {
  let end = path.length;
  while (end > 1 && path[end - 1] === "/") {
    end--;
  }
  return path.slice(0, end);
}

export function dirname(path) {
  const at = trimmed(text(path)).lastIndexOf("/");
  if (at < 0) {
    return ".";
  }
  return at === 0 ? "/" : at === 1 && path.startsWith("/") ? "//" : path.slice(0, at);
}

export function basename(path, suffix) {
  if (path === suffix) {
    return "";
  }
  const whole = trimmed(text(path));
  const base = whole.slice(whole.lastIndexOf("/") + 1);
  return suffix !== undefined && base !== text(suffix, "suffix") && base.endsWith(suffix) ? base.slice(0, base.length - suffix.length) : base;
}

export function extname(path) {
  const base = basename(path);
  const at = base.lastIndexOf(".");
  return at <= 0 || base === ".." ? "" : base.slice(at);
}

export function parse(path) {
  const root = isAbsolute(path) ? "/" : "";
  const base = basename(path);
  const ext = extname(path);
  const whole = trimmed(path);
  const dir = whole.includes("/") ? dirname(path) : "";
  return { root, dir: base === "" ? root : dir, base, ext, name: base.slice(0, base.length - ext.length) };
}

export function format({ root = "", dir, base, name = "", ext = "" }) {
  const file = base || name + (ext === "" || ext.startsWith(".") ? ext : `.${ext}`);
  const folder = dir || root;
  return folder === "" ? file : folder === root ? folder + file : `${folder}/${file}`;
}

export const toNamespacedPath = (path) => path;

const path = { sep, delimiter, isAbsolute, normalize, join, resolve, relative, dirname, basename, extname, parse, format, toNamespacedPath };
path.posix = path;
export const posix = path;
export default path;
