const date = new Date(Date.UTC(2024, 1, 9, 15, 4, 5, 678));
const midnight = new Date(Date.UTC(1999, 11, 31));
const numbers = [0, -0, 1, -1, 999, 1000, 1234567.891, -1234.5, 0.1 + 0.2, 1.005, 2.5, 3.5, 0.0005, 1e21, 1e-7, 123456789012345680000, NaN, Infinity, -Infinity, 10n, -12345678901234567890n, 0.999, 999999.9995, "12.5", null];
const sorted = (list, ...args) => [...list].sort(new Intl.Collator(...args).compare);
const words = ["z", "a", "Z", "A", "é", "e", "E", "É", "f", "resume", "résumé", "Resume", "item 10", "item 9", "item_1", "item-1", "item", "10", "9", "", " ", "ä", "ae", "az", "co-op", "coop", "ñ", "n", "o"];

const cases = {
  ...Object.fromEntries(Object.entries({
    usual: undefined, money: { style: "currency", currency: "USD" }, yen: { style: "currency", currency: "JPY" }, code: { style: "currency", currency: "EUR", currencyDisplay: "code" }, percent: { style: "percent" },
    "percent with digits": { style: "percent", maximumFractionDigits: 2 }, "two digits": { minimumFractionDigits: 2, maximumFractionDigits: 2 }, "no digits": { maximumFractionDigits: 0 }, "many digits": { maximumFractionDigits: 20 },
    "five digits": { minimumFractionDigits: 5 }, "no groups": { useGrouping: false }, padded: { minimumIntegerDigits: 5 }, always: { signDisplay: "always" }, "except zero": { signDisplay: "exceptZero" }, "no sign": { signDisplay: "never" },
    "money without cents": { style: "currency", currency: "USD", maximumFractionDigits: 0 },
  }).map(([name, options]) => [`numbers, ${name}`, () => numbers.map((n) => new Intl.NumberFormat("en-US", options).format(n))])),
  "numbers, toLocaleString": () => [(1234.5).toLocaleString(), (12n ** 20n).toLocaleString("en"), (0.5).toLocaleString("en-US", { style: "percent" }), [1234.5, date].toLocaleString("en-US", { timeZone: "UTC" })],
  "numbers, wrong": () => [{ style: "currency" }, { minimumFractionDigits: 5, maximumFractionDigits: 2 }, { maximumFractionDigits: 101 }].map((options) => {
    try {
      return new Intl.NumberFormat("en-US", options).format(1);
    } catch (error) {
      return error;
    }
  }),
  ...Object.fromEntries(Object.entries({
    usual: undefined, full: { dateStyle: "full" }, long: { dateStyle: "long" }, medium: { dateStyle: "medium" }, short: { dateStyle: "short" }, "time short": { timeStyle: "short" }, "time medium": { timeStyle: "medium" }, "time long": { timeStyle: "long" },
    "both long": { dateStyle: "long", timeStyle: "short" }, "both full": { dateStyle: "full", timeStyle: "medium" }, "both medium": { dateStyle: "medium", timeStyle: "short" }, "both short": { dateStyle: "short", timeStyle: "short" },
    year: { year: "numeric" }, month: { month: "long" }, "month and year": { month: "long", year: "numeric" }, "month and day": { month: "short", day: "numeric" }, weekday: { weekday: "long" }, "weekday and date": { weekday: "short", year: "numeric", month: "short", day: "numeric" },
    "two digits": { year: "numeric", month: "2-digit", day: "2-digit" }, "two digits of the year": { year: "2-digit", month: "numeric", day: "numeric" }, "with time": { year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric", second: "numeric" },
    "h23": { hour: "numeric", minute: "2-digit", second: "2-digit", hourCycle: "h23" }, "hours": { hour: "numeric" }, "numbers and weekday": { weekday: "long", year: "numeric", month: "numeric", day: "numeric" },
    "short with time": { year: "numeric", month: "short", day: "numeric", hour: "numeric", minute: "2-digit" }, "long with time": { year: "numeric", month: "long", day: "numeric", hour: "numeric", minute: "2-digit" }, "with the zone": { hour: "numeric", minute: "2-digit", timeZoneName: "short" },
  }).map(([name, options]) => [`dates, ${name}`, () => [date, midnight].map((d) => new Intl.DateTimeFormat("en-US", { timeZone: "UTC", ...options }).format(d))])),
  "dates, toLocaleString": () => [date.toLocaleString("en-US"), date.toLocaleDateString("en-US"), date.toLocaleTimeString("en-US"), date.toLocaleDateString("en-US", { weekday: "long" }), date.toLocaleDateString("en-US", { month: "long", day: "numeric" }), date.toLocaleTimeString("en-US", { hour: "2-digit", minute: "2-digit" }), new Date(NaN).toLocaleString()],
  "dates, far": () => [8.64e15, -8.64e15, -62200000000000, -62167219200001].map((t) => new Date(t).toLocaleDateString("en-US")),
  "dates, not valid": () => new Intl.DateTimeFormat("en-US").format(new Date(NaN)),
  "dates, the zone": () => Intl.DateTimeFormat().resolvedOptions().timeZone,
  plurals: () => [0, 1, -1, 1.5, 2, 11].map((n) => new Intl.PluralRules("en-US").select(n)),
  ordinals: () => [1, 2, 3, 4, 11, 12, 13, 21, 22, 23, 101, 111, 112, 113].map((n) => new Intl.PluralRules("en-US", { type: "ordinal" }).select(n)),
  lists: () => [[], ["a"], ["a", "b"], ["a", "b", "c"]].map((list) => [new Intl.ListFormat("en").format(list), new Intl.ListFormat("en", { type: "disjunction" }).format(list)]),
  sorted: () => sorted(words),
  "sorted by numbers": () => sorted(words, "en", { numeric: true }),
  compared: () => [["a", "b"], ["a", "A"], ["é", "f"], ["a", "a"], ["", "a"], ["a", "á"], ["résumé", "resume"], ["co-op", "coop"]].map(([a, b]) => a.localeCompare(b)),
  "compared loosely": () => [["a", "A"], ["a", "á"], ["a", "b"], ["item 10", "item 9"]].map(([a, b]) => [a.localeCompare(b, "en", { sensitivity: "base" }), a.localeCompare(b, "en", { sensitivity: "accent" }), a.localeCompare(b, undefined, { numeric: true })]),
};
