// The folders that a tool was granted. files.d.ts says what each of these is.
import * as host from "#host";
import { answered, text as decoded, textOf } from "./capability.js";
import { Failure } from "./error.js";

// at reads what is at a path: the bytes of a file, or the names in a folder.
function at(path, folder) {
  const place = textOf(path, "a path");
  try {
    if (place.includes("\0")) {
      throw new Failure("it has a zero, which no name has", { code: "invalid" });
    }
    return answered(host.file(place, folder));
  } catch (error) {
    error.message = `${place}: ${error.message}`;
    throw error;
  }
}

export async function read(path) {
  return new Uint8Array(at(path, false));
}

export async function text(path) {
  return decoded(at(path, false));
}

export async function list(path) {
  return decoded(at(path, true)).split("\0").slice(1).sort();
}
