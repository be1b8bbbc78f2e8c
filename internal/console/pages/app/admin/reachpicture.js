// A picture of who reaches what: callers at the left, then the tools that they call, those that these call in turn, and at the right what is
// reached. It has as much as can be looked at; the table below it has all, as text.

import { html, useMemo, useState } from "../../html.js";
import { count, plain } from "../text.js";

const most = 30; // boxes in a column, beside one for all others
const width = 230; // pixels, as all that follow
const between = 80; // columns
const height = 28;
const apart = 36; // from the top of a box to the top of the next
const top = 28; // below the titles
const lane = 8; // from one line to the next that passes a column below its boxes

/**
 * @typedef {{principal: string, tool: string, through?: string[], capability: string, entry: string, detail?: string, own?: boolean}} Way
 * @typedef {{key: string, name: string, kind: string}} Part is a caller, a tool, or what is reached. Its key tells it from all others.
 * @typedef {Part & {ways: number, row: number, column: number, others: number}} Box others is how many parts it stands for, or 0 where it is one
 * @typedef {{from: Box, to: Box}} Link
 */

/** @param {string} kind @param {string} name @param {string} [key] @returns {Part} */
const part = (kind, name, key = name) => ({ kind, name, key: kind + " " + key });

/** The parts of a way, from its caller to what is reached. @param {Way} w @returns {Part[]} */
export const partsOf = (w) => [
  part("caller", w.principal),
  part("tool", w.tool),
  ...(w.through ?? []).map((path) => part("tool", path)),
  part(w.capability, w.entry + (w.own ? " (their own)" : ""), w.entry + "\n" + (w.detail ?? "")),
];

/** Puts ways into columns of boxes. @param {Way[]} ways */
function graphOf(ways) {
  const all = ways.map(partsOf);
  const last = all.reduce((longest, parts) => Math.max(longest, parts.length), 0) - 1; // what is reached stands in one column, however long the way is
  const place = (/** @type {Part[]} */ parts, /** @type {number} */ i) => (i === parts.length - 1 ? last : i);
  /** @type {Map<string, Box>[]} */
  const found = Array.from({ length: last + 1 }, () => new Map());
  for (const parts of all) {
    parts.forEach((p, i) => {
      const column = place(parts, i);
      const box = found[column].get(p.key);
      if (box) box.ways++;
      else found[column].set(p.key, { ...p, ways: 1, row: 0, column, others: 0 });
    });
  }
  const columns = found.map((boxes, column) => {
    // Those with the most ways are shown, in the order of the alphabet.
    const busiest = [...boxes.values()].sort((a, b) => b.ways - a.ways || order(a.key, b.key));
    const rest = busiest.splice(most);
    busiest.sort((a, b) => order(a.key, b.key));
    if (rest.length > 0) {
      const others = { ...part("others", `${rest.length.toLocaleString("en")} others`, String(column)), ways: 0, row: 0, column, others: rest.length };
      for (const one of rest) {
        others.ways += one.ways;
        boxes.set(one.key, others);
      }
      busiest.push(others);
    }
    busiest.forEach((box, row) => (box.row = row));
    return busiest;
  });
  /** @type {Map<string, Link>} */
  const links = new Map();
  for (const parts of all) {
    for (let i = 1; i < parts.length; i++) {
      const from = found[place(parts, i - 1)].get(parts[i - 1].key);
      const to = found[place(parts, i)].get(parts[i].key);
      if (from && to) links.set(`${idOf(from)} ${idOf(to)}`, { from, to });
    }
  }
  return { columns, links: [...links.values()], lanes: lanesOf(columns, [...links.values()]) };
}

/** Returns how deep below the boxes of each column the lines of a box pass, which would seem to end there otherwise. @param {Box[][]} columns @param {Link[]} links */
function lanesOf(columns, links) {
  /** @type {Map<Box, number>[]} */
  const lanes = columns.map(() => new Map());
  for (const { from, to } of links.toSorted((a, b) => a.from.column - b.from.column || a.from.row - b.from.row)) {
    for (let i = from.column + 1; i < to.column; i++) if (!lanes[i].has(from)) lanes[i].set(from, lanes[i].size);
  }
  return lanes;
}

/** Draws a line that goes from column to column. @param {Link} link @param {Map<Box, number>[]} lanes @param {Box[][]} columns */
function lineOf({ from, to }, lanes, columns) {
  let x = left(from) + width;
  let y = above(from) + height / 2;
  let line = `M${x} ${y}`;
  for (let i = from.column + 1; i <= to.column; i++) {
    const next = i === to.column ? above(to) + height / 2 : top + columns[i].length * apart + (lanes[i].get(from) ?? 0) * lane;
    line += ` C${x + between / 2} ${y} ${x + between / 2} ${next} ${x + between} ${next} h${i === to.column ? 0 : width}`;
    x += between + width;
    y = next;
  }
  return line;
}

/** @param {string} a @param {string} b */
const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** @param {Box} box */
const idOf = (box) => `reach-${box.column}-${box.row}`;

/** @param {Box} box */
const left = (box) => box.column * (width + between);

/** @param {Box} box */
const above = (box) => top + box.row * apart;

/**
 * @param {{ways: Way[], chosen: Part|null, choose: (part: Part|null) => void}} p chosen is whose ways these are, if not all
 */
export function Picture({ ways, chosen, choose }) {
  const { columns, links, lanes } = useMemo(() => graphOf(ways), [ways]);
  const [at, setAt] = useState("");
  const boxes = columns.flat();
  const lit = boxes.find((b) => idOf(b) === at);
  const active = lit ?? boxes[0];
  const title = (/** @type {number} */ column) => (column === 0 ? "Callers" : column === 1 ? "Tools" : column === columns.length - 1 ? "What they reach" : "Tools that these call");

  const pick = (/** @type {Box} */ box) => box.others === 0 && choose(box.key === chosen?.key ? null : { key: box.key, name: box.name, kind: box.kind });
  const press = (/** @type {KeyboardEvent} */ e) => {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "Enter" || e.key === " ") {
      e.preventDefault();
      return pick(active);
    }
    const column = columns[active.column];
    const beside = { ArrowRight: links.find((l) => l.from === active)?.to, ArrowLeft: links.find((l) => l.to === active)?.from };
    const to = { ArrowDown: column[active.row + 1], ArrowUp: column[active.row - 1], Home: column[0], End: column[column.length - 1], ...beside };
    if (!(e.key in to)) return;
    e.preventDefault();
    const next = to[/** @type {keyof typeof to} */ (e.key)];
    if (!next) return;
    setAt(idOf(next));
    document.getElementById(idOf(next))?.focus();
  };

  const wide = columns.length * (width + between) - between + 4;
  const high = top + Math.max(...columns.map((c, i) => c.length * apart + lanes[i].size * lane));
  return html`<div class="scroll reach">
    <svg width=${wide} height=${high} viewBox=${`-2 0 ${wide} ${high}`} role="group" aria-label="Picture of who reaches what. Arrow keys go from one box to another, Enter shows its ways alone." onKeyDown=${press}>
      ${columns.map((_, i) => html`<text class="title" x=${i * (width + between)} y="16">${title(i)}</text>`)}
      ${links.map((link) => html`<path key=${idOf(link.from) + idOf(link.to)} class=${link.from === lit || link.to === lit ? "on" : undefined} d=${lineOf(link, lanes, columns)} />`)}
      ${boxes.map((box) => {
        const name = plain(box.name, 300);
        const kind = box.kind === "caller" || box.kind === "tool" || box.kind === "others" ? "" : plain(box.kind, 40);
        const said = `${box.kind === "others" ? title(box.column) + ": " : (kind || box.kind) + " "}${name}, ${count(box.ways, "way")}`;
        return html`<g
          key=${idOf(box)}
          id=${idOf(box)}
          class=${"box " + (box.others > 0 ? "others" : box.key === chosen?.key ? "chosen" : "")}
          role="button"
          tabindex=${box === active ? "0" : "-1"}
          aria-label=${said}
          aria-pressed=${box.others > 0 ? undefined : box.key === chosen?.key ? "true" : "false"}
          aria-disabled=${box.others > 0 ? "true" : undefined}
          onFocus=${() => setAt(idOf(box))}
          onPointerEnter=${() => setAt(idOf(box))}
          onClick=${() => pick(box)}
        >
          <title>${said}</title>
          <rect x=${left(box)} y=${above(box)} width=${width} height=${height} rx="4" />
          <foreignObject x=${left(box)} y=${above(box)} width=${width} height=${height}><div class="name">${kind ? html`<span class="kind">${kind}</span> ` : null}${name}</div></foreignObject>
        </g>`;
      })}
    </svg>
  </div>`;
}
