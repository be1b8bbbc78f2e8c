/** A value with what is known of it. */
export interface Entry {
  readonly value: Uint8Array;
  /** Which version of the value it is: pass it as `expect`, and nobody's change is lost. */
  readonly version: bigint;
  /** When the value goes. */
  readonly expires: Date | undefined;
  /** The value as a text. */
  text(): string;
  /** The value as JSON. */
  json(): any;
}

/** Returns what a key has, or `undefined` where there is no such key. */
export function get(key: string): Promise<Entry | undefined>;

/**
 * Keeps a value: it is there when the promise is fulfilled, whatever happens then. Returns its version. The value goes after `ttl` milliseconds.
 * With `expect`, the key has to have that version, or to be new where it is 0; else the Failure has the code "conflict".
 */
export function set(key: string, value: string | ArrayBuffer | ArrayBufferView, options?: { ttl?: number; expect?: bigint | 0 }): Promise<bigint>;

declare function remove(key: string, options?: { expect?: bigint | 0 }): Promise<boolean>;
export {
  /** Removes a key, and says whether it was there. */
  remove as delete,
};

/** Lists the keys that begin with a text, in the order of their UTF-8: those behind `after`, at most `limit`. */
export function list(prefix?: string, options?: { after?: string; limit?: number }): AsyncGenerator<string, void, void>;
