// What a tool can tell the host, and ask it, while it runs.
import * as host from "#host";

const levels = { debug: 0, info: 1, warn: 2, error: 3 };

// line joins what is logged as console.log does: texts as they are, errors with their stack, anything else as JSON.
function line(values) {
  return values.map(shown).join(" ");
}

function shown(value) {
  try {
    if (typeof value === "string") {
      return value;
    }
    if (value instanceof Error) {
      return value.stack?.includes(value.message) ? value.stack : `${value.name}: ${value.message}\n${value.stack ?? ""}`.trimEnd();
    }
    return JSON.stringify(value) ?? String(value);
  } catch {
    return Object.prototype.toString.call(value);
  }
}

export const log = Object.freeze({
  debug: (...values) => host.log(levels.debug, line(values)),
  info: (...values) => host.log(levels.info, line(values)),
  warn: (...values) => host.log(levels.warn, line(values)),
  error: (...values) => host.log(levels.error, line(values)),
});

export function progress(done, total = 0, message = "") {
  if (typeof done !== "number" || typeof total !== "number") {
    throw new TypeError("progress(done, total, message): done and total are numbers");
  }
  host.progress(done, total, String(message));
}

export function timeLeft() {
  const left = host.deadline();
  return left >= 0 ? left : Infinity;
}
