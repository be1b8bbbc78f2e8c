// How pages ask the server. Its paths are relative to where this script was loaded from, since a proxy may serve it below a prefix.

export const root = new URL("..", import.meta.url);

// Servers below other prefixes of the same host have tokens of their own.
const key = "toolsrv token " + root.pathname;

// The token is kept in this tab only, until that is closed. Nothing sends it by itself, as browsers do with cookies.
export const token = {
  get: () => sessionStorage.getItem(key) ?? "",
  /** Keeps a token in place of the one before, or forgets that where there is none. Returns why it can't be one, or "". @param {string} value */
  set(value) {
    // A header can't have other characters, and the browser's own message about that would show the token.
    if (value && !/^[\x21-\x7e]{1,8192}$/.test(value)) return "A token has no spaces, and only characters of ASCII.";
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
    return "";
  },
};

// Back and Forward can show a page as it was left, with what only the token of that time had to see.
addEventListener("pageshow", (event) => event.persisted && location.reload());

// Failure is an answer that is an error. code is the one of docs/http.md, and detail a sentence or a list of violations.
export class Failure extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body, { requestId = "", retryAfter = "" } = {}) {
    super(typeof body?.detail === "string" ? body.detail : `The server answers ${status}`);
    this.status = status;
    this.code = body?.code ?? "";
    this.detail = body?.detail;
    this.body = body;
    this.requestId = requestId;
    this.retryAfter = retryAfter; // seconds, or ""
  }
}

/** Returns what an answer that is an error says. @param {Response} response @param {(text: string) => any} parse */
export async function failureOf(response, parse = JSON.parse) {
  const body = await response.text().then(parse).catch(() => null);
  return new Failure(response.status, body, { requestId: response.headers.get("X-Request-Id") ?? "", retryAfter: response.headers.get("Retry-After") ?? "" });
}

/** Makes a request with the token, and returns the response whatever its status is. @param {string} path @param {RequestInit} options */
export async function send(path, options = {}) {
  const headers = new Headers(options.headers);
  if (token.get() && !headers.has("Authorization")) {
    try {
      headers.set("Authorization", "Bearer " + token.get());
    } catch {
      throw new Failure(0, { detail: "Your token has characters that can't be sent. Sign out, and type it anew." });
    }
  }
  return fetch(new URL(path, root), { credentials: "omit", redirect: "error", ...options, headers });
}

/** Returns the JSON that the server answers with, or throws a Failure. @param {string} path @param {RequestInit} options @param {(text: string) => any} parse */
export async function ask(path, options = {}, parse = JSON.parse) {
  const response = await send(path, { ...options, headers: { Accept: "application/json", ...options.headers } });
  if (!response.ok) throw await failureOf(response, parse);
  return parse(await response.text());
}
