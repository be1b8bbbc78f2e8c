// Secrets that a tool may see itself, to sign with them. secrets.d.ts says what this is.
import { text, textOf, use } from "./capability.js";

export function read(name) {
  return text(use("secrets.read", textOf(name, "the name of a secret")));
}

export function bytes(name) {
  return new Uint8Array(use("secrets.read", textOf(name, "the name of a secret")));
}
