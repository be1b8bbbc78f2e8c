const thrown = async (run) => {
  try {
    return await run();
  } catch (error) {
    return error;
  }
};
const heard = (target, ...types) => {
  const seen = [];
  for (const type of types) {
    target.addEventListener(type, (event) => seen.push([event.type, event.target === target, event.currentTarget === target, event.eventPhase]));
  }
  return seen;
};
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const cases = {
  event: () => {
    const e = new Event("a", { cancelable: true, bubbles: 1 });
    return [e.type, e.bubbles, e.cancelable, e.composed, e.defaultPrevented, e.target, e.currentTarget, e.eventPhase, typeof e.timeStamp, (e.preventDefault(), e.defaultPrevented), e.composedPath(), String(e)];
  },
  "not cancelable": () => {
    const e = new Event("a");
    e.preventDefault();
    return e.defaultPrevented;
  },
  "no type": () => new Event(),
  custom: () => [new CustomEvent("a", { detail: { b: 1 } }).detail, new CustomEvent("a").detail],
  dispatch: () => {
    const t = new EventTarget();
    const seen = heard(t, "a", "b");
    return [t.dispatchEvent(new Event("a")), t.dispatchEvent(new Event("c")), seen];
  },
  prevented: () => {
    const t = new EventTarget();
    t.addEventListener("a", (e) => e.preventDefault());
    return [t.dispatchEvent(new Event("a")), t.dispatchEvent(new Event("a", { cancelable: true }))];
  },
  once: () => {
    const t = new EventTarget();
    let n = 0;
    const one = () => n++;
    t.addEventListener("a", one, { once: true });
    t.addEventListener("a", one);
    t.dispatchEvent(new Event("a"));
    t.dispatchEvent(new Event("a"));
    return n;
  },
  "the same listener": () => {
    const t = new EventTarget();
    let n = 0;
    const one = () => n++;
    t.addEventListener("a", one);
    t.addEventListener("a", one, { capture: false });
    t.addEventListener("a", one, true);
    t.dispatchEvent(new Event("a"));
    t.removeEventListener("a", one);
    t.dispatchEvent(new Event("a"));
    return n;
  },
  "an object": () => {
    const t = new EventTarget();
    const seen = [];
    t.addEventListener("a", { name: "o", handleEvent(e) { seen.push(this.name, e.type); } });
    t.addEventListener("a", null);
    t.dispatchEvent(new Event("a"));
    return seen;
  },
  "what is no listener": () => new EventTarget().addEventListener("a", 1),
  "stopped": () => {
    const t = new EventTarget();
    const seen = [];
    t.addEventListener("a", (e) => { seen.push(1); e.stopImmediatePropagation(); });
    t.addEventListener("a", () => seen.push(2));
    t.dispatchEvent(new Event("a"));
    return seen;
  },
  "changed meanwhile": () => {
    const t = new EventTarget();
    const seen = [];
    const two = () => seen.push(2);
    t.addEventListener("a", () => { seen.push(1); t.removeEventListener("a", two); t.addEventListener("a", () => seen.push(3)); });
    t.addEventListener("a", two);
    t.dispatchEvent(new Event("a"));
    return seen;
  },
  "with a signal": () => {
    const t = new EventTarget();
    const c = new AbortController();
    let n = 0;
    t.addEventListener("a", () => n++, { signal: c.signal });
    t.dispatchEvent(new Event("a"));
    c.abort();
    t.dispatchEvent(new Event("a"));
    t.addEventListener("a", () => n++, { signal: c.signal });
    t.dispatchEvent(new Event("a"));
    return n;
  },
  "a class": () => {
    class Own extends EventTarget {
      fire() {
        return this.dispatchEvent(new Event("fire"));
      }
    }
    const o = new Own();
    const seen = heard(o, "fire");
    o.fire();
    return seen;
  },
  "what is no event": () => new EventTarget().dispatchEvent({ type: "a" }),
  controller: () => {
    const c = new AbortController();
    const seen = heard(c.signal, "abort");
    const before = [c.signal.aborted, c.signal.reason];
    c.abort();
    c.abort("again");
    return [before, c.signal.aborted, c.signal.reason, c.signal.reason.name, seen, String(c), String(c.signal)];
  },
  "a reason": () => {
    const c = new AbortController();
    c.abort("why");
    return [c.signal.reason, AbortSignal.abort(5).reason, AbortSignal.abort().reason.name, AbortSignal.abort(null).reason];
  },
  onabort: () => {
    const c = new AbortController();
    const seen = [];
    c.signal.onabort = () => seen.push("first");
    c.signal.onabort = (e) => seen.push(e.type);
    c.abort();
    return [seen, typeof c.signal.onabort, new AbortController().signal.onabort];
  },
  throwIfAborted: async () => [await thrown(() => AbortSignal.abort("x").throwIfAborted()), await thrown(() => new AbortController().signal.throwIfAborted()), await thrown(() => AbortSignal.abort().throwIfAborted())],
  "not to be made": () => new AbortSignal(),
  timeout: async () => {
    const s = AbortSignal.timeout(5);
    const before = s.aborted;
    let fired;
    s.addEventListener("abort", () => (fired = s.reason.name));
    await sleep(50); // Node doesn't wait for a signal alone
    return [before, fired, s.aborted];
  },
  "a timeout that stays": async () => {
    const s = AbortSignal.timeout(100000);
    await sleep(5);
    return s.aborted;
  },
  "no timeout": () => AbortSignal.timeout(),
  any: async () => {
    const [a, b] = [new AbortController(), new AbortController()];
    const s = AbortSignal.any([a.signal, b.signal]);
    const before = s.aborted;
    b.abort("b");
    a.abort("a");
    return [before, s.aborted, s.reason, AbortSignal.any([AbortSignal.abort(1), AbortSignal.abort(2)]).reason, AbortSignal.any([]).aborted];
  },
  "any with a timeout": async () => {
    const s = AbortSignal.any([new AbortController().signal, AbortSignal.timeout(5)]);
    await sleep(50);
    return s.reason.name;
  },
};
