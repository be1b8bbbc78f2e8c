import type { Needs, Tool } from "./index.js";

/** What a test tells a call, and learns from it. */
export interface CallOptions {
  /** Gets what the tool logs. Without it, nothing shows. */
  log?: (level: "debug" | "info" | "warn" | "error", message: string) => void;
  /** Gets every report of progress as the tool made it. */
  progress?: (done: number, total: number, message: string) => void;
  /** How many milliseconds the call has, which `timeLeft()` then counts down. */
  timeLeft?: number;
  /** Answers what the tool asks for with `fetch`. Without it, nothing is asked: the tool gets an error. */
  http?: (request: Request) => Response | Promise<Response>;
  /** What `toolsrv:kv` keeps its values in: texts that a test puts there, and bytes. */
  kv?: Map<string, Uint8Array | string>;
  /** What `toolsrv:secrets` reads. */
  secrets?: Record<string, string>;
  /** What `toolsrv:settings` reads. */
  settings?: unknown;
  /** What `toolsrv:tools` calls, by path. One that throws a ToolError fails as the tool would. */
  tools?: Record<string, (args: any) => unknown>;
  /** What `toolsrv:files` reads: files by their paths, such as "/geo/cities.csv". */
  files?: Record<string, string | Uint8Array>;
  /** The needs of the script, so that the tool may use these and its own, and nothing else. */
  needs?: Needs;
}

/**
 * Calls a tool as the server does: arguments and result go through JSON, a JSON Schema's defaults are filled in, and a schema of zod or another
 * library checks the arguments. What a JSON Schema says besides is checked by the server, and by `toolsrv test`.
 */
export function call(tool: Tool<any, any>, args?: object | string, options?: CallOptions): Promise<unknown>;

/** Calls tools with their examples. It throws where a result is another one. */
export function examples(...tools: Tool<any, any>[]): Promise<void>;
