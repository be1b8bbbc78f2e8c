// Intl, for English and for time in UTC: what is written here is what ICU writes for en-US. Anything else throws: a number or a date in the
// wrong form is worse than none. The methods toLocaleString of numbers and dates go the same way. What Intl has elsewhere, and not here, is
// undefined, since packages ask for it that way.
(function (host, engine) {
  const locale = "en-US";
  const missing = (what) => new RangeError(`${what} is not in toolsrv's JavaScript, whose Intl knows en-US and UTC: format it yourself, or bundle a package that can`);

  function check(locales, options, known, of) {
    for (const wanted of locales === undefined ? [] : [locales].flat()) {
      if (!/^en(-US)?$/i.test(String(wanted))) {
        throw missing(`${of} for ${String(wanted)}`);
      }
    }
    for (const [name, value] of Object.entries(options ?? {})) {
      if (value !== undefined && !(name in known)) {
        throw missing(`${of}: the option ${name}`);
      }
      if (value !== undefined && Array.isArray(known[name]) && !known[name].includes(value)) {
        throw missing(`${of}: ${name} ${String(value)}`);
      }
    }
    return options ?? {};
  }

  const currencies = { USD: ["$", 2], EUR: ["€", 2], GBP: ["£", 2], JPY: ["¥", 0], CAD: ["CA$", 2], AUD: ["A$", 2], INR: ["₹", 2], CNY: ["CN¥", 2], KRW: ["₩", 0], BRL: ["R$", 2], MXN: ["MX$", 2], NZD: ["NZ$", 2], ILS: ["₪", 2], VND: ["₫", 0] };
  const numberOptions = {
    style: ["decimal", "percent", "currency"], currency: Object.keys(currencies), currencyDisplay: ["symbol", "code"], useGrouping: [true, false, "auto", "always"],
    minimumIntegerDigits: 0, minimumFractionDigits: 0, maximumFractionDigits: 0, signDisplay: ["auto", "never", "always", "exceptZero"], localeMatcher: ["best fit", "lookup"], numberingSystem: ["latn"], notation: ["standard"],
  };

  function digits(value, name, low, high, fallback) {
    if (value === undefined) {
      return fallback;
    }
    const n = Number(value);
    if (!(n >= low && n <= high)) {
      throw new RangeError(`${name} is ${String(value)}: it must be from ${low} to ${high}`);
    }
    return Math.floor(n);
  }

  // decimal writes a number that is not negative with at most so many digits after the point, rounding halves up as its shortest digits have it.
  function decimal(value, most) {
    if (typeof value === "bigint") {
      return [String(value), ""];
    }
    let [mantissa, exponent = "0"] = String(value).split("e");
    let [whole, fraction = ""] = mantissa.split(".");
    const shift = Number(exponent);
    if (shift > 0) {
      fraction = fraction.padEnd(shift, "0");
      [whole, fraction] = [whole + fraction.slice(0, shift), fraction.slice(shift)];
    } else if (shift < 0) {
      whole = whole.padStart(1 - shift, "0");
      [whole, fraction] = [whole.slice(0, shift), whole.slice(shift) + fraction];
    }
    if (fraction.length > most) {
      const up = fraction[most] >= "5";
      const kept = BigInt(whole + fraction.slice(0, most)) + (up ? 1n : 0n);
      const text = String(kept).padStart(most + 1, "0");
      return most === 0 ? [text, ""] : [text.slice(0, -most), text.slice(-most)];
    }
    return [whole.replace(/^0+(?=\d)/, ""), fraction];
  }

  class NumberFormat {
    #options;

    constructor(locales, options) {
      const o = check(locales, options, numberOptions, "Intl.NumberFormat");
      const style = o.style ?? "decimal";
      if (style === "currency" && o.currency === undefined) {
        throw new TypeError("Intl.NumberFormat: the style currency needs a currency");
      }
      const usual = style === "currency" ? currencies[o.currency][1] : 0;
      const least = digits(o.minimumFractionDigits, "minimumFractionDigits", 0, 100, undefined);
      const most = digits(o.maximumFractionDigits, "maximumFractionDigits", 0, 100, undefined);
      const usualMost = style === "decimal" ? 3 : usual;
      if (least !== undefined && most !== undefined && least > most) {
        throw new RangeError("Intl.NumberFormat: minimumFractionDigits is larger than maximumFractionDigits");
      }
      this.#options = {
        locale, numberingSystem: "latn", style, ...(style === "currency" ? { currency: o.currency, currencyDisplay: o.currencyDisplay ?? "symbol", currencySign: "standard" } : {}),
        minimumIntegerDigits: digits(o.minimumIntegerDigits, "minimumIntegerDigits", 1, 21, 1),
        minimumFractionDigits: least ?? Math.min(usual, most ?? usual),
        maximumFractionDigits: most ?? Math.max(usualMost, least ?? 0),
        useGrouping: o.useGrouping === false ? false : o.useGrouping === "always" || o.useGrouping === true ? "always" : "auto",
        notation: "standard", signDisplay: o.signDisplay ?? "auto",
      };
    }

    get format() {
      return (value) => this.#format(value);
    }

    #format(input) {
      const o = this.#options;
      const value = typeof input === "bigint" ? input : Number(input);
      const negative = value < 0 || Object.is(value, -0);
      const amount = negative ? -value : value;
      let text;
      if (Number.isNaN(amount)) {
        text = "NaN";
      } else if (amount === Infinity) {
        text = "∞";
      } else {
        const scaled = o.style === "percent" ? (typeof amount === "bigint" ? amount * 100n : hundredfold(amount)) : amount;
        const [whole, fraction] = decimal(scaled, o.maximumFractionDigits);
        const kept = fraction.replace(/0+$/, "").padEnd(o.minimumFractionDigits, "0");
        const padded = whole.padStart(o.minimumIntegerDigits, "0");
        text = (o.useGrouping === false ? padded : padded.replace(/\B(?=(\d{3})+$)/g, ",")) + (kept === "" ? "" : "." + kept);
      }
      if (o.style === "percent") {
        text += "%";
      } else if (o.style === "currency") {
        text = o.currencyDisplay === "code" ? o.currency + (/^\d/.test(text) ? "\u00a0" : "") + text : currencies[o.currency][0] + text;
      }
      const zero = !/[1-9∞N]/.test(text);
      const sign = { auto: negative ? "-" : "", never: "", always: negative ? "-" : "+", exceptZero: zero ? "" : negative ? "-" : "+" }[o.signDisplay];
      return (Number.isNaN(amount) && o.signDisplay !== "always" ? "" : sign) + text;
    }

    resolvedOptions() {
      return { ...this.#options };
    }

    static supportedLocalesOf(locales) {
      return supported(locales);
    }
  }

  // hundredfold multiplies by its digits: 0.07 is 7, and not 7.000000000000001.
  function hundredfold(value) {
    const [mantissa, exponent = "0"] = String(value).split("e");
    return Number(`${mantissa}e${Number(exponent) + 2}`);
  }

  const supported = (locales) => (locales === undefined ? [] : [locales].flat()).filter((l) => /^en(-US)?$/i.test(l)).map((l) => (l.length > 2 ? locale : "en"));

  const months = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
  const days = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
  const numeric = ["numeric", "2-digit"];
  const dateOptions = {
    weekday: ["long", "short"], year: numeric, month: [...numeric, "long", "short"], day: numeric, hour: numeric, minute: numeric, second: numeric,
    hour12: [true, false], hourCycle: ["h12", "h23"], timeZone: ["UTC", "Etc/UTC", "GMT"], timeZoneName: ["short"], dateStyle: ["full", "long", "medium", "short"], timeStyle: ["long", "medium", "short"],
    localeMatcher: ["best fit", "lookup"], calendar: ["gregory"], numberingSystem: ["latn"],
  };
  const dateStyles = {
    full: { weekday: "long", year: "numeric", month: "long", day: "numeric" }, long: { year: "numeric", month: "long", day: "numeric" },
    medium: { year: "numeric", month: "short", day: "numeric" }, short: { year: "2-digit", month: "numeric", day: "numeric" },
  };
  const timeStyles = {
    long: { hour: "numeric", minute: "2-digit", second: "2-digit", timeZoneName: "short" }, medium: { hour: "numeric", minute: "2-digit", second: "2-digit" }, short: { hour: "numeric", minute: "2-digit" },
  };
  const parts = ["weekday", "year", "month", "day", "hour", "minute", "second"];

  class DateTimeFormat {
    #fields;
    #given;

    constructor(locales, options, usual = ["year", "month", "day"]) {
      const o = check(locales, options, dateOptions, "Intl.DateTimeFormat");
      const styled = o.dateStyle !== undefined || o.timeStyle !== undefined;
      const named = parts.filter((name) => o[name] !== undefined);
      if (styled && named.length > 0) {
        throw new TypeError(`Intl.DateTimeFormat: ${named[0]} doesn't go with dateStyle or timeStyle`);
      }
      const wanted = styled ? {} : Object.fromEntries((named.length > 0 ? named : usual).map((name) => [name, o[name] ?? "numeric"]));
      this.#fields = { ...wanted, ...dateStyles[o.dateStyle], ...timeStyles[o.timeStyle] };
      if (o.timeZoneName !== undefined) {
        this.#fields.timeZoneName = o.timeZoneName;
      }
      this.#given = { hour12: o.hour12 ?? o.hourCycle !== "h23", joint: o.dateStyle === "full" || o.dateStyle === "long" || (!styled && (o.month === "long" && o.weekday === undefined)) ? " at " : ", ", zone: o.timeZone === undefined ? "UTC" : o.timeZone };
      const f = this.#fields;
      for (const [first, between, last] of [["hour", "minute", "second"], ["year", "month", "day"]]) {
        if (first in f && last in f && !(between in f)) {
          throw missing(`Intl.DateTimeFormat: ${first} and ${last} without ${between}`);
        }
      }
      if (f.weekday !== undefined && parts.slice(1, 4).filter((name) => name in f).length === 1) {
        throw missing("Intl.DateTimeFormat: a weekday with only one of year, month and day");
      }
    }

    get format() {
      return (date) => this.#format(date === undefined ? Date.now() : Number(date));
    }

    #format(time) {
      const date = new Date(time);
      if (Number.isNaN(date.getTime())) {
        throw new RangeError("Intl.DateTimeFormat: the date is not valid");
      }
      const day = this.#date(date);
      const clock = this.#clock(date);
      return day !== "" && clock !== "" ? day + this.#given.joint + clock : day + clock;
    }

    #date(date) {
      const { weekday, year, month, day } = this.#fields;
      const two = (n) => String(n).padStart(2, "0");
      const count = date.getUTCFullYear();
      const ofEra = count > 0 ? count : 1 - count; // as elsewhere, whether that is before Christ or after
      const written = month === "long" || month === "short";
      const name = days[date.getUTCDay()];
      const of = {
        weekday: weekday === "long" ? name : name.slice(0, 3),
        year: year === "2-digit" ? two(ofEra % 100) : String(ofEra),
        month: written ? (month === "long" ? months[date.getUTCMonth()] : months[date.getUTCMonth()].slice(0, 3)) : month === "2-digit" ? two(date.getUTCMonth() + 1) : String(date.getUTCMonth() + 1),
        day: day === "2-digit" ? two(date.getUTCDate()) : String(date.getUTCDate()),
      };
      if (written) {
        const monthDay = day === undefined ? of.month : `${of.month} ${of.day}`;
        const rest = year === undefined ? monthDay : day === undefined ? `${monthDay} ${of.year}` : `${monthDay}, ${of.year}`;
        return weekday === undefined ? rest : `${of.weekday}, ${rest}`;
      }
      const numbers = [month && of.month, day && of.day, year && of.year].filter((part) => part !== undefined);
      const text = numbers.join("/");
      return weekday === undefined ? text : text === "" ? of.weekday : `${of.weekday}, ${text}`;
    }

    #clock(date) {
      const { hour, minute, second, timeZoneName } = this.#fields;
      const two = (n) => String(n).padStart(2, "0");
      const half = this.#given.hour12;
      const hours = half ? date.getUTCHours() % 12 || 12 : date.getUTCHours();
      const out = [];
      if (hour !== undefined) {
        out.push(hour === "2-digit" || !half ? two(hours) : String(hours));
      }
      if (minute !== undefined) {
        out.push(hour !== undefined || second !== undefined ? two(date.getUTCMinutes()) : String(date.getUTCMinutes()));
      }
      if (second !== undefined) {
        out.push(minute !== undefined ? two(date.getUTCSeconds()) : String(date.getUTCSeconds()));
      }
      const text = out.join(":") + (hour !== undefined && half ? (date.getUTCHours() < 12 ? " AM" : " PM") : "");
      return timeZoneName === undefined ? text : text === "" ? "UTC" : `${text} UTC`;
    }

    resolvedOptions() {
      const { hour } = this.#fields;
      return { locale, calendar: "gregory", numberingSystem: "latn", timeZone: this.#given.zone === "GMT" || this.#given.zone === "Etc/UTC" ? "UTC" : this.#given.zone, ...(hour === undefined ? {} : { hourCycle: this.#given.hour12 ? "h12" : "h23", hour12: this.#given.hour12 }), ...this.#fields };
    }

    static supportedLocalesOf(locales) {
      return supported(locales);
    }
  }

  class PluralRules {
    #ordinal;

    constructor(locales, options) {
      this.#ordinal = check(locales, options, { type: ["cardinal", "ordinal"], localeMatcher: ["best fit", "lookup"] }, "Intl.PluralRules").type === "ordinal";
    }

    select(input) {
      const n = Number(input);
      if (!this.#ordinal) {
        return Math.abs(n) === 1 ? "one" : "other";
      }
      const teen = Math.floor(n % 100 / 10) === 1;
      return teen || !Number.isInteger(n) ? "other" : { 1: "one", 2: "two", 3: "few" }[Math.abs(n) % 10] ?? "other";
    }

    resolvedOptions() {
      return { locale, type: this.#ordinal ? "ordinal" : "cardinal" };
    }
  }

  class ListFormat {
    #word;

    constructor(locales, options) {
      this.#word = check(locales, options, { type: ["conjunction", "disjunction"], style: ["long"], localeMatcher: ["best fit", "lookup"] }, "Intl.ListFormat").type === "disjunction" ? "or" : "and";
    }

    format(list) {
      const items = Array.from(list, (item) => {
        if (typeof item !== "string") {
          throw new TypeError("Intl.ListFormat: the list has an element that is not a string");
        }
        return item;
      });
      return items.length < 3 ? items.join(` ${this.#word} `) : `${items.slice(0, -1).join(", ")}, ${this.#word} ${items.at(-1)}`;
    }
  }

  // Collator compares as people sort: by letters, then by their marks, then small ones before large ones. That is what ICU does for texts in
  // Latin letters; others are compared by their numbers in Unicode, as ICU mostly does for one script.
  class Collator {
    #options;

    constructor(locales, options) {
      const o = check(locales, options, { numeric: [true, false], sensitivity: ["base", "accent", "case", "variant"], usage: ["sort", "search"], localeMatcher: ["best fit", "lookup"] }, "Intl.Collator");
      this.#options = { locale, usage: o.usage ?? "sort", sensitivity: o.sensitivity ?? "variant", ignorePunctuation: false, collation: "default", numeric: o.numeric ?? false, caseFirst: "false" };
    }

    get compare() {
      return (a, b) => this.#compare(String(a), String(b));
    }

    #compare(a, b) {
      if (a === b) {
        return 0;
      }
      const { numeric: byNumber, sensitivity } = this.#options;
      const [x, y] = [a.normalize("NFD"), b.normalize("NFD")];
      const bare = (s) => s.replace(/\p{M}/gu, "");
      const order = (p, q) => (p < q ? -1 : p > q ? 1 : 0);
      const first = letters(bare(x).toLowerCase(), bare(y).toLowerCase(), byNumber);
      if (first !== 0 || sensitivity === "base") {
        return first;
      }
      if (sensitivity !== "case") {
        const marks = order(x.toLowerCase(), y.toLowerCase());
        if (marks !== 0 || sensitivity === "accent") {
          return marks;
        }
      }
      // Small letters come first, where the texts differ in nothing else before.
      const [u, v] = sensitivity === "case" ? [bare(x), bare(y)] : [x, y];
      for (let i = 0; i < Math.min(u.length, v.length); i++) {
        if (u[i] !== v[i]) {
          return u[i] === u[i].toLowerCase() ? -1 : 1;
        }
      }
      return order(u.length, v.length);
    }

    resolvedOptions() {
      return { ...this.#options };
    }

    static supportedLocalesOf(locales) {
      return supported(locales);
    }
  }

  // The order of what is neither a letter nor a digit in ASCII; digits follow, then letters.
  const signs = "\t\n\v\f\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

  function rank(c) {
    const at = signs.indexOf(c);
    return at >= 0 ? at : c.codePointAt(0) + 1000;
  }

  function letters(a, b, byNumber) {
    let [i, j] = [0, 0];
    while (i < a.length && j < b.length) {
      if (byNumber && /\d/.test(a[i]) && /\d/.test(b[j])) {
        const [p, q] = [/^\d+/.exec(a.slice(i))[0], /^\d+/.exec(b.slice(j))[0]];
        const [m, n] = [p.replace(/^0+(?=\d)/, ""), q.replace(/^0+(?=\d)/, "")];
        if (m !== n) {
          return Math.sign(m.length - n.length || (m < n ? -1 : 1));
        }
        i += p.length;
        j += q.length;
        continue;
      }
      if (a[i] !== b[j]) {
        return Math.sign(rank(a[i]) - rank(b[j]));
      }
      i++;
      j++;
    }
    return Math.sign(a.length - i - (b.length - j));
  }

  const Intl = {};
  for (const of of [NumberFormat, DateTimeFormat, PluralRules, ListFormat, Collator]) {
    Object.defineProperty(of.prototype, Symbol.toStringTag, { value: `Intl.${of.name}`, configurable: true });
    // They can be called without new, as some do.
    Object.defineProperty(Intl, of.name, { value: new Proxy(of, { apply: (target, self, given) => new target(...given.slice(0, 2)) }), writable: true, configurable: true });
  }
  Object.defineProperty(Intl, Symbol.toStringTag, { value: "Intl", configurable: true });
  engine.define({ Intl });

  const method = (prototype, name, of) => Object.defineProperty(prototype, name, { value: { [name](locales, options) { return of(this, locales, options); } }[name], writable: true, configurable: true });
  method(Number.prototype, "toLocaleString", (value, locales, options) => new NumberFormat(locales, options).format(Number.prototype.valueOf.call(value)));
  method(BigInt.prototype, "toLocaleString", (value, locales, options) => new NumberFormat(locales, options).format(BigInt.prototype.valueOf.call(value)));
  const ofDate = (name, usual) => method(Date.prototype, name, (value, locales, options) => {
    const time = Date.prototype.getTime.call(value);
    const enough = ["dateStyle", "timeStyle", ...(usual.length > 3 ? parts : usual[0] === "hour" ? parts.slice(4) : parts.slice(0, 4))];
    const added = enough.some((part) => options?.[part] !== undefined) ? {} : Object.fromEntries(usual.map((part) => [part, "numeric"]));
    const format = new DateTimeFormat(locales, { ...added, ...options });
    return Number.isNaN(time) ? "Invalid Date" : format.format(time);
  });
  const usualCollator = new Collator();
  Object.defineProperty(String.prototype, "localeCompare", {
    value: {
      localeCompare(that, locales, options) {
        if (this === undefined || this === null) {
          throw new TypeError("String.prototype.localeCompare: this is not a string");
        }
        return (locales === undefined && options === undefined ? usualCollator : new Collator(locales, options)).compare(this, that);
      },
    }.localeCompare,
    writable: true,
    configurable: true,
  });
  ofDate("toLocaleString", ["year", "month", "day", "hour", "minute", "second"]);
  ofDate("toLocaleDateString", ["year", "month", "day"]);
  ofDate("toLocaleTimeString", ["hour", "minute", "second"]);
})
