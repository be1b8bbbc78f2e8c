const thrown = async (run) => {
  try {
    return await run();
  } catch (error) {
    return error;
  }
};
const every = async (list, run) => {
  const out = [];
  for (const one of list) {
    out.push(await thrown(() => run(one)));
  }
  return out;
};
const url = "https://example.com/a?b=c#d";
const bodies = [
  "text", "", "ä€😀", "\ud800", 1, true, {}, [1, 2], new Date(0).getTime(),
  new Uint8Array([1, 2, 255]), new Uint8Array([0, 104, 105]).subarray(1), new Uint8Array([104, 105]).buffer, new DataView(new Uint8Array([65, 66]).buffer), new Uint16Array([0x4241]),
  new URLSearchParams({ a: "1 2", b: "ä" }), null, undefined,
];
const bom = new Uint8Array([0xef, 0xbb, 0xbf, 0x31]);

const cases = {
  "a request": () => {
    const r = new Request(url);
    return [r.method, r.url, [...r.headers], r.body, r.bodyUsed, r.redirect, r.mode, r.credentials, r.cache, r.integrity, r.keepalive, r.referrer, r.referrerPolicy, r.destination, r.signal.aborted, String(r)];
  },
  "URLs": () => every(["https://EXAMPLE.com:443/../a b", new URL(url), "http://user@example.com", "http://:secret@example.com", "/a", "", "nothing", "data:,a", { toString: () => "http://a" }], (u) => new Request(u).url),
  "no URL": () => new Request(),
  methods: () => every(["get", "Post", "patch", "PATCH", "options", "HEAD", "delete", "Put", "propfind", "connect", "TRACE", "track", "a b", "", "ä", "GET\n"], (method) => new Request(url, { method }).method),
  "a body and GET": () => every(["GET", "HEAD", "get"], (method) => new Request(url, { method, body: "" })),
  redirects: () => every(["follow", "error", "manual", "other", "", null], (redirect) => new Request(url, { redirect }).redirect),
  choices: () => every([{ mode: "no-cors" }, { mode: "navigate" }, { mode: "x" }, { credentials: "include" }, { credentials: "x" }, { cache: "no-store" }, { cache: "x" }, { keepalive: 1 }, { integrity: "sha256-x" }], (init) => {
    const r = new Request(url, init);
    return [r.mode, r.credentials, r.cache, r.keepalive, r.integrity];
  }),
  "bodies of requests": () => every(bodies, async (body) => {
    const r = new Request(url, { method: "POST", body });
    return [r.headers.get("content-type"), r.body === null, await r.text(), r.bodyUsed];
  }),
  "bodies of responses": () => every(bodies, async (body) => {
    const r = new Response(body);
    return [r.headers.get("content-type"), r.body === null, await r.arrayBuffer(), r.bodyUsed];
  }),
  "a type of one's own": () => [new Response("a", { headers: { "Content-Type": "text/x" } }).headers.get("content-type"), new Request(url, { method: "POST", body: "a", headers: [["content-type", "y"]] }).headers.get("content-type")],
  "the bytes are copied": async () => {
    const bytes = new Uint8Array([1, 2]);
    const r = new Response(bytes);
    bytes[0] = 9;
    return r.arrayBuffer();
  },
  "a request of a request": async () => {
    const one = new Request(url, { method: "PUT", body: "x", headers: { a: "1" }, redirect: "error" });
    const two = new Request(one, { headers: { b: "2" } });
    return [two.method, two.url, [...two.headers], two.redirect, one.bodyUsed, await two.text(), await thrown(() => one.text()), await thrown(() => new Request(one))];
  },
  "another body": async () => {
    const one = new Request(url, { method: "PUT", body: "x" });
    const two = new Request(one, { body: "y" });
    return [one.bodyUsed, await one.text(), await two.text()];
  },
  "a request of one with a body, as GET": () => new Request(new Request(url, { method: "PUT", body: "x" }), { method: "GET" }),
  "clones of requests": async () => {
    const one = new Request(url, { method: "PUT", body: "x", headers: { a: "1" } });
    const two = one.clone();
    two.headers.set("a", "2");
    return [await one.text(), await two.text(), one.headers.get("a"), two.method, await thrown(() => one.clone())];
  },
  signals: () => every([undefined, null, new AbortController().signal, AbortSignal.abort(), {}, 1], (signal) => new Request(url, { signal }).signal.aborted),
  "a response": () => {
    const r = new Response();
    return [r.status, r.ok, r.statusText, r.type, r.url, r.redirected, r.body, r.bodyUsed, [...r.headers], String(r)];
  },
  statuses: () => every([200, 204, 299, 300, 404, 599, 600, 199, 101, 0, -1, "201", null, undefined, NaN, 65736, 200.9], (status) => {
    const r = new Response(null, { status });
    return [r.status, r.ok];
  }),
  "texts of statuses": () => every(["", "OK", "a\tb", "ä", "a\nb", "\0", "€", 1, undefined, null], (statusText) => new Response(null, { statusText }).statusText),
  "no body": () => every([200, 204, 205, 304], (status) => new Response("", { status }).status),
  "error": () => {
    const r = Response.error();
    return [r.type, r.status, r.ok, r.statusText, [...r.headers], r.body];
  },
  "what can't be changed": () => thrown(() => Response.error().headers.set("a", "b")),
  redirect: () => every([undefined, 301, 302, 303, 307, 308, 200, 304, 300], (status) => {
    const r = Response.redirect("https://example.com/a b", status);
    return [r.status, [...r.headers], r.body];
  }),
  "redirect to nowhere": () => Response.redirect("nothing"),
  json: () => every([{ a: 1 }, null, "a", [1, "ä"], undefined, () => 1, 1n], async (data) => {
    const r = Response.json(data);
    return [r.status, [...r.headers], await r.text()];
  }),
  "json with more": () => {
    const r = Response.json(1, { status: 201, statusText: "Made", headers: { "content-type": "a/b" } });
    return [r.status, r.statusText, [...r.headers]];
  },
  "reading json": () => every(['{"a": [1]}', "", "{", '"ä"', "\ufeff1"], (text) => new Response(text).json()),
  "reading text": () => every([bom, new Uint8Array([0xff, 0x41]), new Uint8Array([0xfe, 0xff, 0, 0x41])], (bytes) => new Response(bytes).text()),
  "reading twice": async () => {
    const r = new Response("a");
    return [await r.text(), await thrown(() => r.text()), await thrown(() => r.json()), await thrown(() => r.arrayBuffer()), await thrown(() => r.clone())];
  },
  "reading nothing twice": async () => {
    const r = new Response();
    return [await r.text(), await r.text(), r.bodyUsed, await thrown(() => r.json())];
  },
  "clones": async () => {
    const one = new Response("a", { status: 201, headers: { a: "1" } });
    const two = one.clone();
    const first = new Uint8Array(await one.arrayBuffer());
    first[0] = 66;
    return [await two.text(), two.status, [...two.headers], one.headers === two.headers];
  },
  stream: async () => {
    const r = new Response("abc");
    const reader = r.body.getReader();
    const one = await reader.read();
    return [one, await reader.read(), r.bodyUsed, r.body.locked, await thrown(() => r.text())].map((of) => (of?.value ? [...of.value] : of));
  },
  "a stream that is released": async () => {
    const r = new Response("abc");
    const reader = r.body.getReader();
    const locked = [r.body.locked, await thrown(() => r.text()), thrown(() => r.body.getReader())];
    reader.releaseLock();
    return [locked[0], locked[1], await locked[2], await r.text()];
  },
  "a stream in a loop": async () => {
    let out = "";
    const r = new Response("äbc");
    for await (const chunk of r.body) {
      out += new TextDecoder().decode(chunk);
    }
    return [out, r.bodyUsed];
  },
  "a stream as a body": async () => {
    const r = new Response("abc");
    return [await new Response(r.body).text(), await thrown(() => r.text())];
  },
  "the body of another": async () => new Response(new Response("abc").body).headers.get("content-type"),
  "what they are": () => [Request, Response].map((of) => [of.name, of.length, String(Object.prototype.toString.call(of.prototype))]),
  "other receivers": () => thrown(() => Object.getOwnPropertyDescriptor(Response.prototype, "status").get.call({})),
  "schemes": () => every(["ftp://example.com", "file:///etc/passwd", "javascript:1", "nothing", "https://user:secret@example.com"], (u) => fetch(u)),
  "a signal that is aborted": () => every([AbortSignal.abort(), AbortSignal.abort("why"), AbortSignal.abort(new RangeError("x"))], (signal) => fetch("http://[::1]:1/", { signal }).catch((why) => why)),
  "no arguments": () => thrown(() => fetch()),
  "it is a promise": () => {
    const p = fetch("nothing");
    p.catch(() => {});
    return [p instanceof Promise, fetch.name];
  },
};
