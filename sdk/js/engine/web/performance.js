// performance.now, which counts from the first time that a call asks: what the interpreter measures would count from when it started,
// and that may have been for another call.
(function (host, engine) {
  let origin; // [milliseconds of the monotonic clock, those of the other]

  function begun() {
    origin ??= [host.monotonic(), Date.now()];
    return origin;
  }

  class Performance {
    now() {
      const [monotonic] = begun();
      return host.monotonic() - monotonic;
    }

    get timeOrigin() {
      return begun()[1];
    }

    toJSON() {
      return { timeOrigin: this.timeOrigin };
    }
  }

  engine.forget.push(() => {
    origin = undefined;
  });
  engine.defineClasses({ Performance });
  engine.define({ performance: new Performance() });
})
