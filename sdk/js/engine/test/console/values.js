// Lines that console writes, in Node and in the engine alike; errors and times are left out, which differ.
class Point {
  constructor() {
    this.x = 1;
  }

  get y() {
    return 2;
  }
}
class Point3 extends Point {}
const circle = { name: "c", list: [] };
circle.self = circle;
circle.list.push(circle);
function named() {}

console.log();
console.log("text", 1, -0, 1.5, NaN, 10n, true, null, undefined, Symbol("s"));
console.log("%s is %d years and %i, %f %j %o %O %% %c.", "Ada", "36.5", 36.9, "1.5", { a: 1 }, 1, { b: 2 }, "color: red", "rest", { c: 3 });
console.log("%s", { a: 1, b: { c: 1 } }, "%s");
console.log("100%", "%d");
console.log("%s %s", "one");
console.log(["it's", 'a "quote"', "both ' and \"", "line\nbreak\ttab\\"]);
console.log({ a: 1, "b-c": 2, 3: 4, [Symbol("k")]: 5, get g() { return 1; }, set s(v) {}, get both() { return 1; }, set both(v) {} });
console.log([1, , 3, , ,], [undefined, null], [[[[1]]]], { a: { b: { c: { d: 1 } } } });
console.log(Array.from({ length: 105 }, (_, i) => i).length, Array.from({ length: 102 }, () => 0));
console.log(new Point(), new Point3(), Object.create(null), Object.create({}), Object.create(Point.prototype));
console.log(named, () => {}, class {}, Point, Point3, Math.max, async () => {}, function* gen() {});
console.log(new Map([["a", { b: 1 }], [{ k: 1 }, 2]]), new Set([1, "a", [2]]), new Map(), new Set(), new WeakMap(), new WeakSet());
console.log(new Date(0), new Date(NaN), /a\/b/gi, new Boolean(false), new String("ab"), new Number(-0), Object(1n), Object(Symbol("s")));
console.log(new Uint8Array([1, 2, 3]), new Float64Array(2), new BigInt64Array(1), new ArrayBuffer(3));
console.log(circle);
console.log(Object.assign([1, 2], { extra: true }));
console.log({ f: named, g() {}, h: class A {} }, [Symbol.iterator], { a: [], b: {} });
console.log(Math, JSON, globalThis === globalThis);
console.log([["a", ["b", ["c", ["d"]]]]], { deep: { er: { est: {} } } }, { deep: { er: { est: [] } } });
console.group("group");
console.log("inside\nof it");
console.group();
console.warn("deeper");
console.groupEnd();
console.groupEnd();
console.groupEnd();
console.info("outside");
console.debug({ level: "debug" });
console.error("error %s", "text");
console.assert(true, "not shown");
console.assert(false, "shown %d", 1);
console.assert(false);
console.count();
console.count("name");
console.count();
console.countReset();
console.count();
console.dir({ a: { b: 1 } });
