// Other tools of the server. tools.d.ts says what this is.
import { later, text, textOf } from "./capability.js";

export async function call(id, args = {}) {
  const json = JSON.stringify(args);
  if (json === undefined) {
    throw new TypeError("the arguments of a tool are an object that JSON can express");
  }
  return JSON.parse(text(await later("tools.call", textOf(id, "the name of a tool"), json)));
}
