const all = (headers) => [...headers];
const thrown = (run) => {
  try {
    return run();
  } catch (error) {
    return error;
  }
};
const names = ["", "a b", "a:b", "ä", "a\0", "a\n", "(", ")", "<", "@", ",", ";", "\\", '"', "/", "[", "?", "=", "{", "a", "A-Z", "!#$%&'*+-.^_`|~09"];
const values = ["", " a ", "\t\r\na\n", "a\nb", "a\rb", "a\0b", "ä", "\u0100", "\x7f", "a\tb", 1, null, undefined, true, [1, 2], { a: 1 }];

const cases = {
  "of nothing": () => [all(new Headers()), all(new Headers(undefined)), all(new Headers({})), all(new Headers([]))],
  "of null": () => new Headers(null),
  "of a number": () => new Headers(1),
  "of a text": () => new Headers("a"),
  "of an object": () => all(new Headers({ B: 1, a: " x ", "c-d": [1, 2] })),
  "of pairs": () => all(new Headers([["b", "1"], ["A", "2"], ["B", "3"]])),
  "of a map": () => all(new Headers(new Map([["a", 1], ["b", 2]]))),
  "of headers": () => all(new Headers(new Headers([["a", "1"], ["set-cookie", "x=1"], ["a", "2"], ["set-cookie", "y=2"]]))),
  "of parameters": () => all(new Headers(new URLSearchParams("a=1&b=2"))),
  "of what is no pair": () => new Headers([["a"]]),
  "of a triple": () => new Headers([["a", "b", "c"]]),
  "of texts": () => new Headers(["ab"]),
  "of a generator": () => all(new Headers((function* () { yield ["a", "1"]; })())),
  names: () => names.map((name) => thrown(() => all(new Headers([[name, "x"]])))),
  "names of other methods": () => ["get", "has", "delete", "set", "append"].map((method) => thrown(() => new Headers()[method]("a b", "c"))),
  values: () => values.map((value) => thrown(() => new Headers([["a", value]]).get("a"))),
  append: () => {
    const h = new Headers({ a: "1" });
    return [h.append("A", "2"), h.append("b", ""), h.append("b", ""), all(h), h.get("a"), h.get("B")];
  },
  set: () => {
    const h = new Headers([["a", "1"], ["b", "2"], ["a", "3"]]);
    h.set("A", "4");
    h.set("c", "5");
    return all(h);
  },
  delete: () => {
    const h = new Headers([["a", "1"], ["b", "2"], ["a", "3"]]);
    return [h.delete("A"), h.delete("x"), all(h)];
  },
  has: () => [new Headers({ a: "" }).has("A"), new Headers().has("a")],
  "get of none": () => new Headers().get("a"),
  cookies: () => {
    const h = new Headers([["set-cookie", "a=1; Path=/, b"], ["x", "1"], ["Set-Cookie", "c=2"]]);
    return [h.getSetCookie(), h.get("set-cookie"), all(h), (h.set("set-cookie", "d"), h.getSetCookie()), (h.delete("Set-Cookie"), h.getSetCookie())];
  },
  order: () => all(new Headers({ b: 1, A: 2, "a-b": 3, "0": 4, "~": 5, a_: 6 })),
  iterators: () => {
    const h = new Headers({ b: "1", a: "2" });
    return [[...h.keys()], [...h.values()], [...h.entries()], [...h], h.entries()[Symbol.iterator] !== undefined, Headers.prototype.entries.name];
  },
  forEach: () => {
    const seen = [];
    const h = new Headers({ b: "1", a: "2" });
    h.forEach(function (value, name, of) {
      seen.push([value, name, of === h, this.x]);
    }, { x: 1 });
    return seen;
  },
  "forEach of nothing": () => new Headers().forEach(1),
  "changed while it is read": () => {
    const h = new Headers({ a: "1", b: "2", c: "3" });
    const seen = [];
    for (const [name] of h) {
      seen.push(name);
      h.delete(name);
    }
    return seen;
  },
  "added while it is read": () => {
    const h = new Headers({ a: "1", c: "3" });
    const seen = [];
    for (const [name] of h) {
      seen.push(name);
      if (seen.length < 5) {
        h.append("b" + seen.length, "x");
      }
    }
    return seen;
  },
  "what it is": () => [String(new Headers()), Object.keys(Headers.prototype).sort(), Object.keys(new Headers({ a: 1 })), typeof Headers],
  "without new": () => Headers(),
  "many headers": () => all(new Headers(Array.from({ length: 300 }, (_, i) => ["x" + (i % 7), String(i)]))).map(([name, value]) => [name, value.length]),
};
