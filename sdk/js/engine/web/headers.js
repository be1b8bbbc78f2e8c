// Headers, as the Fetch Standard has them.
(function (host, engine) {
  const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
  const fixed = new WeakSet(); // those that can't be changed

  function nameOf(name, where) {
    const text = String(name);
    if (!token.test(text)) {
      throw new TypeError(`Headers.${where}: ${JSON.stringify(text)} is not the name of a header`);
    }
    return text.toLowerCase();
  }

  function valueOf(value, where) {
    const text = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
    if (/[\0\r\n]|[^\0-\xff]/.test(text)) {
      throw new TypeError(`Headers.${where}: the value of a header has no line breaks, and no characters beyond U+00FF`);
    }
    return text;
  }

  class Headers {
    #list = []; // of pairs, in the order in which they came

    constructor(init) {
      if (init === undefined) {
        return;
      }
      if (typeof init !== "object" || init === null) {
        throw new TypeError("Headers: the headers are neither an object nor a list of pairs");
      }
      if (init[Symbol.iterator] !== undefined) {
        for (const pair of init) {
          const both = typeof pair === "object" && pair !== null ? [...pair] : [];
          if (both.length !== 2) {
            throw new TypeError("Headers: a header of a list is a pair of name and value");
          }
          this.append(...both);
        }
        return;
      }
      for (const key of Reflect.ownKeys(init)) {
        if (Object.getOwnPropertyDescriptor(init, key)?.enumerable) {
          this.append(key, init[key]);
        }
      }
    }

    #check() {
      if (fixed.has(this)) {
        throw new TypeError("Headers: these can't be changed: make others of them with new Headers(headers)");
      }
    }

    append(name, value) {
      const pair = [nameOf(name, "append"), valueOf(value, "append")];
      this.#check();
      this.#list.push(pair);
    }

    delete(name) {
      const key = nameOf(name, "delete");
      this.#check();
      this.#list = this.#list.filter(([of]) => of !== key);
    }

    get(name) {
      const key = nameOf(name, "get");
      const values = this.#list.filter(([of]) => of === key).map(([, value]) => value);
      return values.length > 0 ? values.join(", ") : null;
    }

    getSetCookie() {
      return this.#list.filter(([name]) => name === "set-cookie").map(([, value]) => value);
    }

    has(name) {
      const key = nameOf(name, "has");
      return this.#list.some(([of]) => of === key);
    }

    set(name, value) {
      const key = nameOf(name, "set");
      const text = valueOf(value, "set");
      this.#check();
      const at = this.#list.findIndex(([of]) => of === key);
      if (at < 0) {
        this.#list.push([key, text]);
        return;
      }
      this.#list[at] = [key, text];
      this.#list = this.#list.filter(([of], i) => of !== key || i === at);
    }

    forEach(callback, receiver) {
      if (typeof callback !== "function") {
        throw new TypeError("Headers.forEach: the callback is not a function");
      }
      for (const [name, value] of this) {
        callback.call(receiver, value, name, this);
      }
    }

    // #sorted returns the pairs as they are listed: by name, with one value each, but for cookies.
    #sorted() {
      const names = [...new Set(this.#list.map(([name]) => name))].sort();
      return names.flatMap((name) => (name === "set-cookie" ? this.getSetCookie().map((value) => [name, value]) : [[name, this.get(name)]]));
    }

    // What is changed while somebody goes through the headers shows.
    *entries() {
      for (let i = 0, all; i < (all = this.#sorted()).length; i++) {
        yield all[i];
      }
    }

    *keys() {
      for (const [name] of this.entries()) {
        yield name;
      }
    }

    *values() {
      for (const [, value] of this.entries()) {
        yield value;
      }
    }

    [Symbol.iterator]() {
      return this.entries();
    }
  }

  engine.headers = { fix: (headers) => fixed.add(headers) };
  engine.defineClasses({ Headers });
})
