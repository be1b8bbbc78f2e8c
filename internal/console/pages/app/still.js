// Whether somebody points at a part of the page, or has the focus in it. What would move there is held back meanwhile.

import { useState } from "../html.js";

/** Returns whether that is so, and the handlers of the part. */
export function useStill() {
  const [pointed, setPointed] = useState(false);
  const [focused, setFocused] = useState(false);
  const handlers = {
    onPointerEnter: () => setPointed(true),
    onPointerLeave: () => setPointed(false),
    onfocusin: () => setFocused(true),
    onfocusout: () => setFocused(false),
  };
  return { still: pointed || focused, handlers };
}
