// An editor of YAML, with the problems of its text.
import { html, useRef } from "../vendor/preact.js";
import { texts } from "../texts.js";

const own = texts.whatIf;

export function TextEditor({ label, text, problems }) {
  const area = useRef(null);
  if (text.failure !== null) return html`<p class="problem" role="alert">${text.failure}</p>`;
  if (text.shown === null) return html`<p class="note" role="status">${texts.loading}</p>`;
  return html`
    <textarea
      ref=${area}
      aria-label=${label}
      aria-invalid=${problems.length > 0}
      aria-describedby="text-problems"
      spellcheck=${false}
      autocomplete="off"
      wrap="off"
      value=${text.shown}
      onInput=${(event) => text.set(event.target.value)}
    ></textarea>
    <div class="tools">
      <button type="button" disabled=${text.edited === null} onClick=${text.reset}>${own.reset}</button>
      <span class="note">${text.edited === null ? own.unchanged : own.edited}</span>
    </div>
    <ul id="text-problems" class="text-problems" aria-live="polite">
      ${problems.map((each) => html`<li>
        ${each.line && html`<button type="button" onClick=${() => selectLine(area.current, each.line)}>${own.line(each.line)}</button>`}
        <span>${each.path && html`<code>${each.path}</code>: `}${each.message}</span>
      </li>`)}
    </ul>
  `;
}

function selectLine(area, line) {
  const lines = area.value.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  area.focus();
  area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
}
