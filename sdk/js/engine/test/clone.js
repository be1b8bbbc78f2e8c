const refused = (of) => {
  try {
    return structuredClone(of);
  } catch (error) {
    return error;
  }
};

const cases = {
  plain: () => structuredClone({ a: [1, "b", null, undefined, true, 1n, NaN, -0], c: { d: {} } }),
  primitives: () => [structuredClone(1), structuredClone("a"), structuredClone(null), structuredClone(undefined)],
  copied: () => {
    const from = { a: { b: 1 } };
    const to = structuredClone(from);
    to.a.b = 2;
    return from.a.b;
  },
  circle: () => {
    const from = { list: [] };
    from.self = from;
    from.list.push(from);
    const to = structuredClone(from);
    return [to.self === to, to.list[0] === to, to !== from];
  },
  shared: () => {
    const one = {};
    const to = structuredClone([one, one]);
    return to[0] === to[1];
  },
  dates: () => [structuredClone(new Date(86400000)), structuredClone(new Date(NaN)).getTime()],
  patterns: () => {
    const from = /a(b)/giu;
    from.lastIndex = 3;
    const to = structuredClone(from);
    return [to.source, to.flags, to.lastIndex];
  },
  maps: () => structuredClone(new Map([[{ a: 1 }, new Set([1, "2"])]])),
  buffers: () => structuredClone(new Uint8Array([1, 2, 3]).buffer),
  views: () => {
    const buffer = new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8]).buffer;
    const to = structuredClone({ bytes: new Uint8Array(buffer, 2, 3), words: new Uint16Array(buffer), view: new DataView(buffer, 1, 2) });
    return [to.bytes, to.words, to.bytes.buffer === to.words.buffer, to.view.byteOffset, to.view.byteLength];
  },
  objects: () => [new Boolean(false), new Number(3), new String("ab"), Object(1n)].map((of) => [typeof structuredClone(of), structuredClone(of).valueOf(), structuredClone(of).constructor.name]),
  errors: () => {
    const from = new RangeError("too far", { cause: { a: 1 } });
    const to = structuredClone(from);
    return [to instanceof RangeError, to.message, to.cause, Object.keys(to), structuredClone(new (class Own extends Error {})("x")).constructor.name];
  },
  "an error of another name": () => {
    const from = new Error("x");
    from.name = "Mine";
    return [structuredClone(from).name, structuredClone(from).message];
  },
  classes: () => {
    class Point {
      constructor() {
        this.x = 1;
      }

      get y() {
        return 2;
      }
    }
    const to = structuredClone(new Point());
    return [to, Object.getPrototypeOf(to) === Object.prototype];
  },
  getters: () => structuredClone({ get a() { return 1; } }),
  arrays: () => {
    const from = [1, , 3];
    from.name = "n";
    const to = structuredClone(from);
    return [to.length, 1 in to, to.name];
  },
  "symbols as keys": () => Reflect.ownKeys(structuredClone({ [Symbol("a")]: 1, b: 2 })),
  "without a prototype": () => Object.getPrototypeOf(structuredClone(Object.create(null))) === Object.prototype,
  "refused": () => [() => 1, Symbol("a"), new WeakMap(), new WeakSet(), Promise.resolve(), { deep: [() => 1] }, (function* () {})()].map(refused),
  "a getter that throws": () => structuredClone({ get a() { throw new EvalError("mine"); } }),
  "__proto__": () => Object.keys(structuredClone(JSON.parse('{"__proto__": {"a": 1}}'))),
  transfer: () => {
    const from = new Uint8Array([1, 2]).buffer;
    const to = structuredClone({ from }, { transfer: [from] });
    return [to.from, from.byteLength];
  },
  "transfer of no buffer": () => structuredClone(1, { transfer: [{}] }),
  "transfer twice": () => {
    const from = new ArrayBuffer(1);
    return structuredClone(1, { transfer: [from, from] });
  },
  "no argument": () => structuredClone(),
};
