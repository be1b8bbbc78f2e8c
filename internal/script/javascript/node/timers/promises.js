// node:timers/promises, without signals to end a wait.
const later = globalThis.setTimeout;

export function setTimeout(delay, value) {
  return new Promise((done) => later(done, delay, value));
}

export function setImmediate(value) {
  return setTimeout(0, value);
}

export async function* setInterval(delay, value) {
  for (;;) {
    yield await setTimeout(delay, value);
  }
}

export const scheduler = { wait: (delay) => setTimeout(delay), yield: () => setImmediate() };
export default { setTimeout, setImmediate, setInterval, scheduler };
