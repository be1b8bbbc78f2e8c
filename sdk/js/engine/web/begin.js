// What the other files put their parts together with.
(function (host, engine) {
  // forget holds what each part does to be as new when a call begins, whatever happened while the script was loaded.
  engine.forget = [];
  engine.begin = () => {
    for (const forget of engine.forget) {
      forget();
    }
  };

  // define makes the members of an object global, as a platform's own: they can be replaced, and don't show when the global object is listed.
  engine.define = (members) => {
    for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(members))) {
      Object.defineProperty(globalThis, name, { ...descriptor, enumerable: false, configurable: true });
    }
  };

  // defineClasses does that with classes, whose members show when they are listed, and whose objects say what they are.
  engine.defineClasses = (classes) => {
    for (const [name, of] of Object.entries(classes)) {
      for (const member of Object.getOwnPropertyNames(of.prototype)) {
        if (member !== "constructor") {
          Object.defineProperty(of.prototype, member, { enumerable: true });
        }
      }
      Object.defineProperty(of.prototype, Symbol.toStringTag, { value: name, configurable: true });
    }
    engine.define(classes);
  };
})
