// Request, Response and fetch, as the Fetch Standard has them where that means something to a program without a page. The host does what
// is asked for as soon as it is: several requests follow one another.
(function (host, engine) {
  const { extract, mix, made, copy, take } = engine.body;
  const usual = ["DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT"];
  const isRedirect = (status) => [301, 302, 303, 307, 308].includes(status);
  const choices = {
    mode: ["cors", "navigate", "no-cors", "same-origin"],
    credentials: ["omit", "same-origin", "include"],
    cache: ["default", "no-store", "reload", "no-cache", "force-cache", "only-if-cached"],
    redirect: ["follow", "error", "manual"],
  };
  const defaults = { mode: "cors", credentials: "same-origin", cache: "default", redirect: "follow", integrity: "", keepalive: false };
  // What the host says itself, and what browsers don't let a program say either.
  const unsaid = /^(accept-encoding|connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade|proxy-.*|sec-.*)$/;

  let request, response; // what is in a Request and in a Response

  class Request {
    #in;

    constructor(input, init = {}) {
      if (arguments.length === 0) {
        throw new TypeError("Request: there is no URL");
      }
      init = init ?? {}; // which may be null
      const from = input instanceof Request ? input.#in : undefined;
      const url = from?.url ?? parsed(input);
      const own = { ...defaults, ...from, url };
      for (const [name, of] of Object.entries(choices)) {
        if (init[name] !== undefined) {
          own[name] = String(init[name]);
          if (!of.includes(own[name]) || own[name] === "navigate") {
            throw new TypeError(`Request: ${name} is one of ${of.join(", ")}`);
          }
        }
      }
      own.integrity = init.integrity === undefined ? own.integrity : String(init.integrity);
      own.keepalive = init.keepalive === undefined ? own.keepalive : Boolean(init.keepalive);
      own.method = init.method === undefined ? (from?.method ?? "GET") : methodOf(init.method);
      own.signal = signalOf(init.signal === undefined ? from?.signal : init.signal);
      own.headers = new Headers(init.headers ?? from?.headers);
      const given = init.body ?? null;
      if ((given !== null || (from !== undefined && from.body.bytes !== null)) && (own.method === "GET" || own.method === "HEAD")) {
        throw new TypeError(`Request: one with the method ${own.method} has no body`);
      }
      if (given !== null) {
        const { bytes, type } = extract(given);
        own.body = made(bytes);
        if (type !== null && !own.headers.has("content-type")) {
          own.headers.append("content-type", type);
        }
      } else {
        own.body = made(from === undefined || from.body.bytes === null ? null : take(from.body, "the request"));
      }
      this.#in = own;
    }

    static {
      request = (of) => of.#in;
    }

    get method() {
      return this.#in.method;
    }

    get url() {
      return this.#in.url;
    }

    get headers() {
      return this.#in.headers;
    }

    get destination() {
      return "";
    }

    get referrer() {
      return "about:client";
    }

    get referrerPolicy() {
      return "";
    }

    get mode() {
      return this.#in.mode;
    }

    get credentials() {
      return this.#in.credentials;
    }

    get cache() {
      return this.#in.cache;
    }

    get redirect() {
      return this.#in.redirect;
    }

    get integrity() {
      return this.#in.integrity;
    }

    get keepalive() {
      return this.#in.keepalive;
    }

    get duplex() {
      return "half";
    }

    get signal() {
      return this.#in.signal;
    }

    clone() {
      const body = copy(this.#in.body, "Request");
      const clone = new Request(this.#in.url);
      clone.#in = { ...this.#in, body, headers: new Headers(this.#in.headers) };
      return clone;
    }
  }

  function parsed(input) {
    const url = new URL(String(input));
    if (url.username !== "" || url.password !== "") {
      throw new TypeError("Request: a URL with a name and a password can't be asked for: say them in the header authorization");
    }
    return url.href;
  }

  function methodOf(value) {
    const method = String(value);
    const upper = method.toUpperCase();
    if (!/^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/.test(method) || ["CONNECT", "TRACE", "TRACK"].includes(upper)) {
      throw new TypeError(`Request: ${JSON.stringify(method)} is not a method that can be asked for`);
    }
    return usual.includes(upper) ? upper : method;
  }

  function signalOf(signal) {
    if (signal !== undefined && signal !== null && !(signal instanceof AbortSignal)) {
      throw new TypeError("Request: the signal is not an AbortSignal");
    }
    return signal ?? engine.signal.make();
  }

  class Response {
    #in;

    constructor(body = null, init = {}) {
      init = init ?? {}; // which may be null
      const status = init.status === undefined ? 200 : toShort(init.status);
      if (!(status >= 200 && status <= 599)) {
        throw new RangeError(`Response: the status is a number from 200 to 599; this is ${status}`);
      }
      const statusText = init.statusText === undefined ? "" : String(init.statusText);
      if (!/^[\t\x20-\x7e\x80-\xff]*$/.test(statusText)) {
        throw new TypeError("Response: the statusText has characters that it can't have");
      }
      const headers = new Headers(init.headers);
      if (body !== null && body !== undefined && [204, 205, 304].includes(status)) {
        throw new TypeError(`Response: one with the status ${status} has no body`);
      }
      const { bytes, type } = extract(body);
      if (type !== null && !headers.has("content-type")) {
        headers.append("content-type", type);
      }
      this.#in = { type: "default", url: "", redirected: false, status, statusText, headers, body: made(bytes) };
    }

    static {
      response = (own) => {
        const of = new Response();
        Object.assign(of.#in, own);
        engine.headers.fix(of.#in.headers);
        return of;
      };
      mix(Request, (of) => request(of).body);
      mix(Response, (of) => of.#in.body);
    }

    static error() {
      return response({ type: "error", status: 0 });
    }

    static redirect(url, status = 302) {
      const to = new URL(String(url)).href;
      if (!isRedirect(status)) {
        throw new RangeError(`Response.redirect: ${status} is not the status of a redirect`);
      }
      return response({ status, headers: new Headers({ location: to }) });
    }

    static json(data, init) {
      const text = JSON.stringify(data);
      if (text === undefined) {
        throw new TypeError("Response.json: this has no form in JSON");
      }
      const headers = new Headers(init?.headers);
      if (!headers.has("content-type")) {
        headers.append("content-type", "application/json");
      }
      return new Response(text, { status: init?.status, statusText: init?.statusText, headers });
    }

    get type() {
      return this.#in.type;
    }

    get url() {
      return this.#in.url;
    }

    get redirected() {
      return this.#in.redirected;
    }

    get status() {
      return this.#in.status;
    }

    get ok() {
      return this.#in.status >= 200 && this.#in.status <= 299;
    }

    get statusText() {
      return this.#in.statusText;
    }

    get headers() {
      return this.#in.headers;
    }

    clone() {
      const clone = new Response();
      clone.#in = { ...this.#in, body: copy(this.#in.body, "Response"), headers: new Headers(this.#in.headers) };
      return clone;
    }
  }

  const toShort = (value) => new Uint16Array([Number(value)])[0];

  async function fetch(input, init = undefined) {
    if (arguments.length === 0) {
      throw new TypeError("fetch: there is no URL");
    }
    const of = request(new Request(input, init));
    const left = engine.signal.left(of.signal);
    of.signal.throwIfAborted();
    const url = new URL(of.url);
    if (url.protocol !== "https:" && url.protocol !== "http:") {
      throw new TypeError(`fetch: ${url.protocol} is not a scheme that can be asked for: https: and http: are`);
    }
    url.hash = "";
    const answer = send(of, url.href, left);
    if (answer === undefined) {
      engine.signal.left(of.signal);
      of.signal.throwIfAborted();
    }
    const { head, body } = answer;
    if (of.redirect === "error" && isRedirect(head.status)) {
      throw failed({ code: "redirect", message: `the answer is a redirect, with the status ${head.status}, and redirect is "error"` });
    }
    const empty = of.method === "HEAD" || [101, 204, 205, 304].includes(head.status);
    return response({
      type: "basic",
      url: head.url,
      redirected: head.url !== url.href,
      status: head.status,
      headers: headersOf(head.headers),
      body: made(empty ? null : body),
    });
  }

  // send has the host do it. It returns undefined where the signal's time is over.
  function send(of, url, left) {
    const headers = [...of.headers].filter(([name]) => !unsaid.test(name));
    if (!of.headers.has("accept")) {
      headers.push(["accept", "*/*"]);
    }
    const head = { method: of.method, url, headers, redirect: of.redirect === "follow" ? "follow" : "manual" };
    if (left < 2 ** 31) {
      head.timeout = Math.max(1, Math.ceil(left));
    }
    const bytes = of.body.bytes;
    const [worked, answer] = host.use("http.send", JSON.stringify(head), bytes === null ? undefined : bytes.slice().buffer);
    of.body.used = bytes !== null;
    if (!worked) {
      const failure = JSON.parse(host.decode(answer, 0, answer.byteLength, false));
      if (failure.code === "timeout" && engine.signal.left(of.signal) <= 0) {
        return undefined;
      }
      throw failed(failure);
    }
    const size = new DataView(answer).getUint32(0, true);
    return { head: JSON.parse(host.decode(answer, 4, size, false)), body: new Uint8Array(answer, 4 + size) };
  }

  // failed returns the error of a failure of the host's, which the package toolsrv knows by the symbol.
  function failed({ code, message }) {
    const error = new TypeError(`fetch: ${message}`);
    Object.defineProperties(error, { code: { value: code }, [Symbol.for("toolsrv.failure")]: { value: { code, message } } });
    return error;
  }

  // headersOf takes what servers send, which may be more than a program may say.
  function headersOf(pairs) {
    const headers = new Headers();
    for (const [name, value] of pairs) {
      try {
        headers.append(name, value);
      } catch {
        headers.append(name, unescape(encodeURIComponent(value.toWellFormed())).replace(/[\0\r\n]/g, " ")); // as its bytes
      }
    }
    return headers;
  }

  engine.defineClasses({ Request, Response });
  engine.define({ fetch });
})
