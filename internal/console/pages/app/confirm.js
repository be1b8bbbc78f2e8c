// Asks before something is changed. A question shows what will be different. Its first field has the focus, or where it has none the answer that
// changes nothing.

import { html, useEffect, useRef, useState } from "../html.js";
import { sentence } from "./api.js";
import { plain } from "./text.js";

/**
 * A button that opens a question. children are shown in it, such as a field for the reason.
 * @param {{label: string, title: string, yes: string, danger?: boolean, children?: any, disabled?: boolean, onYes: () => Promise<void>, onOpen?: () => void|Promise<void>, onClose?: () => void}} p
 * onOpen may ask for what the answer needs: until it has come, nobody can say yes. onClose is called whatever the answer is.
 */
export function Asking({ label, title, yes, danger, children, disabled, onYes, onOpen, onClose }) {
  const [open, setOpen] = useState(false);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const times = useRef(0);
  const start = async () => {
    const time = ++times.current;
    setProblem("");
    setOpen(true);
    setBusy(true);
    try {
      await onOpen?.();
      if (time === times.current) setBusy(false);
    } catch (failure) {
      if (time === times.current) setProblem(sentence(failure));
    }
  };
  const close = () => {
    setOpen(false);
    onClose?.();
  };
  const act = async (/** @type {any} */ e) => {
    e.preventDefault();
    if (busy) return;
    setBusy(true);
    try {
      await onYes();
      close();
    } catch (failure) {
      setProblem(sentence(failure));
    }
    setBusy(false);
  };
  return html`<button type="button" disabled=${disabled} onClick=${start}>${label}</button>
    ${open
      ? html`<${Dialog} title=${title} onClose=${close}>
          <form onSubmit=${act}>
            ${children}
            <p class="hint" role="alert">${problem ? html`<strong class="wrong">${plain(problem, 600)}</strong>` : null}</p>
            <div class="row">
              <button type="button" autofocus onClick=${close}>Cancel</button>
              <button class=${danger ? "danger" : "primary"} aria-disabled=${busy ? "true" : undefined}>${yes}</button>
            </div>
          </form>
        <//>`
      : null}`;
}

/** firm is whether only its own buttons close it, and Escape doesn't. @param {{title: string, onClose: () => void, firm?: boolean, children?: any}} p */
export function Dialog({ title, onClose, firm, children }) {
  const ref = useRef(/** @type {HTMLDialogElement|null} */ (null));
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.showModal();
    const field = ref.current?.querySelector("input, select, textarea");
    if (field instanceof HTMLElement) field.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  return html`<dialog ref=${ref} aria-label=${title} onClose=${onClose} closedby=${firm ? "none" : undefined} onCancel=${(/** @type {Event} */ e) => firm && e.preventDefault()}>
    <h2>${title}</h2>
    ${children}
  </dialog>`;
}
