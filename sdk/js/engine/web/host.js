// Hosts of URLs, as the URL Standard has them: names, and addresses of IP versions 4 and 6.
(function (host, engine) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const hex = (byte) => "%" + byte.toString(16).toUpperCase().padStart(2, "0");
  const control = (code) => code <= 0x1f || code > 0x7e;
  const among = (set, base) => (code) => base(code) || set.includes(String.fromCharCode(code));

  // Which characters are written as bytes, in each part of a URL.
  const fragment = among(" \"<>`", control);
  const query = among(" \"#<>", control);
  const path = among("?^`{}", query);
  const userinfo = among("/:;=@[\\]|", path);
  const component = among("$&+,", among("%", userinfo));
  const form = (code) => component(code) || among("!'()~", control)(code);
  const sets = { control, fragment, query, specialQuery: among("'", query), path, userinfo, component, form };

  function encode(text, inSet) {
    let out = "";
    for (const character of text.toWellFormed()) {
      const code = character.codePointAt(0);
      if (!inSet(code)) {
        out += character;
      } else if (code < 0x80) {
        out += hex(code);
      } else {
        for (const byte of new Uint8Array(host.encode(character))) {
          out += hex(byte);
        }
      }
    }
    return out;
  }

  // decode turns %XX into the bytes that they mean, and those into text.
  function decode(text) {
    if (!text.includes("%")) {
      return text.toWellFormed();
    }
    const from = new Uint8Array(host.encode(text.toWellFormed()));
    const to = new Uint8Array(from.length);
    let length = 0;
    for (let i = 0; i < from.length; i++) {
      const pair = from[i] === 0x25 ? String.fromCharCode(from[i + 1] || 0, from[i + 2] || 0) : "";
      if (/^[0-9a-fA-F]{2}$/.test(pair)) {
        to[length++] = parseInt(pair, 16);
        i += 2;
      } else {
        to[length++] = from[i];
      }
    }
    return decoder.decode(to.subarray(0, length));
  }

  // punycode writes a label of a name in ASCII, as RFC 3492 has it.
  function punycode(label) {
    const base = 36;
    const [tmin, tmax, skew, damp] = [1, 26, 38, 700];
    const codes = Array.from(label, (c) => c.codePointAt(0));
    const plain = codes.filter((code) => code < 0x80);
    let out = String.fromCharCode(...plain) + (plain.length > 0 ? "-" : "");
    const digit = (n) => String.fromCharCode(n < 26 ? n + 97 : n + 22);
    let [n, delta, bias, done] = [0x80, 0, 72, plain.length];
    while (done < codes.length) {
      const next = Math.min(...codes.filter((code) => code >= n));
      delta += (next - n) * (done + 1);
      n = next;
      for (const code of codes) {
        if (code < n) {
          delta++;
        }
        if (code !== n) {
          continue;
        }
        let q = delta;
        for (let k = base; ; k += base) {
          const t = Math.min(Math.max(k - bias, tmin), tmax);
          if (q < t) {
            break;
          }
          out += digit(t + (q - t) % (base - t));
          q = Math.floor((q - t) / (base - t));
        }
        out += digit(q);
        let d = done === plain.length ? Math.floor(delta / damp) : delta >> 1;
        d += Math.floor(d / (done + 1));
        let k = 0;
        for (; d > (base - tmin) * tmax >> 1; k += base) {
          d = Math.floor(d / (base - tmin));
        }
        bias = k + Math.floor((base - tmin + 1) * d / (d + skew));
        delta = 0;
        done++;
      }
      delta++;
      n++;
    }
    return "xn--" + out;
  }

  // isPunycode reports whether a label that begins with xn-- has a name behind that, which is not ASCII alone, and in its usual form.
  function isPunycode(label) {
    const dash = label.lastIndexOf("-");
    const digits = label.slice(dash + 1);
    const codes = Array.from(label.slice(4, Math.max(4, dash)), (c) => c.codePointAt(0));
    if (dash === 4 || digits === "") {
      return false;
    }
    let [n, i, bias] = [0x80, 0, 72];
    for (let at = 0; at < digits.length; ) {
      const before = i;
      let weight = 1;
      for (let k = 36; ; k += 36) {
        const digit = at < digits.length ? parseInt(digits[at++], 36) : NaN;
        const value = digit < 10 ? digit + 26 : digit - 10;
        const t = Math.min(Math.max(k - bias, 1), 26);
        i += value * weight;
        if (!(i < 2 ** 31)) {
          return false;
        }
        if (value < t) {
          break;
        }
        weight *= 36 - t;
      }
      const size = codes.length + 1;
      let d = before === 0 ? Math.floor(i / 700) : (i - before) >> 1;
      d += Math.floor(d / size);
      let k = 0;
      for (; d > 455; k += 36) {
        d = Math.floor(d / 35);
      }
      bias = k + Math.floor(36 * d / (d + 38));
      n += Math.floor(i / size);
      if (n > 0x10ffff) {
        return false;
      }
      i %= size;
      codes.splice(i++, 0, n);
    }
    const name = String.fromCodePoint(...codes);
    return usual(name) === name;
  }

  // usual returns a name in the form in which names are compared.
  function usual(name) {
    return name.normalize("NFKC").toLowerCase().normalize("NFC");
  }

  // ascii writes a name as the system of names has it. Names beyond ASCII are put into the usual form, NFKC in small letters, without the
  // tables of UTS 46, which know some exceptions more.
  function ascii(name) {
    if (!/[^\0-\x7f]/.test(name)) {
      const lower = name.toLowerCase();
      return lower.split(".").every((label) => !label.startsWith("xn--") || isPunycode(label)) ? lower : undefined;
    }
    const mapped = usual(name.replace(/[\u3002\uff0e\uff61]/g, ".").replace(/[\u00ad\u200b\u2060\ufeff\ufe00-\ufe0f]/g, ""));
    if (/[\ufffd\p{Cn}\p{Cc}\p{Cs}\p{Co}\u2028\u2029\u200e\u200f\u202a-\u202e]/u.test(mapped)) {
      return undefined;
    }
    return mapped.split(".").map((label) => (/[^\0-\x7f]/.test(label) ? punycode(label) : label)).join(".");
  }

  // number reads a part of an address: decimal, octal with 0, hexadecimal with 0x.
  function number(part) {
    if (/^0x[0-9a-f]*$/i.test(part)) {
      return part.length === 2 ? 0 : parseInt(part, 16);
    }
    if (/^0[0-7]+$/.test(part)) {
      return parseInt(part, 8);
    }
    return /^\d+$/.test(part) && !/^0\d/.test(part) ? parseInt(part, 10) : NaN;
  }

  // ipv4 returns the address of a name that ends in a number, which is undefined where it is not valid; null of any other name.
  function ipv4(name) {
    const parts = name.split(".");
    if (parts.at(-1) === "" && parts.length > 1) {
      parts.pop();
    }
    if (!/^(\d+|0x[0-9a-f]*)$/i.test(parts.at(-1))) {
      return null;
    }
    const numbers = parts.map(number);
    const last = numbers.pop();
    if (parts.length > 4 || numbers.some((n) => !(n <= 255)) || !(last < 256 ** (4 - numbers.length))) {
      return undefined;
    }
    const value = numbers.reduce((sum, n, i) => sum + n * 256 ** (3 - i), last);
    return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
  }

  function ipv6(text) {
    const halves = text.split("::");
    if (halves.length > 2) {
      return undefined;
    }
    const pieces = halves.map((half) => {
      const out = [];
      const parts = half === "" ? [] : half.split(":");
      for (const [i, part] of parts.entries()) {
        if (/^[0-9a-f]{1,4}$/i.test(part)) {
          out.push(parseInt(part, 16));
        } else if (i === parts.length - 1 && /^(\d{1,3}\.){3}\d{1,3}$/.test(part)) {
          const bytes = part.split(".");
          if (bytes.some((b) => Number(b) > 255 || /^0\d/.test(b))) {
            return undefined;
          }
          out.push(bytes[0] * 256 + Number(bytes[1]), bytes[2] * 256 + Number(bytes[3]));
        } else {
          return undefined;
        }
      }
      return out;
    });
    if (pieces.includes(undefined) || (halves.length === 2 && halves[1] !== "" && halves[0].includes("."))) {
      return undefined;
    }
    const [before, after = []] = pieces;
    const missing = 8 - before.length - after.length;
    if (halves.length === 2 ? missing < 1 : missing !== 0) {
      return undefined;
    }
    return shortest([...before, ...new Array(missing).fill(0), ...after]);
  }

  // shortest writes an address of version 6 with its first longest run of zeros left out.
  function shortest(pieces) {
    let [best, length] = [-1, 1];
    for (let i = 0; i < 8; i++) {
      let end = i;
      while (end < 8 && pieces[end] === 0) {
        end++;
      }
      if (end - i > length) {
        [best, length] = [i, end - i];
      }
    }
    const text = (list) => list.map((piece) => piece.toString(16)).join(":");
    return best < 0 ? `[${text(pieces)}]` : `[${text(pieces.slice(0, best))}::${text(pieces.slice(best + length))}]`;
  }

  // parse returns a host as a URL shows it, or undefined where it is not valid.
  function parse(text, special) {
    if (text.startsWith("[")) {
      return text.endsWith("]") ? ipv6(text.slice(1, -1)) : undefined;
    }
    if (!special) {
      return /[\0\t\n\r #/:<>?@[\\\]^|]/.test(text) ? undefined : encode(text, control);
    }
    const name = ascii(decode(text));
    if (name === undefined || name === "" || /[\0-\x20#%/:<>?@[\\\]^|\x7f]/.test(name)) {
      return undefined;
    }
    const address = ipv4(name);
    return address === null ? name : address;
  }

  engine.url = { sets, encode, decode, parseHost: parse };
})
