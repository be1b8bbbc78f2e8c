// TextEncoder and TextDecoder: UTF-8, UTF-16 and windows-1252 with all their names.
(function (host, engine) {
  const names = {
    "utf-8": ["unicode-1-1-utf-8", "unicode11utf8", "unicode20utf8", "utf-8", "utf8", "x-unicode20utf8"],
    "utf-16le": ["csunicode", "iso-10646-ucs-2", "ucs-2", "unicode", "unicodefeff", "utf-16", "utf-16le"],
    "utf-16be": ["unicodefffe", "utf-16be"],
    "windows-1252": [
      "ansi_x3.4-1968", "ascii", "cp1252", "cp819", "csisolatin1", "ibm819", "iso-8859-1", "iso-ir-100", "iso8859-1", "iso88591", "iso_8859-1",
      "iso_8859-1:1987", "l1", "latin1", "us-ascii", "windows-1252", "x-cp1252",
    ],
  };
  const encodings = new Map(Object.entries(names).flatMap(([encoding, labels]) => labels.map((label) => [label, encoding])));
  // What windows-1252 has from 0x80 to 0x9f.
  const upper = "\u20ac\x81\u201a\u0192\u201e\u2026\u2020\u2021\u02c6\u2030\u0160\u2039\u0152\x8d\u017d\x8f\x90\u2018\u2019\u201c\u201d\u2022\u2013\u2014\u02dc\u2122\u0161\u203a\u0153\x9d\u017e\u0178";

  function bytesOf(input) {
    if (input === undefined) {
      return new Uint8Array(0);
    }
    if (ArrayBuffer.isView(input)) {
      return new Uint8Array(input.buffer, input.byteOffset, input.byteLength);
    }
    if (input instanceof ArrayBuffer || input instanceof SharedArrayBuffer) {
      return new Uint8Array(input);
    }
    throw new TypeError("TextDecoder.decode: the input is neither an ArrayBuffer nor a view of one");
  }

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }

    encode(input = "") {
      return new Uint8Array(host.encode(String(input).toWellFormed()));
    }

    encodeInto(source, destination) {
      if (!(destination instanceof Uint8Array)) {
        throw new TypeError("TextEncoder.encodeInto: the destination is not a Uint8Array");
      }
      let read = 0;
      let written = 0;
      for (const character of String(source).toWellFormed()) {
        const code = character.codePointAt(0);
        const size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        if (written + size > destination.length) {
          break;
        }
        if (size === 1) {
          destination[written] = code;
        } else {
          destination[written] = (0xf00 >> size) & 0xff | code >> 6 * (size - 1);
          for (let i = 1; i < size; i++) {
            destination[written + i] = 0x80 | (code >> 6 * (size - 1 - i)) & 0x3f;
          }
        }
        read += character.length;
        written += size;
      }
      return { read, written };
    }
  }

  // unfinished returns how many bytes at the end of UTF-8 begin a character whose rest may follow.
  function unfinished(bytes) {
    for (let back = 1; back <= Math.min(3, bytes.length); back++) {
      const byte = bytes[bytes.length - back];
      if (byte >= 0xc2 && byte <= 0xf4) {
        const needs = byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
        if (back >= needs) {
          return 0;
        }
        const second = back > 1 ? bytes[bytes.length - back + 1] : 0x80;
        const low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80;
        const high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf;
        return back === 1 || (second >= low && second <= high) ? back : 0;
      }
      if ((byte & 0xc0) !== 0x80) {
        return 0;
      }
    }
    return 0;
  }

  const invalid = (encoding) => new TypeError(`TextDecoder.decode: the input is not valid ${encoding}`);

  class TextDecoder {
    #encoding;
    #fatal;
    #ignoreBOM;
    #begun = false; // a mark of the byte order can't come any more
    #streaming = false;
    #rest = new Uint8Array(0); // of the last chunk

    constructor(label = "utf-8", options = {}) {
      const name = String(label).replace(/^[\t\n\f\r ]+|[\t\n\f\r ]+$/g, "").toLowerCase();
      this.#encoding = encodings.get(name);
      if (this.#encoding === undefined) {
        throw new RangeError(`TextDecoder: the encoding ${JSON.stringify(String(label))} is not there: UTF-8, UTF-16 and windows-1252 are`);
      }
      this.#fatal = Boolean(options?.fatal);
      this.#ignoreBOM = Boolean(options?.ignoreBOM);
    }

    get encoding() {
      return this.#encoding;
    }

    get fatal() {
      return this.#fatal;
    }

    get ignoreBOM() {
      return this.#ignoreBOM;
    }

    decode(input, options) {
      let bytes = bytesOf(input);
      const stream = Boolean(options?.stream);
      if (!this.#streaming) {
        this.#begun = false;
        this.#rest = new Uint8Array(0);
      }
      this.#streaming = stream;
      if (this.#rest.length > 0) {
        const joined = new Uint8Array(this.#rest.length + bytes.length);
        joined.set(this.#rest);
        joined.set(bytes, this.#rest.length);
        bytes = joined;
      }
      const late = stream ? this.#late(bytes) : 0;
      this.#rest = bytes.slice(bytes.length - late);
      let text = this.#decoded(bytes.subarray(0, bytes.length - late));
      if (!this.#begun && text !== "") {
        this.#begun = true;
        if (!this.#ignoreBOM && this.#encoding !== "windows-1252" && text[0] === "\ufeff") {
          text = text.slice(1);
        }
      }
      return text;
    }

    // #late returns how many bytes at the end wait for the next chunk.
    #late(bytes) {
      if (this.#encoding === "windows-1252") {
        return 0;
      }
      if (this.#encoding === "utf-8") {
        return unfinished(bytes);
      }
      const odd = bytes.length % 2;
      const last = bytes[bytes.length - odd - (this.#encoding === "utf-16le" ? 1 : 2)];
      return odd + (last >= 0xd8 && last <= 0xdb ? 2 : 0);
    }

    #decoded(bytes) {
      if (this.#encoding === "utf-8") {
        const text = host.decode(bytes.buffer, bytes.byteOffset, bytes.length, this.#fatal);
        if (text === undefined) {
          this.#streaming = false;
          throw invalid("UTF-8");
        }
        return text;
      }
      if (this.#encoding === "windows-1252") {
        return pieces(bytes, (b) => (b >= 0x80 && b < 0xa0 ? upper.charCodeAt(b - 0x80) : b));
      }
      const units = new Uint16Array(Math.ceil(bytes.length / 2));
      const first = this.#encoding === "utf-16le" ? 0 : 1;
      for (let i = 0; i < bytes.length >> 1; i++) {
        units[i] = bytes[2 * i + first] | bytes[2 * i + 1 - first] << 8;
      }
      if (bytes.length % 2 === 1) {
        units[units.length - 1] = 0xd800; // half a unit is not valid either
      }
      const text = pieces(units, (unit) => unit);
      if (this.#fatal && !text.isWellFormed()) {
        this.#streaming = false;
        throw invalid("UTF-16");
      }
      return text.toWellFormed();
    }
  }

  // pieces makes a string of numbers that are units of it.
  function pieces(numbers, unit) {
    const out = [];
    for (let i = 0; i < numbers.length; i += 4096) {
      out.push(String.fromCharCode(...Array.from(numbers.subarray(i, i + 4096), unit)));
    }
    return out.join("");
  }

  engine.defineClasses({ TextEncoder, TextDecoder });
})
