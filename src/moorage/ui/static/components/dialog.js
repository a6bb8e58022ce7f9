// A dialog over the page; Esc closes it, and the focus goes back to where it was.
import { html, useEffect, useRef } from "../vendor/preact.js";
import { texts } from "../texts.js";

export function Dialog({ title, close, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    dialog.current.showModal();
  }, []);
  return html`<dialog ref=${dialog} onClose=${close} aria-label=${title}>
    <h2>${title}</h2>
    ${children}
    <form method="dialog"><button>${texts.shortcuts.close}</button></form>
  </dialog>`;
}
