const parts = (url) => Object.fromEntries(["href", "origin", "protocol", "username", "password", "host", "hostname", "port", "pathname", "search", "hash"].map((name) => [name, url[name]]));

const cases = {
  ...Object.fromEntries([
    "https://user:pa%20ss@EXAMPLE.com:8080/a/../b/./c?x=1&y=é#frag ment", "http://example.com:80", "HTTP:\\\\a\\b", "https://é.example/ü?ü#ü", "http://0x7f.1/", "http://[::1]:3000/", "http://[1:0:0:2::3]/",
    "file:///C|/a/../b", "file://localhost/etc", "mailto:a@b.c", "data:text/plain,hi there", "javascript:alert(1)", "foo://host/path", "foo:/a", "blob:https://a.b/c", "  https://a.b/ \t\nc  ", "https://a.b?q=%zz%20", "ws://a.b:80/", "https://a.b/%2e%2e/c/%2E",
    "http://1.2.3", "http://faß.de/", "http://xn--fa-hia.de/", "https://a.b/\ud800",
  ].map((text) => [text, () => parts(new URL(text))])),
  ...Object.fromEntries(["", "a", "//a.b", "http://", "http://a b/", "http://a:65536/", "http://256.1.1.1/", "http://[1::2::3]/", "http://a%00b/", "http://%zz/", "https://xn--/", "1http://a"].map((text) => [`invalid ${text}`, () => [URL.canParse(text), new URL(text).href]])),
  ...Object.fromEntries(["", "b", "./b", "../b", "../../../b", "/b", "//b", "?b", "#b", "b/", "..", "http:b", "http://b", "b?c#d", "/", "x:y"].map((text) => [`relative ${text}`, () => new URL(text, "http://h/p/q/r?s#t").href])),
  "relative to nothing": () => new URL("b", "mailto:a"),
  "a base that is not valid": () => new URL("http://a", "b"),
  "the base as an object": () => new URL("c", new URL("http://a/b")).href,
  set: () => {
    const url = new URL("http://a.b/c");
    Object.assign(url, { protocol: "https", username: "u:", password: "p@", host: "x.y:99", pathname: "a b/../c?", search: "q= ", hash: "h " });
    return parts(url);
  },
  "set what can't be": () => {
    const url = new URL("http://a.b:1/c");
    Object.assign(url, { protocol: "foo", host: "", port: "70000", hostname: "a b" });
    return url.href;
  },
  "set ports": () => ["80", "81x", "x", "", "0", "65536"].map((port) => Object.assign(new URL("http://a:9/"), { port }).href),
  "set href": () => {
    const url = new URL("http://a/?b=1");
    const params = url.searchParams;
    url.href = "http://c/?d=2";
    return [params === url.searchParams, params.get("b"), params.get("d")];
  },
  "set href to what is not valid": () => Object.assign(new URL("http://a"), { href: "x" }),
  "searchParams write": () => {
    const url = new URL("http://a/?b=1#h");
    url.searchParams.append("c d", "é&=+");
    const first = url.href;
    url.searchParams.delete("b");
    url.searchParams.delete("c d");
    return [first, url.href];
  },
  "search reads": () => {
    const url = new URL("http://a/?b=1");
    url.search = "?c=2";
    return [...url.searchParams];
  },
  strings: () => [String(new URL("http://a")), JSON.stringify(new URL("http://a")), URL.canParse("a"), URL.canParse("a", "http://b"), URL.parse?.("a") ?? null, Object.prototype.toString.call(new URL("http://a"))],
  "params of text": () => [...new URLSearchParams("?a=1&b=2&a=%33&c&=d&&e=+%2B%zz")],
  "params of pairs": () => [...new URLSearchParams([["a", 1], ["b", "c"]])],
  "params of an object": () => [...new URLSearchParams({ a: 1, b: null })],
  "params of params": () => [...new URLSearchParams(new URLSearchParams("a=1"))],
  "params of a map": () => [...new URLSearchParams(new Map([["a", "b"]]))],
  "params that are no pairs": () => new URLSearchParams([["a"]]),
  params: () => {
    const p = new URLSearchParams("b=2&a=1&b=3");
    p.set("b", "4");
    p.append("c", "");
    p.sort();
    return [p.toString(), p.get("x"), p.getAll("b"), p.has("a", "1"), p.has("a", "2"), p.size, [...p.keys()], [...p.values()], Object.fromEntries(p)];
  },
  "params are written": () => new URLSearchParams([["a*-._~ !'()", "é€𝄞\0/"]]).toString(),
  "params change while they are read": () => {
    const p = new URLSearchParams("a=1&b=2&c=3");
    const seen = [];
    for (const [name] of p) {
      seen.push(name);
      p.delete(name);
    }
    return seen;
  },
  forEach: () => {
    const seen = [];
    new URLSearchParams("a=1").forEach(function (value, name, all) {
      seen.push(value, name, all.toString(), this.me);
    }, { me: 1 });
    return seen;
  },
  "many spaces": () => URL.canParse("http://a" + " ".repeat(200000) + "b"),
  "too few arguments": () => new URLSearchParams().append("a"),
};
