// How URLs are read and written, as the URL Standard has it.
(function (host, engine) {
  const { sets, encode, parseHost } = engine.url;
  const ports = { "http:": "80", "https:": "443", "ws:": "80", "wss:": "443", "ftp:": "21", "file:": "" };
  const isSpecial = (url) => Object.hasOwn(ports, url.protocol);
  const isDrive = (text) => /^[a-zA-Z][:|]$/.test(text);
  const startsWithDrive = (text) => /^[a-zA-Z][:|]([/\\?#]|$)/.test(text);
  const isDot = (part) => /^(\.|%2e)$/i.test(part);
  const isDots = (part) => /^(\.|%2e){2}$/i.test(part);

  const blank = () => ({ protocol: "", username: "", password: "", host: null, port: "", path: [], query: null, fragment: null });
  const isOpaque = (url) => typeof url.path === "string";

  function shorten(url) {
    if (!(url.protocol === "file:" && url.path.length === 1 && /^[a-zA-Z]:$/.test(url.path[0]))) {
      url.path.pop();
    }
  }

  // trimmed leaves out controls and spaces at both ends. A pattern would look at each run of spaces from each of its places.
  function trimmed(text) {
    let [from, to] = [0, text.length];
    while (from < to && text[from] <= " ") {
      from++;
    }
    while (to > from && text[to - 1] <= " ") {
      to--;
    }
    return text.slice(from, to);
  }

  // parse returns the parts of a URL, or null. base is the parts of another.
  function parse(input, base = null) {
    const text = trimmed(input.toWellFormed()).replace(/[\t\n\r]/g, "");
    const url = blank();
    const scheme = /^([a-zA-Z][a-zA-Z0-9+\-.]*):/.exec(text);
    if (scheme === null) {
      return base === null ? null : relative(url, text, base);
    }
    url.protocol = scheme[0].toLowerCase();
    const rest = text.slice(scheme[0].length);
    if (url.protocol === "file:") {
      return file(url, rest, base?.protocol === "file:" ? base : null);
    }
    if (isSpecial(url)) {
      if (base?.protocol === url.protocol && !/^[/\\]{2}/.test(rest) && !isOpaque(base)) {
        return relative(url, rest, base);
      }
      return authority(url, rest.replace(/^[/\\]*/, ""));
    }
    if (rest.startsWith("//")) {
      return authority(url, rest.slice(2));
    }
    if (rest.startsWith("/")) {
      return pathStart(url, rest);
    }
    const [, opaque, tail] = /^([^?#]*)(.*)$/s.exec(rest);
    url.path = encode(opaque, sets.control);
    // Spaces before ? or # would be lost when the URL is read again without what follows.
    if (tail !== "" && url.path.endsWith(" ")) {
      url.path = url.path.slice(0, -1) + "%20";
    }
    return queryStart(url, tail);
  }

  function relative(url, text, base) {
    if (isOpaque(base)) {
      if (!text.startsWith("#")) {
        return null;
      }
      Object.assign(url, base);
      return queryStart(url, text);
    }
    if (base.protocol === "file:") {
      url.protocol = base.protocol;
      return file(url, text, base);
    }
    url.protocol = base.protocol;
    const slashes = isSpecial(url) ? /^[/\\]/ : /^\//;
    if (slashes.test(text)) {
      const second = text.slice(1);
      if (slashes.test(second)) {
        return authority(url, isSpecial(url) ? second.replace(/^[/\\]*/, "") : second.slice(1));
      }
      inherit(url, base);
      return pathStart(url, text);
    }
    inherit(url, base);
    url.path = [...base.path];
    if (text === "" || text.startsWith("#")) {
      url.query = base.query;
      return queryStart(url, text);
    }
    if (text.startsWith("?")) {
      return queryStart(url, text);
    }
    shorten(url);
    return paths(url, text);
  }

  function inherit(url, { username, password, host: name, port }) {
    Object.assign(url, { username, password, host: name, port });
  }

  function authority(url, text) {
    const end = text.search(isSpecial(url) ? /[/\\?#]/ : /[/?#]/);
    let place = end < 0 ? text : text.slice(0, end);
    const at = place.lastIndexOf("@");
    if (at >= 0) {
      const [, user, password] = /^([^:]*):?(.*)$/s.exec(place.slice(0, at));
      url.username = encode(user, sets.userinfo);
      url.password = encode(password, sets.userinfo);
      place = place.slice(at + 1);
      if (place === "") {
        return null;
      }
    }
    if (!setHost(url, place)) {
      return null;
    }
    return pathStart(url, end < 0 ? "" : text.slice(end));
  }

  // setHost takes host and port.
  function setHost(url, place) {
    const [, name, , port] = /^((?:\[[^\]]*\]?|[^:[])*|[^:]*)(:(.*))?$/s.exec(place) ?? [];
    if (name === undefined || (name === "" && (isSpecial(url) || port !== undefined))) {
      return false;
    }
    const found = name === "" ? "" : parseHost(name, isSpecial(url));
    if (found === undefined) {
      return false;
    }
    if (port !== undefined && port !== "") {
      if (!/^\d+$/.test(port) || Number(port) > 65535) {
        return false;
      }
      url.port = defaulted(url, port);
    }
    url.host = found;
    return true;
  }

  const defaulted = (url, port) => (ports[url.protocol] === String(Number(port)) ? "" : String(Number(port)));

  function file(url, text, base) {
    url.host = "";
    if (/^[/\\]/.test(text)) {
      if (/^[/\\]{2}/.test(text)) {
        return fileHost(url, text.slice(2));
      }
      if (base !== null) {
        url.host = base.host;
        if (!startsWithDrive(text.slice(1)) && base.path.length > 0 && /^[a-zA-Z]:$/.test(base.path[0])) {
          url.path.push(base.path[0]);
        }
      }
      return paths(url, text.slice(1));
    }
    if (base === null) {
      return paths(url, text, true);
    }
    url.host = base.host;
    url.path = [...base.path];
    if (text === "" || /^[?#]/.test(text)) {
      if (!text.startsWith("?")) {
        url.query = base.query;
      }
      return queryStart(url, text);
    }
    if (startsWithDrive(text)) {
      url.path = [];
    } else {
      shorten(url);
    }
    return paths(url, text);
  }

  function fileHost(url, text) {
    const end = text.search(/[/\\?#]/);
    const name = end < 0 ? text : text.slice(0, end);
    if (isDrive(name)) {
      return paths(url, text);
    }
    if (name !== "") {
      const found = parseHost(name, true);
      if (found === undefined) {
        return null;
      }
      url.host = found === "localhost" ? "" : found;
    }
    return pathStart(url, end < 0 ? "" : text.slice(end));
  }

  function pathStart(url, text) {
    if (isSpecial(url)) {
      return paths(url, text.replace(/^[/\\]/, ""));
    }
    if (text === "" || /^[?#]/.test(text)) {
      return queryStart(url, text);
    }
    return paths(url, text.replace(/^\//, ""));
  }

  // paths takes the segments of a path; what was there before are those of the base.
  function paths(url, text, bare = false) {
    const end = text.search(/[?#]/);
    const path = end < 0 ? text : text.slice(0, end);
    const segments = path.split(isSpecial(url) ? /[/\\]/ : "/");
    for (const [i, segment] of segments.entries()) {
      const last = i === segments.length - 1;
      if (isDots(segment)) {
        shorten(url);
        if (last) {
          url.path.push("");
        }
      } else if (isDot(segment)) {
        if (last) {
          url.path.push("");
        }
      } else {
        const drive = url.protocol === "file:" && url.path.length === 0 && isDrive(segment);
        url.path.push(drive ? segment[0] + ":" : encode(segment, sets.path));
      }
    }
    if (bare && text === "") {
      url.path = [""];
    }
    return queryStart(url, end < 0 ? "" : text.slice(end));
  }

  function queryStart(url, text) {
    const [, query, fragment] = /^(\?[^#]*)?(#.*)?$/s.exec(text);
    if (query !== undefined) {
      url.query = encode(query.slice(1), isSpecial(url) ? sets.specialQuery : sets.query);
    }
    if (fragment !== undefined) {
      url.fragment = encode(fragment.slice(1), sets.fragment);
    }
    return url;
  }

  function pathname(url) {
    return isOpaque(url) ? url.path : url.path.map((segment) => "/" + segment).join("");
  }

  function href(url) {
    let out = url.protocol;
    if (url.host !== null) {
      out += "//";
      if (url.username !== "" || url.password !== "") {
        out += url.username + (url.password === "" ? "" : ":" + url.password) + "@";
      }
      out += url.host + (url.port === "" ? "" : ":" + url.port);
    } else if (!isOpaque(url) && url.path.length > 1 && url.path[0] === "") {
      out += "/.";
    }
    return out + pathname(url) + (url.query === null ? "" : "?" + url.query) + (url.fragment === null ? "" : "#" + url.fragment);
  }

  Object.assign(engine.url, { parse, href, pathname, pathStart, isOpaque, isSpecial, defaulted });
})
