// node:timers: the engine's timers, which run within a call.
const { setTimeout, setInterval, clearTimeout, clearInterval } = globalThis;
export const setImmediate = (run, ...args) => setTimeout(run, 0, ...args);
export const clearImmediate = clearTimeout;
export { setTimeout, setInterval, clearTimeout, clearInterval };
export default { setTimeout, setInterval, setImmediate, clearTimeout, clearInterval, clearImmediate };
