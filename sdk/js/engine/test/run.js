// What runs the cases of a file beside it, in Node and in the engine, and writes down what they return or throw. A test appends this to
// the file, whose cases are an object of functions.
function shown(value, seen = []) {
  if (typeof value === "bigint" || Object.is(value, -0) || (typeof value === "number" && !Number.isFinite(value))) {
    return { [typeof value]: Object.is(value, -0) ? "-0" : String(value) };
  }
  if (value === null || ["string", "number", "boolean"].includes(typeof value)) {
    return value;
  }
  if (typeof value !== "object") {
    return { [typeof value]: typeof value === "function" ? value.name : String(value) };
  }
  if (seen.includes(value)) {
    return { circle: seen.length - seen.indexOf(value) };
  }
  const inner = (of) => shown(of, [...seen, value]);
  if (Array.isArray(value)) {
    return value.map(inner);
  }
  if (value instanceof Error || value instanceof DOMException) {
    return { thrown: value.name };
  }
  if (ArrayBuffer.isView(value) && !(value instanceof DataView)) {
    return { [value.constructor.name]: Array.from(value, inner) };
  }
  if (value instanceof ArrayBuffer) {
    return { ArrayBuffer: Array.from(new Uint8Array(value)) };
  }
  if (value instanceof Map || value instanceof Set) {
    return { [value.constructor.name]: Array.from(value, inner) };
  }
  if (value instanceof Date) {
    return { Date: value.getTime() };
  }
  return Object.fromEntries(Object.entries(value).map(([key, of]) => [key, inner(of)]));
}

async function runCases() {
  const results = {};
  for (const [name, run] of Object.entries(cases)) {
    try {
      results[name] = shown(await run()) ?? { undefined: true };
    } catch (thrown) {
      results[name] = shown(thrown);
    }
  }
  return results;
}
