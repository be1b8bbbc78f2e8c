// setTimeout and setInterval, within a call. The engine runs what is due when there is nothing else to run, one at a time; it sleeps until
// the first is due. What a call leaves here when it ends never runs.
(function (host, engine) {
  const longest = 2 ** 31 - 1;
  let queue = []; // a heap of what is to run: the first is due first
  const waiting = new Map(); // the same, by number; what is stopped is no longer here
  let last = 0; // the number of the last timer
  let order = 0; // of timers that are due at one time, the first that was started runs first

  const before = (a, b) => a.due < b.due || (a.due === b.due && a.order < b.order);

  function enqueue(timer) {
    timer.order = ++order;
    let at = queue.length;
    for (let above; at > 0 && before(timer, queue[(above = (at - 1) >> 1)]); at = above) {
      queue[at] = queue[above];
    }
    queue[at] = timer;
  }

  function dequeue() {
    const first = queue[0];
    const moved = queue.pop();
    if (queue.length > 0) {
      let at = 0;
      for (let below = 1; below < queue.length; below = 2 * at + 1) {
        if (below + 1 < queue.length && before(queue[below + 1], queue[below])) {
          below++;
        }
        if (!before(queue[below], moved)) {
          break;
        }
        queue[at] = queue[below];
        at = below;
      }
      queue[at] = moved;
    }
    return first;
  }

  function start(name, callback, delay, rest, repeat) {
    if (typeof callback !== "function") {
      throw new TypeError(`${name}: the callback is not a function`);
    }
    let interval = Number(delay);
    if (!(interval >= 1 && interval <= longest)) {
      interval = 1;
    }
    const timer = { number: ++last, callback, rest, repeat, interval, due: host.monotonic() + interval };
    waiting.set(timer.number, timer);
    enqueue(timer);
    return timer.number;
  }

  function stop(number) {
    waiting.delete(Number(number));
  }

  // tick runs the next timer when it is due, and reports whether there was one.
  engine.tick = () => {
    let timer = dequeue();
    while (timer !== undefined && waiting.get(timer.number) !== timer) {
      timer = dequeue();
    }
    if (timer === undefined) {
      return false;
    }
    const wait = timer.due - host.monotonic();
    if (wait > 0) {
      host.sleep(wait);
    }
    if (timer.repeat) {
      timer.due = host.monotonic() + timer.interval;
      enqueue(timer);
    } else {
      waiting.delete(timer.number);
    }
    timer.callback.apply(globalThis, timer.rest);
    return true;
  };

  engine.forget.push(() => {
    queue = [];
    waiting.clear();
    last = order = 0;
  });

  engine.define({
    setTimeout(callback, delay, ...rest) {
      return start("setTimeout", callback, delay, rest, false);
    },
    setInterval(callback, delay, ...rest) {
      return start("setInterval", callback, delay, rest, true);
    },
    clearTimeout(number) {
      stop(number);
    },
    clearInterval(number) {
      stop(number);
    },
  });
})
