// EventTarget and Event, without a tree of targets; AbortController and AbortSignal over them.
(function (host, engine) {
  const stopped = new WeakSet(); // events that no other listener gets
  let dispatch; // of an event to a target; false where its default is prevented

  class Event {
    #type;
    #init;
    #target = null;
    #current = null;
    #prevented = false;
    #dispatching = false;
    #timeStamp = performance.now();

    constructor(type, init) {
      if (arguments.length === 0) {
        throw new TypeError("Event: there is no type");
      }
      this.#type = String(type);
      this.#init = { bubbles: Boolean(init?.bubbles), cancelable: Boolean(init?.cancelable), composed: Boolean(init?.composed) };
    }

    static {
      dispatch = (target, event, listeners) => {
        if (event.#dispatching) {
          throw new DOMException("the event is being dispatched already", "InvalidStateError");
        }
        event.#dispatching = true;
        event.#target = event.#current = target;
        for (const listener of listeners(event.#type)) {
          if (stopped.has(event)) {
            break;
          }
          try {
            listener(event);
          } catch (error) {
            queueMicrotask(() => {
              throw error; // which nobody waits for
            });
          }
        }
        event.#dispatching = false;
        event.#current = null;
        stopped.delete(event);
        return !event.#prevented;
      };
    }

    get type() {
      return this.#type;
    }

    get target() {
      return this.#target;
    }

    get srcElement() {
      return this.#target;
    }

    get currentTarget() {
      return this.#current;
    }

    get eventPhase() {
      return this.#dispatching ? 2 : 0;
    }

    get bubbles() {
      return this.#init.bubbles;
    }

    get cancelable() {
      return this.#init.cancelable;
    }

    get composed() {
      return this.#init.composed;
    }

    get defaultPrevented() {
      return this.#prevented;
    }

    get timeStamp() {
      return this.#timeStamp;
    }

    composedPath() {
      return this.#dispatching ? [this.#target] : [];
    }

    preventDefault() {
      this.#prevented ||= this.cancelable;
    }

    stopPropagation() {}

    stopImmediatePropagation() {
      stopped.add(this);
    }
  }

  class CustomEvent extends Event {
    #detail;

    constructor(type, init) {
      super(...arguments);
      this.#detail = init?.detail ?? null;
    }

    get detail() {
      return this.#detail;
    }
  }

  class EventTarget {
    #listeners = [];

    addEventListener(type, callback, options) {
      const { once = false, signal, capture = false } = typeof options === "object" && options !== null ? options : { capture: Boolean(options) };
      const same = (l) => l.type === String(type) && l.callback === callback && l.capture === Boolean(capture);
      if (callback === null || callback === undefined || signal?.aborted || this.#listeners.some(same)) {
        return;
      }
      if (typeof callback !== "function" && typeof callback !== "object") {
        throw new TypeError("EventTarget.addEventListener: the listener is neither a function nor an object");
      }
      this.#listeners.push({ type: String(type), callback, capture: Boolean(capture), once });
      signal?.addEventListener("abort", () => this.removeEventListener(type, callback, options), { once: true });
    }

    removeEventListener(type, callback, options) {
      const capture = Boolean(typeof options === "object" && options !== null ? options.capture : options);
      this.#listeners = this.#listeners.filter((l) => l.type !== String(type) || l.callback !== callback || l.capture !== capture);
    }

    dispatchEvent(event) {
      return dispatch(this, event, (type) => this.#of(type));
    }

    // #of returns what an event of a type calls: neither what is added meanwhile, nor what is removed.
    *#of(type) {
      for (const listener of [...this.#listeners]) {
        if (listener.type === type && this.#listeners.includes(listener)) {
          if (listener.once) {
            this.#listeners = this.#listeners.filter((l) => l !== listener);
          }
          const { callback } = listener;
          yield (event) => (typeof callback === "function" ? callback.call(this, event) : callback.handleEvent(event));
        }
      }
    }
  }

  const made = Symbol("made here"); // no script has it
  let abort, make, left;

  class AbortSignal extends EventTarget {
    #aborted = false;
    #reason;
    #due = Infinity; // when a timeout aborts it, in milliseconds of the clock
    #sources = [];
    #handler = null;

    constructor(key) {
      if (key !== made) {
        throw new TypeError("AbortSignal: take one of AbortController, AbortSignal.timeout, AbortSignal.any or AbortSignal.abort");
      }
      super();
    }

    static {
      make = () => new AbortSignal(made);
      abort = (signal, reason = new DOMException("This operation was aborted", "AbortError")) => {
        if (!signal.#aborted) {
          signal.#aborted = true;
          signal.#reason = reason;
          signal.dispatchEvent(new Event("abort"));
        }
      };
      // left returns how many milliseconds are left until a timeout aborts the signal, of which the time may be over before its timer runs.
      left = (signal) => {
        const due = (of) => Math.min(of.#due, ...of.#sources.map(due));
        const rest = due(signal) - performance.now();
        if (rest <= 0) {
          AbortSignal.#expire(signal);
        }
        return rest;
      };
    }

    static #expire(signal) {
      signal.#sources.forEach((source) => left(source));
      if (signal.#due <= performance.now()) {
        abort(signal, new DOMException("The operation was aborted due to timeout", "TimeoutError"));
      }
    }

    static abort(reason) {
      const signal = make();
      abort(signal, reason);
      return signal;
    }

    static timeout(milliseconds) {
      const delay = Number(milliseconds);
      if (!(delay >= 0 && delay <= Number.MAX_SAFE_INTEGER)) {
        throw new TypeError("AbortSignal.timeout: the time is a number of milliseconds");
      }
      const signal = make();
      signal.#due = performance.now() + delay;
      if (delay < 2 ** 31) {
        setTimeout(() => AbortSignal.#expire(signal), Math.ceil(delay));
      }
      return signal;
    }

    static any(signals) {
      const sources = [...signals];
      const first = sources.find((source) => source.aborted);
      if (first !== undefined) {
        return AbortSignal.abort(first.reason);
      }
      const signal = make();
      signal.#sources = sources;
      for (const source of sources) {
        source.addEventListener("abort", () => abort(signal, source.reason), { once: true });
      }
      return signal;
    }

    get aborted() {
      return this.#aborted;
    }

    get reason() {
      return this.#reason;
    }

    get onabort() {
      return this.#handler;
    }

    set onabort(handler) {
      this.removeEventListener("abort", this.#handler);
      this.#handler = typeof handler === "function" ? handler : null;
      this.addEventListener("abort", this.#handler);
    }

    throwIfAborted() {
      if (this.#aborted) {
        throw this.#reason;
      }
    }
  }

  class AbortController {
    #signal = make();

    get signal() {
      return this.#signal;
    }

    abort(reason) {
      abort(this.#signal, reason);
    }
  }

  engine.signal = { make, abort, left };
  engine.defineClasses({ Event, CustomEvent, EventTarget, AbortSignal, AbortController });
})
