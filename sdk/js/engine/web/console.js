// console, which writes to the tool's log: what it shows of a value is what Node shows, in one line.
(function (host, engine) {
  const [debug, info, warn, error] = [0, 1, 2, 3];
  const most = 100; // elements that are shown of a list
  const deepest = 2;

  const quote = (text) => {
    const mark = !text.includes("'") ? "'" : !text.includes('"') ? '"' : !text.includes("`") && !text.includes("${") ? "`" : "'";
    const escapes = { "\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\v": "\\v", "\\": "\\\\" };
    return mark + text.replace(/[\0-\x1f\\\x7f-\x9f]/g, (c) => escapes[c] ?? "\\x" + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, "0")).replace(mark === "'" ? /'/g : /$^/, "\\'") + mark;
  };

  function primitive(value) {
    switch (typeof value) {
      case "string":
        return quote(value);
      case "bigint":
        return `${value}n`;
      case "number":
        return Object.is(value, -0) ? "-0" : String(value);
      default:
        return String(value);
    }
  }

  const key = (name) => (typeof name === "symbol" ? `[${String(name)}]` : /^[a-zA-Z_][a-zA-Z_0-9]*$/.test(name) ? name : quote(name));

  function className(value) {
    for (let of = value; of !== null; of = Object.getPrototypeOf(of)) {
      const descriptor = Object.getOwnPropertyDescriptor(of, "constructor");
      if (typeof descriptor?.value === "function" && descriptor.value.name !== "") {
        return descriptor.value.name;
      }
    }
    return null;
  }

  // head returns what stands before the members: the class, unless it is the usual one.
  function head(value, usual, size) {
    const name = className(value);
    const tag = value[Symbol.toStringTag];
    const tagged = typeof tag === "string" && tag !== "" && tag !== name ? ` [${tag}]` : "";
    const shown = name === null ? `[${usual}: null prototype]` : name;
    return shown === usual && size === undefined && tagged === "" ? "" : `${shown}${size === undefined ? "" : `(${size})`}${tagged} `;
  }

  // members returns the texts of the properties, of which left out are those that skip says.
  function members(value, seen, depth, skip = () => false) {
    const out = [];
    for (const name of Reflect.ownKeys(value)) {
      const descriptor = Object.getOwnPropertyDescriptor(value, name);
      if (!descriptor?.enumerable || skip(name)) {
        continue;
      }
      const { get, set } = descriptor;
      const text = get !== undefined ? (set !== undefined ? "[Getter/Setter]" : "[Getter]") : set !== undefined ? "[Setter]" : inspect(descriptor.value, seen, depth + 1);
      out.push(`${key(name)}: ${text}`);
    }
    return out;
  }

  function list(value, length, seen, depth, show) {
    const out = [];
    let i = 0;
    for (; i < length && out.length < most; i++) {
      let holes = 0;
      while (i < length && !(i in value)) {
        holes++;
        i++;
      }
      if (holes > 0) {
        out.push(`<${holes} empty item${holes === 1 ? "" : "s"}>`);
        i--;
      } else {
        out.push(show(value[i]));
      }
    }
    return i < length ? [...out, `... ${length - i} more item${length - i === 1 ? "" : "s"}`] : out;
  }

  const braces = (before, inner, [open, close] = ["{", "}"]) => before + (inner.length === 0 ? open + close : `${open} ${inner.join(", ")} ${close}`);
  const isIndex = (name) => typeof name === "string" && /^(0|[1-9]\d*)$/.test(name);

  function ofObject(value, seen, depth) {
    const next = (of) => inspect(of, seen, depth + 1);
    const rest = (skip) => members(value, seen, depth, skip);
    if (typeof value === "function") {
      const source = Function.prototype.toString.call(value);
      const isClass = source.startsWith("class");
      const parent = isClass ? Object.getPrototypeOf(value)?.name : "";
      const name = value.name === "" ? " (anonymous)" : isClass ? ` ${value.name}` : `: ${value.name}`;
      const kind = isClass ? "class" : className(value) ?? "Function";
      const text = `[${kind}${isClass || value.name !== "" ? name : " (anonymous)"}${parent ? ` extends ${parent}` : ""}]`;
      const own = rest();
      return own.length === 0 ? text : braces(text + " ", own);
    }
    if (Array.isArray(value)) {
      const usual = className(value) === "Array";
      return braces(usual ? "" : head(value, "Array", value.length), [...list(value, value.length, seen, depth, next), ...rest(isIndex)], ["[", "]"]);
    }
    if (Error.isError(value)) {
      const own = rest((name) => name === "cause");
      if (Object.hasOwn(value, "cause")) {
        own.push(`[cause]: ${next(value.cause)}`);
      }
      if (value instanceof AggregateError) {
        own.push(`[errors]: ${next(value.errors)}`);
      }
      const text = `${String(value)}${value.stack ? "\n" + String(value.stack).trimEnd() : ""}`;
      const shown = value.stack && String(value.stack).startsWith(String(value)) ? String(value.stack).trimEnd() : text;
      return own.length === 0 ? shown : braces(shown + " ", own);
    }
    switch (Object.prototype.toString.call(value).slice(8, -1)) {
      case "Date": {
        const time = Number.isNaN(Date.prototype.getTime.call(value)) ? "Invalid Date" : Date.prototype.toISOString.call(value);
        return rest().length === 0 ? time : braces(time + " ", rest());
      }
      case "RegExp":
        return rest().length === 0 ? String(value) : braces(String(value) + " ", rest());
      case "Map":
        if (value instanceof Map) {
          return braces(head(value, "Object", value.size), [...[...value].map(([k, v]) => `${next(k)} => ${next(v)}`), ...rest()]);
        }
        break;
      case "Set":
        if (value instanceof Set) {
          return braces(head(value, "Object", value.size), [...[...value].map(next), ...rest()]);
        }
        break;
      case "Number":
      case "String":
      case "Boolean":
      case "BigInt":
      case "Symbol":
        if (className(value) !== "Object") {
          const own = rest((name) => className(value) === "String" && isIndex(name));
          const text = `[${className(value)}: ${primitive(value.valueOf())}]`;
          return own.length === 0 ? text : braces(text + " ", own);
        }
        break;
      case "Promise":
        return "Promise { <...> }";
      case "WeakMap":
      case "WeakSet":
        return `${className(value)} { <items unknown> }`;
      case "ArrayBuffer":
      case "SharedArrayBuffer": {
        const bytes = Array.from(new Uint8Array(value).subarray(0, 50), (b) => b.toString(16).padStart(2, "0")).join(" ");
        const more = value.byteLength > 50 ? ` ... ${value.byteLength - 50} more byte${value.byteLength === 51 ? "" : "s"}` : "";
        return `${className(value)} { [Uint8Contents]: <${bytes}${more}>, byteLength: ${value.byteLength} }`;
      }
    }
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
      return braces(head(value, "", value.length), [...list(value, value.length, seen, depth, primitive), ...rest(isIndex)], ["[", "]"]);
    }
    return braces(head(value, "Object"), rest());
  }

  function inspect(value, seen = [], depth = 0) {
    if ((typeof value !== "object" || value === null) && typeof value !== "function") {
      return primitive(value);
    }
    if (seen.includes(value)) {
      return "[Circular *1]";
    }
    if (depth > deepest && typeof value === "object" && !(value instanceof Error) && !(value instanceof Date) && !(value instanceof RegExp)) {
      return Array.isArray(value) ? (value.length === 0 ? "[]" : "[Array]") : Reflect.ownKeys(value).length === 0 ? ofObject(value, seen, depth) : `[${className(value) ?? "Object: null prototype"}]`;
    }
    const text = ofObject(value, [...seen, value], depth);
    return depth === 0 && text.includes("[Circular *1]") ? `<ref *1> ${text}` : text;
  }

  // safely shows a value whatever its getters and traps do.
  function safely(value, show) {
    try {
      return show(value);
    } catch (thrown) {
      return `[can't be shown: ${thrown instanceof Error ? thrown.message : typeof thrown}]`;
    }
  }

  const directives = {
    s: (v) => (typeof v === "string" ? v : typeof v === "object" && v !== null && !Object.hasOwn(v, "toString") && [Object.prototype, Array.prototype].includes(Object.getPrototypeOf(v)) ? inspect(v, [], 2) : typeof v === "bigint" || Object.is(v, -0) ? primitive(v) : String(v)),
    d: (v) => (typeof v === "bigint" ? `${v}n` : typeof v === "symbol" ? "NaN" : primitive(Number(v))),
    i: (v) => (typeof v === "bigint" ? `${v}n` : typeof v === "symbol" ? "NaN" : primitive(parseInt(v, 10))),
    f: (v) => (typeof v === "symbol" ? "NaN" : primitive(parseFloat(v))),
    j: (v) => JSON.stringify(v) ?? "undefined",
    o: (v) => inspect(v),
    O: (v) => inspect(v),
    c: () => "",
  };

  function format(values) {
    let rest = values;
    let out = "";
    if (typeof values[0] === "string" && values.length > 1) {
      rest = values.slice(1);
      out = values[0].replace(/%([sdifjoOc%])/g, (whole, directive) => {
        if (directive === "%") {
          return "%";
        }
        return rest.length === 0 ? whole : safely(rest.shift(), directives[directive]);
      });
      if (rest.length === 0) {
        return out;
      }
      out += " ";
    }
    return out + rest.map((value) => (typeof value === "string" ? value : safely(value, (v) => inspect(v)))).join(" ");
  }

  let indent = "";
  let counts = new Map();
  let times = new Map();
  engine.forget.push(() => {
    indent = "";
    counts = new Map();
    times = new Map();
  });

  const write = (level, values) => host.log(level, indent === "" ? format(values) : format(values).replace(/^/gm, indent));
  const labelled = (label) => (label === undefined ? "default" : String(label));
  const since = (label) => {
    const ms = host.monotonic() - times.get(label);
    return ms >= 1000 ? `${(ms / 1000).toFixed(3)}s` : `${Number(ms.toFixed(3))}ms`;
  };

  const console = {
    log: (...values) => write(info, values),
    info: (...values) => write(info, values),
    debug: (...values) => write(debug, values),
    warn: (...values) => write(warn, values),
    error: (...values) => write(error, values),
    dir: (value) => write(info, [inspect(value)]),
    dirxml: (...values) => write(info, values),
    table: (...values) => write(info, values),
    trace: (...values) => write(error, [`Trace: ${format(values)}\n${new Error().stack.trimEnd()}`]),
    assert: (condition, ...values) => {
      if (!condition) {
        write(error, values.length === 0 ? ["Assertion failed"] : typeof values[0] === "string" ? [`Assertion failed: ${values[0]}`, ...values.slice(1)] : ["Assertion failed:", ...values]);
      }
    },
    group: (...values) => {
      if (values.length > 0) {
        write(info, values);
      }
      indent += "  ";
    },
    groupEnd: () => {
      indent = indent.slice(2);
    },
    count: (label) => {
      const name = labelled(label);
      counts.set(name, (counts.get(name) ?? 0) + 1);
      write(info, [`${name}: ${counts.get(name)}`]);
    },
    countReset: (label) => {
      counts.delete(labelled(label));
    },
    time: (label) => {
      times.set(labelled(label), host.monotonic());
    },
    timeLog: (label, ...values) => {
      if (times.has(labelled(label))) {
        write(info, [`${labelled(label)}: ${since(labelled(label))}`, ...values]);
      }
    },
    timeEnd: (label) => {
      if (times.has(labelled(label))) {
        write(info, [`${labelled(label)}: ${since(labelled(label))}`]);
        times.delete(labelled(label));
      }
    },
  };
  console.groupCollapsed = console.group;
  Object.defineProperty(console, Symbol.toStringTag, { value: "console", configurable: true });
  engine.define({ console });
})
