const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

const cases = {
  order: async () => {
    const order = [];
    setTimeout(() => order.push("timer 0"), 0);
    setTimeout(() => order.push("timer 20"), 20);
    setTimeout(() => order.push("timer 5"), 5);
    queueMicrotask(() => order.push("microtask"));
    Promise.resolve().then(() => order.push("promise"));
    order.push("first");
    await sleep(40);
    return order;
  },
  "jobs between timers": async () => {
    const order = [];
    setTimeout(() => {
      order.push("a");
      Promise.resolve().then(() => order.push("job of a"));
    }, 1);
    setTimeout(() => order.push("b"), 1);
    await sleep(20);
    return order;
  },
  "many timers": async () => {
    const order = [];
    const timers = Array.from({ length: 20000 }, (_, i) => setTimeout(() => order.push(i), 20 + (i * 7919) % 10));
    for (let i = 0; i < 19000; i++) {
      clearTimeout(timers[i]);
    }
    await sleep(300);
    return [order.length, order.filter((n, i) => i > 0 && (n * 7919) % 10 === (order[i - 1] * 7919) % 10 && n < order[i - 1]).length];
  },
  arguments: () => new Promise((done) => setTimeout((...args) => done(args), 1, 1, "b")),
  clear: async () => {
    let ran = 0;
    const one = setTimeout(() => ran++, 1);
    const two = setInterval(() => ran++, 1);
    clearTimeout(one);
    clearInterval(two);
    clearTimeout(undefined);
    clearTimeout(12345);
    await sleep(10);
    return ran;
  },
  interval: async () => {
    let ran = 0;
    await new Promise((done) => {
      const timer = setInterval(() => {
        if (++ran === 3) {
          clearInterval(timer);
          done();
        }
      }, 2);
    });
    await sleep(10);
    return ran;
  },
  "clear within": async () => {
    let ran = "";
    const b = [];
    setTimeout(() => {
      ran += "a";
      clearTimeout(b[0]);
    }, 1);
    b.push(setTimeout(() => (ran += "b"), 2));
    await sleep(15);
    return ran;
  },
  "delays that are none": async () => {
    const order = [];
    for (const delay of [undefined, null, NaN, -5, "2", 0, 1e20]) {
      setTimeout(() => order.push(String(delay)), delay);
    }
    await sleep(30);
    return order.sort();
  },
  "it waits": async () => {
    const begun = performance.now();
    await sleep(30);
    const took = performance.now() - begun;
    return took >= 29 && took < 3000;
  },
  "no function": () => setTimeout("code", 1),
  "await in loops": async () => {
    let sum = 0;
    for await (const n of (async function* () {
      yield 1;
      await sleep(1);
      yield 2;
    })()) {
      sum += n;
    }
    return sum;
  },
  allSettled: async () => (await Promise.allSettled([1, sleep(1), Promise.reject(new TypeError("x"))])).map((r) => r.status),
  performance: () => [typeof performance.now(), performance.now() >= 0, Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000],
  uuid: () => [/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/.test(crypto.randomUUID()), crypto.randomUUID() !== crypto.randomUUID()],
  "random values": () => {
    const bytes = new Uint8Array(100);
    const words = new BigUint64Array(4);
    return [crypto.getRandomValues(bytes) === bytes, bytes.some((b) => b !== 0), crypto.getRandomValues(words).some((w) => w > 2n ** 32n), crypto.getRandomValues(new Int16Array(0)).length];
  },
  "a part of a buffer": () => {
    const all = new Uint8Array(64);
    crypto.getRandomValues(all.subarray(32));
    return [all.subarray(0, 32).every((b) => b === 0), all.subarray(32).some((b) => b !== 0)];
  },
  "random floats": () => crypto.getRandomValues(new Float64Array(1)),
  "random views": () => crypto.getRandomValues(new DataView(new ArrayBuffer(1))),
  "too many random bytes": () => crypto.getRandomValues(new Uint8Array(65537)).length,
  "Math.random": () => {
    const list = Array.from({ length: 1000 }, Math.random);
    const mean = list.reduce((a, b) => a + b) / list.length;
    return [list.every((n) => n >= 0 && n < 1), new Set(list).size, mean > 0.4 && mean < 0.6, Math.random.name, Math.random.length];
  },
  "zone": () => [new Date(0).getTimezoneOffset(), new Date(2024, 6, 1).toISOString(), String(new Date(0)).replace(/ \(.*/, ""), Date.parse("2024-07-01T00:00:00")],
};
