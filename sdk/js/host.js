// What the host of a sandbox gives, for scripts that run natively: in Node, for tests. In the sandbox the engine has a module of its own
// under the name #host.

const write = [console.debug, console.info, console.warn, console.error];
let observer = {};

// observe has everything that a tool tells the host go to another, until it is called again; testing.js does that.
export function observe(next) {
  const before = observer;
  observer = next;
  return before;
}

export function log(level, message) {
  if (observer.log) {
    observer.log(["debug", "info", "warn", "error"][level], message);
  } else {
    write[level](message);
  }
}

export function progress(done, total, message) {
  observer.progress?.(done, total, message);
}

export function deadline() {
  return observer.deadline?.() ?? Infinity;
}

// In the sandbox, a call reads and answers with these. Natively there is no call but in tests of guest.js, which set them.
export const input = () => observer.input();
export const output = (text) => observer.output(text);
export const fail = (text) => observer.fail(text);
export const entry = (name) => observer.entry?.(name);

// use is what a tool was granted: a test says what stands in for it.
export const use = (...what) => observer.use?.(...what) ?? refused(what[0]);

export const file = (...what) => observer.file?.(...what) ?? refused("files");

function refused(name) {
  const message = `${name.split(".")[0]}: there is no host here: in a test, toolsrv/testing's call takes what stands in for it`;
  return [false, new TextEncoder().encode(JSON.stringify({ code: "not_granted", message })).buffer];
}
