/// <reference path="./modules.d.ts" />

/** Any JSON. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** A JSON Schema of an object or a result, draft 2020-12 where `$schema` names no other. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly [keyword: string]: unknown;
}

/** A schema of zod 4.2 or later, or of any other library with Standard Schema and Standard JSON Schema (standardschema.dev). */
export interface LibrarySchema<Input = any, Output = any> {
  readonly "~standard": {
    readonly vendor: string;
    readonly validate?: (value: unknown, options?: any) => unknown;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/** What `run` gets: what the library makes of the arguments, or what a JSON Schema that is written in place says. */
export type Arguments<P> = P extends LibrarySchema<any, infer Output> ? Output : P extends JsonSchema ? Described<P> : {};

/** What a caller passes. */
export type Accepted<P> = P extends LibrarySchema<infer Input, any> ? Input : P extends JsonSchema ? Described<P> : {};

/** The type that a JSON Schema describes. What it doesn't know is `any`. */
export type Described<S> = S extends { readonly const: infer C } ? C
  : S extends { readonly enum: readonly (infer E)[] } ? E
  : S extends { readonly anyOf: readonly (infer A)[] } ? Described<A>
  : S extends { readonly oneOf: readonly (infer A)[] } ? Described<A>
  : S extends { readonly type: readonly (infer T)[] } ? (T extends string ? OfType<T, S> : any)
  : S extends { readonly type: infer T extends string } ? OfType<T, S>
  : any;

type OfType<T extends string, S> = T extends "string" ? string
  : T extends "number" | "integer" ? number
  : T extends "boolean" ? boolean
  : T extends "null" ? null
  : T extends "array" ? (S extends { readonly items: infer I } ? Described<I>[] : any[])
  : T extends "object" ? (S extends { readonly properties: infer P } ? Members<P, S> : S extends { readonly additionalProperties: infer A extends object } ? { [name: string]: Described<A> } : any)
  : any;

type Required<S> = S extends { readonly required: readonly (infer R)[] } ? R : never;
type Present<P, S> = { [K in keyof P]: K extends Required<S> ? K : P[K] extends { readonly default: any } ? K : never }[keyof P];
type Members<P, S> = Flat<{ -readonly [K in Present<P, S>]: Described<P[K]> } & { -readonly [K in Exclude<keyof P, Present<P, S>>]?: Described<P[K]> }>;
type Flat<T> = { [K in keyof T]: T[K] };

/**
 * What a tool needs of the world: an operator grants it, or the tool is not served. A script exports it for all of its tools:
 *
 *     export const needs = { http: ["https://api.example.com"], kv: true };
 */
export interface Needs {
  /** Where `fetch` may ask: origins, with a path that what is asked for begins with, such as `https://*.example.com/v2/`. */
  readonly http?: readonly string[];
  /** Whether the tools keep values with `toolsrv:kv`. */
  readonly kv?: boolean;
  /** The secrets that a tool reads itself with `toolsrv:secrets`. */
  readonly secrets?: readonly string[];
  /** The schema of the settings that `toolsrv:settings` reads. */
  readonly settings?: JsonSchema | LibrarySchema;
  /** The tools that `toolsrv:tools` calls, such as `units/convert`. */
  readonly tools?: readonly string[];
  /** The folders that `toolsrv:files` reads. */
  readonly files?: readonly string[];
}

/** What a tool is, and what clients see of it. */
export interface Definition<P, R> {
  /** The tool's name: 1 to 64 of the characters A-Z a-z 0-9 _ -. Without it, the name of the export counts. */
  name?: string;
  /** The tool's name for people: one line. */
  title?: string;
  /** What the tool does and when to use it: agents choose by it. Without it, the comment above the export counts. */
  description?: string;
  /** What the tool takes: a JSON Schema, or a schema of zod or another library. Without it, `@param` in the comment above the export counts. */
  parameters?: P;
  /** What it returns. It documents; results are not checked. */
  result?: JsonSchema | LibrarySchema;
  /** Calls with their results, for the documentation and for tests. Without a result, any is right. */
  examples?: readonly { arguments: Record<string, unknown>; result?: unknown }[];
  /** What the tool does to the world. */
  annotations?: { readOnly?: boolean; destructive?: boolean; idempotent?: boolean; openWorld?: boolean };
  /** Pictures for it: an address, `https://…`, or the picture itself, `data:image/png;base64,…`. */
  icons?: readonly { src: string; mimeType?: string; sizes?: readonly string[]; theme?: "light" | "dark" }[];
  /** What this tool needs besides what the script exports as `needs`. */
  needs?: Omit<Needs, "settings">;
  /** The tool. Its result, or what its promise is fulfilled with, is sent as JSON. */
  run: (args: Arguments<P>) => R;
}

/** A tool, which can be called like the function that it is made of; a library's schema checks and converts the arguments before. */
export interface Tool<P, R> {
  (args: Accepted<P>): R;
  readonly run: (args: Arguments<P>) => R;
}

/**
 * Makes a tool of a function. Export it: its name is the export's.
 *
 *     export const add = tool({
 *       description: "Adds two numbers.",
 *       parameters: z.object({ a: z.number(), b: z.number() }),
 *       run: ({ a, b }) => a + b,
 *     });
 */
export function tool<const P extends JsonSchema | LibrarySchema, R>(definition: Definition<P, R> & { parameters: P }): Tool<P, R>;
export function tool<A, R>(definition: Omit<Definition<undefined, R>, "run"> & { parameters?: undefined; run: (args: A) => R }): Tool<LibrarySchema<A, A>, R>;
/** Makes a tool of a function whose comment says the rest. */
export function tool<A, R>(run: (args: A) => R): Tool<LibrarySchema<A, A>, R>;

/** Says what holds for all tools of the script: the path before their names, and the author's version. */
export function module(info: { namespace?: string; version?: string }): void;

/** What an error says besides its message. */
export interface ToolErrorOptions {
  /** A stable word for programs, such as "not_found": at most 128 characters. */
  code?: string;
  /** An HTTP status from 400 to 599; 400 where it is left out. */
  status?: number;
  /** Any JSON. With the rest, it has at most 64 KiB. */
  data?: unknown;
  /** Another error, which the log shows. */
  cause?: unknown;
}

/** An error for the client. Any other that a tool throws is the tool's fault: status 500, with its type and message. */
export class ToolError extends Error {
  /** @param message A sentence: what is wrong, where, and what to do. */
  constructor(message: string, options?: ToolErrorOptions);
  readonly code: string | undefined;
  readonly status: number | undefined;
  readonly data: unknown;
}

/**
 * Why something that needs a grant has not worked. A tool that doesn't catch it fails with its code and message, and the
 * status 502. The errors of `fetch` are a TypeError, as on the web, with the same `code`.
 */
export class Failure extends Error {
  constructor(message: string, options?: { code?: string; toolCode?: string; data?: unknown });
  /** A word such as "not_granted", "too_large", "limit", "timeout", "conflict", "quota" or "tool_error". */
  readonly code: string;
  /** The code of the ToolError of a tool that was called. */
  readonly toolCode: string | undefined;
  /** The data of that error. */
  readonly data: unknown;
}

/** Writes a line to the host's log, which only the operator reads. Values that are no text are written as JSON. */
export const log: {
  debug(...values: unknown[]): void;
  info(...values: unknown[]): void;
  warn(...values: unknown[]): void;
  error(...values: unknown[]): void;
};

/**
 * Reports how much of its work the call has done, to clients that ask for it. `total` is how much there is in the same unit, 0 where that is not
 * known. Report as often as you like: the host passes on a few in a second.
 */
export function progress(done: number, total?: number, message?: string): void;

/** How many milliseconds the call may still take; `Infinity` without a limit. A tool that can answer in part does so before. */
export function timeLeft(): number;
