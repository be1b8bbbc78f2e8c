import type { Tool } from "./index.js";

/** What a call of a test is told, and tells. */
export interface CallOptions {
  /** Gets what the tool logs. Without it, nothing shows. */
  log?: (level: "debug" | "info" | "warn" | "error", message: string) => void;
  /** Gets every report of progress as the tool made it. */
  progress?: (done: number, total: number, message: string) => void;
  /** How many milliseconds the call has, which `timeLeft()` then counts down. */
  timeLeft?: number;
}

/**
 * Calls a tool as the server does: arguments and result go through JSON, a JSON Schema's defaults are filled in, and a schema of zod or another
 * library checks the arguments. What a JSON Schema says besides is checked by the server, and by `toolsrv test`.
 */
export function call(tool: Tool<any, any>, args?: object | string, options?: CallOptions): Promise<unknown>;

/** Calls tools with their examples. It throws where a result is another one. */
export function examples(...tools: Tool<any, any>[]): Promise<void>;
