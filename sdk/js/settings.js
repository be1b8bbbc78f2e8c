// The operator's settings of a tool. settings.d.ts says what each of these is.
import * as host from "#host";
import { text, use } from "./capability.js";
import { Failure } from "./error.js";

const json = () => text(use("settings.read"));

export function read() {
  return JSON.parse(json());
}

export function load(make = (settings) => settings) {
  let made;
  const get = () => {
    const from = json();
    if (made?.from !== from) {
      made = { from, value: make(JSON.parse(from)) };
    }
    return made.value;
  };
  if (host.deadline() < 0) {
    prepare(get);
  }
  return { get };
}

// prepare does it while the tool starts, so that the snapshot has it. Where a tool is built there are no settings.
function prepare(get) {
  try {
    get();
  } catch (error) {
    if (!(error instanceof Failure)) {
      throw error;
    }
  }
}
