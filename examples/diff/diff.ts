// Compares texts line by line: what an agent shows before it changes something.
import { module, tool, ToolError } from "toolsrv";

module({ namespace: "diff", version: "1.0.0" });

/** How many lines may be added and removed: time and memory grow with their square. */
const MOST = 1000;

interface Texts {
  /** The text as it was. */
  before: string;
  /** The text as it is. */
  after: string;
  /** How many equal lines to show around each change. */
  context?: number;
}

/**
 * Compares two texts line by line. The result is a unified diff as git apply and patch take it, or empty where the texts are the same.
 *
 * @returns The diff.
 */
export const unified = tool({
  title: "Compare two texts",
  annotations: { readOnly: true, openWorld: false },
  examples: [
    { arguments: { before: "tea\nmilk\n", after: "tea\nlemon\n" }, result: "--- before\n+++ after\n@@ -1,2 +1,2 @@\n tea\n-milk\n+lemon\n" },
    { arguments: { before: "a\n", after: "a\n" }, result: "" },
  ],
  run({ before, after, context = 3 }: Texts): string {
    if (!Number.isInteger(context) || context < 0 || context > 1000) {
      throw new ToolError("context is a whole number from 0 to 1000.", { code: "no_such_context" });
    }
    const [a, b] = [linesOf(before), linesOf(after)];
    const hunks = grouped(changes(a, b), a, context);
    return hunks.length === 0 ? "" : `--- before\n+++ after\n${hunks.join("")}`;
  },
});

/** Returns the lines of a text, each with its end. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

/** A change: the lines from a to aEnd of the first text became those in place of them. */
type Change = { a: number; aEnd: number; b: number; added: string[] };

/** Returns the fewest changes that make b of a. */
function changes(a: string[], b: string[]): Change[] {
  let begin = 0;
  while (begin < Math.min(a.length, b.length) && a[begin] === b[begin]) {
    begin++;
  }
  let equal = 0; // lines at the end
  while (equal < Math.min(a.length, b.length) - begin && a[a.length - 1 - equal] === b[b.length - 1 - equal]) {
    equal++;
  }
  const all: Change[] = [];
  let [x, y] = [begin, begin];
  for (const [nextX, nextY] of [...matches(a.slice(begin, a.length - equal), b.slice(begin, b.length - equal)), [a.length - equal - begin, b.length - equal - begin]]) {
    if (begin + nextX > x || begin + nextY > y) {
      all.push({ a: x, aEnd: begin + nextX, b: y, added: b.slice(y, begin + nextY) });
    }
    [x, y] = [begin + nextX + 1, begin + nextY + 1];
  }
  return all;
}

/** Returns the pairs of lines that stay, in their order, by Myers' algorithm. */
function matches(a: string[], b: string[]): [number, number][] {
  // The farthest line of a on each diagonal x - y = k, after so many lines were added and removed.
  const reached: Int32Array[] = [];
  let last = new Int32Array(3);
  for (let d = 0; ; d++) {
    if (d > MOST) {
      throw new ToolError(`The texts differ by more than ${MOST} lines: compare smaller parts.`, { code: "too_different" });
    }
    const now = new Int32Array(2 * d + 3); // of k at k + d + 1
    for (let k = -d; k <= d; k += 2) {
      let x = d === 0 ? 0 : k === -d || (k !== d && last[k - 1 + d]! < last[k + 1 + d]!) ? last[k + 1 + d]! : last[k - 1 + d]! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) {
        x++;
      }
      now[k + d + 1] = x;
      if (x >= a.length && x - k >= b.length) {
        reached.push(now);
        return back(reached, a.length, b.length);
      }
    }
    reached.push(now);
    last = now;
  }
}

/** Goes back from the end to the beginning, and returns the pairs on the way. */
function back(reached: Int32Array[], x: number, y: number): [number, number][] {
  const pairs: [number, number][] = [];
  for (let d = reached.length - 1; d >= 0; d--) {
    const k = x - y;
    let [fromX, fromY] = [0, 0]; // where the equal lines of this step begin
    let previousX = 0;
    let previousK = 0;
    if (d > 0) {
      const before = reached[d - 1]!;
      const down = k === -d || (k !== d && before[k - 1 + d]! < before[k + 1 + d]!);
      previousK = down ? k + 1 : k - 1;
      previousX = before[previousK + d]!;
      fromX = down ? previousX : previousX + 1;
      fromY = fromX - k;
    }
    while (x > fromX && y > fromY) {
      pairs.push([--x, --y]);
    }
    [x, y] = [previousX, previousX - previousK];
  }
  return pairs.reverse();
}

/** Writes changes, those together that are near each other. */
function grouped(all: Change[], a: string[], context: number): string[] {
  const hunks: string[] = [];
  for (let i = 0; i < all.length; ) {
    let end = i + 1;
    while (end < all.length && all[end]!.a - all[end - 1]!.aEnd <= 2 * context) {
      end++;
    }
    hunks.push(hunk(all.slice(i, end), a, context));
    i = end;
  }
  return hunks;
}

function hunk(group: Change[], a: string[], context: number): string {
  const first = group[0]!;
  const begin = Math.max(0, first.a - context);
  const end = Math.min(a.length, group.at(-1)!.aEnd + context);
  let [text, x, added] = ["", begin, 0];
  for (const c of group) {
    text += signed(" ", a.slice(x, c.a)) + signed("-", a.slice(c.a, c.aEnd)) + signed("+", c.added);
    x = c.aEnd;
    added += c.added.length - (c.aEnd - c.a);
  }
  text += signed(" ", a.slice(x, end));
  const length = end - begin;
  return `@@ -${range(begin, length)} +${range(first.b - (first.a - begin), length + added)} @@\n${text}`;
}

/** Writes where a hunk is, as diff does: lines count from 1, and without any the line before is named. */
function range(begin: number, length: number): string {
  return length === 1 ? `${begin + 1}` : `${length === 0 ? begin : begin + 1},${length}`;
}

function signed(sign: string, lines: string[]): string {
  return lines.map((line) => sign + line + (line.endsWith("\n") ? "" : "\n\\ No newline at end of file\n")).join("");
}
