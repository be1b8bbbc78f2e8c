// A list of any length, of which only the rows in sight are in the page. It is used with the keyboard as any list box is.

import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";

const rowHeight = 52; // pixels, as in the style sheet
const beyond = 6; // rows above and below those in sight

/**
 * @template T
 * @param {{items: T[], keyOf: (t: T) => string, row: (t: T) => any, label: string, id: string, chosen: string, onChoose: (t: T) => void}} p
 */
export function List({ items, keyOf, row, label, id, chosen, onChoose }) {
  const box = useRef(/** @type {HTMLElement|null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(600);
  const [active, setActive] = useState(0);
  const at = Math.min(active, items.length - 1);

  useLayoutEffect(() => {
    const el = box.current;
    if (!el) return;
    const measure = () => setHeight(el.clientHeight);
    measure();
    const watch = new ResizeObserver(measure);
    watch.observe(el);
    return () => watch.disconnect();
  }, []);

  // What was chosen elsewhere, such as by a link, becomes the active row.
  useEffect(() => {
    const found = chosen ? items.findIndex((t) => keyOf(t) === chosen) : -1;
    if (found >= 0) move(found);
  }, [chosen]);

  /** @param {number} to */
  const move = (to) => {
    const next = Math.max(0, Math.min(items.length - 1, to));
    setActive(next);
    const el = box.current;
    if (!el) return;
    if (next * rowHeight < el.scrollTop) el.scrollTop = next * rowHeight;
    else if ((next + 1) * rowHeight > el.scrollTop + el.clientHeight) el.scrollTop = (next + 1) * rowHeight - el.clientHeight;
  };

  const page = Math.max(1, Math.floor(height / rowHeight) - 1);
  const keys = new Map([["ArrowDown", at + 1], ["ArrowUp", at - 1], ["PageDown", at + page], ["PageUp", at - page], ["Home", 0], ["End", items.length - 1]]);
  const press = (/** @type {KeyboardEvent} */ e) => {
    const to = keys.get(e.key);
    if (to !== undefined && !e.ctrlKey && !e.metaKey && !e.altKey) {
      e.preventDefault();
      move(to);
    } else if ((e.key === "Enter" || e.key === " ") && items[at]) {
      e.preventDefault();
      onChoose(items[at]);
    }
  };

  const first = Math.max(0, Math.floor(top / rowHeight) - beyond);
  const last = Math.min(items.length, Math.ceil((top + height) / rowHeight) + beyond);
  const optionId = (/** @type {number} */ i) => `${id}-${i}`;
  return html`<div
    id=${id}
    ref=${box}
    class="list"
    role="listbox"
    tabindex="0"
    aria-label=${label}
    aria-activedescendant=${at >= first && at < last ? optionId(at) : undefined}
    onScroll=${(/** @type {any} */ e) => setTop(e.currentTarget.scrollTop)}
    onKeyDown=${press}
  >
    <div class="tall" role="presentation" style=${{ height: items.length * rowHeight + "px" }}>
      ${items.slice(first, last).map((item, i) => {
        const n = first + i;
        return html`<div
          key=${keyOf(item)}
          id=${optionId(n)}
          role="option"
          class=${n === at ? "item active" : "item"}
          aria-selected=${keyOf(item) === chosen ? "true" : "false"}
          aria-setsize=${items.length}
          aria-posinset=${n + 1}
          style=${{ transform: `translateY(${n * rowHeight}px)` }}
          onClick=${() => (setActive(n), onChoose(item))}
        >${row(item)}</div>`;
      })}
    </div>
  </div>`;
}
