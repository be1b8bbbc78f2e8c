// Who uses the console: whether the server lets them in, and what they may do there.

import { Failure, ask, failureOf, look, send } from "./api.js";
import { token } from "../server.js";
import { read } from "./json.js";

/**
 * @typedef {{name: string, scopes: string[], roles: string[], principal?: string}} Self
 * @typedef {{state: "asking"|"locked"|"in"|"failed", tools: any[], self: Self|null, mcp: boolean, etag?: string, wrong?: boolean, error?: unknown}} Session
 */

/** Asks for the tools, for who asks, and for what the server has, all at once. @param {Session} before whose list stays where it has not changed @param {AbortSignal} signal @returns {Promise<Session>} */
export async function open(before, signal) {
  try {
    // Who has no token may be somebody by a certificate, so that is asked for in any case.
    const self = selfOf(signal);
    const mcp = speaksMCP(signal);
    const answer = await send("tools", { signal, headers: { Accept: "application/json" } });
    if (!answer.ok) throw await failureOf(answer);
    const etag = answer.headers.get("ETag") ?? "";
    const tools = etag && etag === before.etag ? before.tools : read(await answer.text());
    return { state: "in", tools, etag, self: await self, mcp: await mcp };
  } catch (error) {
    if (!(error instanceof Failure) || error.status !== 401) return { state: "failed", tools: [], self: null, mcp: true, error };
    const wrong = token.get() !== "";
    return { state: "locked", tools: [], self: null, mcp: true, wrong };
  }
}

/** Returns whether the server speaks MCP. @param {AbortSignal} signal @returns {Promise<boolean>} */
async function speaksMCP(signal) {
  try {
    return (await ask("./", { signal })).links.mcp !== undefined;
  } catch {
    return true; // as nearly all do
  }
}

// The admin door is off on many servers, and then nothing is known.
/** @param {AbortSignal} signal @returns {Promise<Self|null>} */
async function selfOf(signal) {
  try {
    return await look("self", {}, signal);
  } catch {
    return null;
  }
}

/** @param {Self|null} self */
export const mayLook = (self) => self !== null && (self.roles.includes("admin:read") || self.roles.includes("admin"));

/** @param {Self|null} self */
export const mayChange = (self) => self !== null && self.roles.includes("admin");
