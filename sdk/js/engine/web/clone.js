// structuredClone: of all that JSON has, and of dates, patterns, buffers and their views, maps, sets, errors and objects of primitives; cycles
// and shared objects stay so.
(function (host, engine) {
  const refuse = (what) => new DOMException(`${what} can't be cloned`, "DataCloneError");
  const errors = new Map([Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError].map((c) => [c.name, c]));
  const tag = (value) => Object.prototype.toString.call(value).slice(8, -1);
  const has = (brand, value) => {
    try {
      brand.call(value);
      return true;
    } catch {
      return false;
    }
  };
  const getter = (prototype, name) => Object.getOwnPropertyDescriptor(prototype, name).get;
  const brands = [
    [Date.prototype.getTime, (value) => new Date(value.getTime())],
    [getter(ArrayBuffer.prototype, "byteLength"), (value) => (value.resizable ? resizable(value) : value.slice(0))],
    [Boolean.prototype.valueOf, (value) => Object(Boolean.prototype.valueOf.call(value))],
    [Number.prototype.valueOf, (value) => Object(Number.prototype.valueOf.call(value))],
    [String.prototype.valueOf, (value) => Object(String.prototype.valueOf.call(value))],
    [BigInt.prototype.valueOf, (value) => Object(BigInt.prototype.valueOf.call(value))],
  ];
  const isMap = (value) => has(getter(Map.prototype, "size"), value);
  const isSet = (value) => has(getter(Set.prototype, "size"), value);
  const refused = [
    [Symbol.prototype.valueOf, "a symbol"],
    [getter(SharedArrayBuffer.prototype, "byteLength"), "a SharedArrayBuffer"],
    [WeakMap.prototype.has, "a WeakMap"],
    [WeakSet.prototype.has, "a WeakSet"],
    [WeakRef.prototype.deref, "a WeakRef"],
  ];

  function resizable(buffer) {
    const copy = new ArrayBuffer(buffer.byteLength, { maxByteLength: buffer.maxByteLength });
    new Uint8Array(copy).set(new Uint8Array(buffer));
    return copy;
  }

  function clone(value, known) {
    if (typeof value === "symbol" || typeof value === "function") {
      throw refuse(typeof value === "symbol" ? String(value) : `the function ${value.name || "without a name"}`);
    }
    if (typeof value !== "object" || value === null) {
      return value;
    }
    if (known.has(value)) {
      return known.get(value);
    }
    const remember = (copy) => {
      known.set(value, copy);
      return copy;
    };
    if (ArrayBuffer.isView(value)) {
      const buffer = clone(value.buffer, known);
      const of = value instanceof DataView ? DataView : globalThis[value[Symbol.toStringTag]];
      return remember(new of(buffer, value.byteOffset, value instanceof DataView ? value.byteLength : value.length));
    }
    for (const [brand, copy] of brands) {
      if (has(brand, value)) {
        return remember(copy(value));
      }
    }
    if (isMap(value)) {
      const copy = remember(new Map());
      for (const [key, of] of [...value]) {
        copy.set(clone(key, known), clone(of, known));
      }
      return copy;
    }
    if (isSet(value)) {
      const copy = remember(new Set());
      for (const of of [...value]) {
        copy.add(clone(of, known));
      }
      return copy;
    }
    if (Error.isError(value)) {
      return error(value, remember, known);
    }
    if (tag(value) === "RegExp" && has(getter(RegExp.prototype, "source"), value)) {
      return remember(new RegExp(value.source, value.flags));
    }
    for (const [brand, what] of refused) {
      if (has(brand, value)) {
        throw refuse(what);
      }
    }
    if (/^(Promise|Proxy|Generator|AsyncGenerator|.* Iterator|FinalizationRegistry)$/.test(tag(value))) {
      throw refuse(`a ${tag(value)}`);
    }
    const copy = remember(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) {
      Object.defineProperty(copy, key, { value: clone(value[key], known), writable: true, enumerable: true, configurable: true });
    }
    return copy;
  }

  function error(value, remember, known) {
    const of = errors.get(String(value.name)) ?? Error;
    const result = remember(new of());
    const own = (name) => Object.getOwnPropertyDescriptor(value, name);
    if (own("message") && "value" in own("message")) {
      Object.defineProperty(result, "message", { value: String(value.message), writable: true, enumerable: false, configurable: true });
    }
    Object.defineProperty(result, "stack", { value: String(value.stack ?? ""), writable: true, enumerable: false, configurable: true });
    if (own("cause")) {
      Object.defineProperty(result, "cause", { value: clone(value.cause, known), writable: true, enumerable: false, configurable: true });
    }
    return result;
  }

  engine.define({
    structuredClone(value, options) {
      if (arguments.length === 0) {
        throw new TypeError("structuredClone: there is no value");
      }
      const known = new Map();
      const transfer = [...(options?.transfer ?? [])];
      if (new Set(transfer).size !== transfer.length) {
        throw refuse("what is to be transferred twice");
      }
      for (const of of transfer) {
        if (!(of instanceof ArrayBuffer)) {
          throw new TypeError("structuredClone: what is to be transferred is not an ArrayBuffer");
        }
        if (of.detached) {
          throw refuse("an ArrayBuffer whose content is gone");
        }
        known.set(of, of.slice(0)); // moved when all else is cloned: an error leaves it where it is
      }
      const result = clone(value, known);
      for (const of of transfer) {
        of.transfer();
      }
      return result;
    },
  });
})
