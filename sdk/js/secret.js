// Secrets that a tool may see itself, to sign with them. secret.d.ts says what this is.
import { text, textOf, use } from "./capability.js";

export function read(name) {
  return text(use("secret.read", textOf(name, "the name of a secret")));
}

export function bytes(name) {
  return new Uint8Array(use("secret.read", textOf(name, "the name of a secret")));
}
