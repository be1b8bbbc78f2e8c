// URL, over the parts of one.
(function (host, engine) {
  const { sets, encode, parseHost, parse, href, pathname, pathStart, isOpaque, isSpecial, defaulted, attach } = engine.url;
  const special = /[/\\?#]/;
  const wellFormed = (value) => String(value).toWellFormed();

  class URL {
    #url;
    #params;

    constructor(input, base) {
      const from = base === undefined ? null : parse(wellFormed(base));
      const parts = base !== undefined && from === null ? null : parse(wellFormed(input), from);
      if (parts === null) {
        const error = new TypeError(`${JSON.stringify(wellFormed(input))} is not a valid URL`);
        error.code = "ERR_INVALID_URL";
        error.input = wellFormed(input);
        throw error;
      }
      this.#become(parts);
    }

    static parse(input, base) {
      try {
        return new this(input, base);
      } catch {
        return null;
      }
    }

    static canParse(input, base) {
      return URL.parse(input, base) !== null;
    }

    #become(url) {
      this.#url = url;
      this.#params ??= new URLSearchParams();
      attach(this.#params, url.query, () => {
        const text = this.#params.toString();
        this.#url.query = text === "" ? null : text;
      });
    }

    get href() {
      return href(this.#url);
    }

    set href(value) {
      const url = parse(wellFormed(value));
      if (url === null) {
        throw new TypeError(`${JSON.stringify(wellFormed(value))} is not a valid URL`);
      }
      this.#become(url);
    }

    get origin() {
      const url = this.#url;
      if (url.protocol === "blob:") {
        const inner = parse(pathname(url));
        return inner !== null && /^https?:$/.test(inner.protocol) ? new URL(href(inner)).origin : "null";
      }
      return isSpecial(url) && url.protocol !== "file:" ? `${url.protocol}//${this.host}` : "null";
    }

    get protocol() {
      return this.#url.protocol;
    }

    set protocol(value) {
      const scheme = /^([a-zA-Z][a-zA-Z0-9+\-.]*)(:|$)/.exec(wellFormed(value).replace(/[\t\n\r]/g, ""));
      const url = this.#url;
      if (scheme === null) {
        return;
      }
      const protocol = scheme[1].toLowerCase() + ":";
      const file = protocol === "file:" && (url.username !== "" || url.password !== "" || url.port !== "");
      if (isSpecial({ protocol }) === isSpecial(url) && !file && !(url.protocol === "file:" && url.host === "")) {
        url.protocol = protocol;
        url.port = url.port === "" ? "" : defaulted(url, url.port);
      }
    }

    get username() {
      return this.#url.username;
    }

    set username(value) {
      if (this.#takesPort()) {
        this.#url.username = encode(wellFormed(value), sets.userinfo);
      }
    }

    get password() {
      return this.#url.password;
    }

    set password(value) {
      if (this.#takesPort()) {
        this.#url.password = encode(wellFormed(value), sets.userinfo);
      }
    }

    #takesPort() {
      return this.#url.host !== null && this.#url.host !== "" && this.#url.protocol !== "file:";
    }

    get host() {
      const { host: name, port } = this.#url;
      return name === null ? "" : port === "" ? name : `${name}:${port}`;
    }

    set host(value) {
      this.#setHost(value, true);
    }

    get hostname() {
      return this.#url.host ?? "";
    }

    set hostname(value) {
      this.#setHost(value, false);
    }

    #setHost(value, withPort) {
      const url = this.#url;
      if (isOpaque(url)) {
        return;
      }
      const text = wellFormed(value).replace(/[\t\n\r]/g, "");
      const place = text.split(isSpecial(url) ? special : /[/?#]/)[0];
      const [, name, , port] = /^(\[[^\]]*\]?|[^:]*)(:(\d*))?/.exec(place);
      if (/@/.test(name) || (name === "" && (port !== undefined || (isSpecial(url) && url.protocol !== "file:") || url.username !== "" || url.password !== "" || url.port !== ""))) {
        return;
      }
      if (port !== undefined && (!withPort || url.protocol === "file:")) {
        return;
      }
      const found = name === "" ? "" : parseHost(name, isSpecial(url));
      if (found === undefined) {
        return;
      }
      url.host = url.protocol === "file:" && found === "localhost" ? "" : found;
      if (withPort && port !== undefined && port !== "" && Number(port) <= 65535) {
        url.port = defaulted(url, port);
      }
    }

    get port() {
      return this.#url.port;
    }

    set port(value) {
      if (!this.#takesPort()) {
        return;
      }
      const text = wellFormed(value).replace(/[\t\n\r]/g, "");
      const digits = /^\d+/.exec(text)?.[0];
      if (text === "") {
        this.#url.port = "";
      } else if (digits !== undefined && Number(digits) <= 65535) {
        this.#url.port = defaulted(this.#url, digits);
      }
    }

    get pathname() {
      return pathname(this.#url);
    }

    set pathname(value) {
      const url = this.#url;
      if (!isOpaque(url)) {
        url.path = [];
        const text = wellFormed(value).replace(/[\t\n\r]/g, "").replace(/[?#]/g, (c) => (c === "?" ? "%3F" : "%23"));
        const { query, fragment } = url;
        pathStart(url, text);
        if (text === "" && url.host === null) {
          url.path = [""];
        }
        Object.assign(url, { query, fragment });
      }
    }

    get search() {
      return this.#url.query ? "?" + this.#url.query : "";
    }

    set search(value) {
      const text = wellFormed(value).replace(/[\t\n\r]/g, "");
      this.#url.query = text === "" ? null : encode(text.replace(/^\?/, ""), isSpecial(this.#url) ? sets.specialQuery : sets.query);
      this.#become(this.#url);
    }

    get searchParams() {
      return this.#params;
    }

    get hash() {
      return this.#url.fragment ? "#" + this.#url.fragment : "";
    }

    set hash(value) {
      const text = wellFormed(value).replace(/[\t\n\r]/g, "");
      this.#url.fragment = text === "" ? null : encode(text.replace(/^#/, ""), sets.fragment);
    }

    toString() {
      return this.href;
    }

    toJSON() {
      return this.href;
    }
  }

  engine.defineClasses({ URL });
})
