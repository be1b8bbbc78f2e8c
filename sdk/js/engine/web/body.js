// The bodies of Request and Response. They are there as a whole, so their streams have one chunk.
(function (host, engine) {
  class ReadableStream {
    #bytes; // undefined where there are none left
    #reader = null;
    #used = () => {};

    constructor(bytes, used) {
      if (!(bytes instanceof Uint8Array)) {
        throw new TypeError("ReadableStream: there are only those of bodies");
      }
      this.#bytes = bytes;
      this.#used = used;
    }

    get locked() {
      return this.#reader !== null;
    }

    #take() {
      this.#used();
      const value = this.#bytes;
      this.#bytes = undefined;
      return value === undefined || value.length === 0 ? { value: undefined, done: true } : { value, done: false };
    }

    getReader() {
      if (this.locked) {
        throw new TypeError("ReadableStream.getReader: the stream has a reader");
      }
      const reader = {
        read: async () => {
          if (this.#reader !== reader) {
            throw new TypeError("the reader has been released");
          }
          return this.#take();
        },
        cancel: async () => void this.#take(),
        releaseLock: () => {
          this.#reader = this.#reader === reader ? null : this.#reader;
        },
        closed: Promise.resolve(undefined),
      };
      return (this.#reader = reader);
    }

    async cancel() {
      if (this.locked) {
        throw new TypeError("ReadableStream.cancel: the stream has a reader");
      }
      this.#take();
    }

    async *values() {
      const reader = this.getReader();
      try {
        for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) {
          yield chunk.value;
        }
      } finally {
        reader.releaseLock();
      }
    }

    [Symbol.asyncIterator]() {
      return this.values();
    }

    get [Symbol.toStringTag]() {
      return "ReadableStream";
    }
  }

  // extract returns the bytes of what was given as a body, and the content type that goes with it; null and undefined are none.
  function extract(body) {
    if (body === null || body === undefined) {
      return { bytes: null, type: null };
    }
    if (body instanceof ArrayBuffer) {
      return { bytes: new Uint8Array(body.slice(0)), type: null };
    }
    if (ArrayBuffer.isView(body)) {
      return { bytes: new Uint8Array(body.buffer, body.byteOffset, body.byteLength).slice(), type: null };
    }
    if (body instanceof ReadableStream) {
      return { bytes: take(streams.get(body), "the stream"), type: null };
    }
    const type = body instanceof URLSearchParams ? "application/x-www-form-urlencoded;charset=UTF-8" : "text/plain;charset=UTF-8";
    return { bytes: new Uint8Array(host.encode(String(body).toWellFormed())), type };
  }

  const streams = new WeakMap(); // the bodies that they are of

  // take returns the bytes of a body that nobody has taken.
  function take(body, what) {
    if (body.used || body.stream?.locked) {
      throw new TypeError(`the body of ${what} has been used already: clone() keeps another`);
    }
    body.used = body.bytes !== null;
    return body.bytes ?? new Uint8Array(0);
  }

  // mix gives a class what has a body: of returns that of an object, { bytes, used, stream }.
  function mix(target, of) {
    const what = target.name === "Request" ? "the request" : "the response";
    const buffer = (body) => {
      const bytes = take(body, what);
      return bytes.byteLength === bytes.buffer.byteLength && !body.shared ? bytes.buffer : bytes.slice().buffer;
    };
    const text = (body) => {
      const bytes = take(body, what);
      const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
      return host.decode(bytes.buffer, bytes.byteOffset + marked, bytes.length - marked, false);
    };
    const members = {
      get body() {
        const body = of(this);
        if (body.bytes === null) {
          return null;
        }
        if (body.stream === undefined) {
          body.stream = new ReadableStream(body.bytes.slice(), () => (body.used = true));
          streams.set(body.stream, body);
        }
        return body.stream;
      },
      get bodyUsed() {
        return of(this).used;
      },
      async arrayBuffer() {
        return buffer(of(this));
      },
      async bytes() {
        return new Uint8Array(buffer(of(this)));
      },
      async json() {
        return JSON.parse(text(of(this)));
      },
      async text() {
        return text(of(this));
      },
    };
    Object.defineProperties(target.prototype, Object.getOwnPropertyDescriptors(members));
  }

  // made returns a body of bytes, or of null; shared says that others have the bytes, too.
  const made = (bytes, shared = false) => ({ bytes, shared, used: false, stream: undefined });

  function copy(body, what) {
    if (body.used || body.stream?.locked) {
      throw new TypeError(`${what}.clone: the body has been used already`);
    }
    body.shared = true;
    return made(body.bytes, true);
  }

  engine.body = { extract, take, mix, made, copy };
})
