/** Returns the bytes of a file in a folder that the tool was granted, such as "/geo/cities.csv". */
export function read(path: string): Promise<Uint8Array>;

/** Returns a file as a text. */
export function text(path: string): Promise<string>;

/** Returns the names in a folder, in their order. */
export function list(path: string): Promise<string[]>;
