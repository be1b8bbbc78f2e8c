// node:perf_hooks: the engine's clock.
export const performance = globalThis.performance;
export default { performance };
