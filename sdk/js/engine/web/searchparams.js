// URLSearchParams, which is application/x-www-form-urlencoded as an object.
(function (host, engine) {
  const { sets, encode, decode } = engine.url;
  const wellFormed = (value) => String(value).toWellFormed();
  let parsePairs; // of application/x-www-form-urlencoded
  let attach; // ties the parameters to a URL

  class URLSearchParams {
    #pairs = [];
    #changed = null;

    constructor(init = "") {
      if ((typeof init === "object" && init !== null) || typeof init === "function") {
        const iterator = init[Symbol.iterator];
        if (iterator !== undefined && iterator !== null) {
          for (const pair of init) {
            const list = [...pair];
            if (list.length !== 2) {
              throw new TypeError("URLSearchParams: each of its pairs must have two elements");
            }
            this.#pairs.push(list.map(wellFormed));
          }
        } else {
          const pairs = new Map(Reflect.ownKeys(init).filter((key) => Object.prototype.propertyIsEnumerable.call(init, key)).map((key) => [wellFormed(key), wellFormed(init[key])]));
          this.#pairs = [...pairs];
        }
      } else {
        this.#pairs = parsePairs(wellFormed(init).replace(/^\?/, ""));
      }
    }

    static {
      parsePairs = (text) => text.split("&").filter((part) => part !== "").map((part) => {
        const at = part.indexOf("=");
        const pair = at < 0 ? [part, ""] : [part.slice(0, at), part.slice(at + 1)];
        return pair.map((s) => decode(s.replaceAll("+", " ")));
      });
      attach = (params, text, changed) => {
        params.#pairs = parsePairs(text ?? "");
        params.#changed = changed;
      };
    }

    get size() {
      return this.#pairs.length;
    }

    append(name, value) {
      need(arguments, 2, "append");
      this.#pairs.push([wellFormed(name), wellFormed(value)]);
      this.#changed?.();
    }

    delete(name, value) {
      need(arguments, 1, "delete");
      const [n, v] = [wellFormed(name), value === undefined ? undefined : wellFormed(value)];
      this.#pairs = this.#pairs.filter(([key, of]) => key !== n || (v !== undefined && of !== v));
      this.#changed?.();
    }

    get(name) {
      need(arguments, 1, "get");
      return this.#pairs.find(([key]) => key === wellFormed(name))?.[1] ?? null;
    }

    getAll(name) {
      need(arguments, 1, "getAll");
      return this.#pairs.filter(([key]) => key === wellFormed(name)).map(([, value]) => value);
    }

    has(name, value) {
      need(arguments, 1, "has");
      return this.#pairs.some(([key, of]) => key === wellFormed(name) && (value === undefined || of === wellFormed(value)));
    }

    set(name, value) {
      need(arguments, 2, "set");
      const [n, v] = [wellFormed(name), wellFormed(value)];
      const first = this.#pairs.findIndex(([key]) => key === n);
      if (first < 0) {
        this.#pairs.push([n, v]);
      } else {
        this.#pairs[first][1] = v;
        this.#pairs = this.#pairs.filter(([key], i) => i <= first || key !== n);
      }
      this.#changed?.();
    }

    sort() {
      this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
      this.#changed?.();
    }

    forEach(callback, thisArgument) {
      need(arguments, 1, "forEach");
      for (let i = 0; i < this.#pairs.length; i++) {
        callback.call(thisArgument, this.#pairs[i][1], this.#pairs[i][0], this);
      }
    }

    *entries() {
      for (let i = 0; i < this.#pairs.length; i++) {
        yield [...this.#pairs[i]];
      }
    }

    *keys() {
      for (let i = 0; i < this.#pairs.length; i++) {
        yield this.#pairs[i][0];
      }
    }

    *values() {
      for (let i = 0; i < this.#pairs.length; i++) {
        yield this.#pairs[i][1];
      }
    }

    toString() {
      const part = (s) => encode(s, sets.form).replaceAll("%20", "+");
      return this.#pairs.map(([name, value]) => `${part(name)}=${part(value)}`).join("&");
    }
  }
  Object.defineProperty(URLSearchParams.prototype, Symbol.iterator, { value: URLSearchParams.prototype.entries, writable: true, configurable: true });

  function need(given, count, method) {
    if (given.length < count) {
      throw new TypeError(`URLSearchParams.${method} needs ${count === 1 ? "an argument" : "two arguments"}`);
    }
  }

  Object.assign(engine.url, { attach });
  engine.defineClasses({ URLSearchParams });
})
