/** Returns a secret as a text. Few tools need one: the host itself puts secrets into the headers of requests. */
export function read(name: string): string;

/** Returns a secret as bytes. */
export function bytes(name: string): Uint8Array;
