// The attempts that a running scheduler remembers of a pod, with the numbers of each moment.
import { html, useEffect, useState } from "../vendor/preact.js";
import { get, podPath } from "../api.js";
import { linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";

const own = texts.decision.attempts;

export function Attempts({ pod, chosen }) {
  const [known, setKnown] = useState({ items: [], failure: null });
  useEffect(() => {
    const ending = new AbortController();
    get(`attempts/${podPath(pod)}`, {}, ending.signal)
      .then(({ items }) => setKnown({ items, failure: null }))
      .catch((error) => ending.signal.aborted || setKnown({ items: [], failure: error.message }));
    return () => ending.abort();
  }, [pod]);
  if (known.failure !== null) return html`<p class="problem" role="alert">${known.failure}</p>`;
  if (known.items.length === 0) return null;
  const attempt = known.items.find((each) => String(each.id) === chosen);
  return html`<section>
    <h2>${own.title}</h2>
    <div class="tools" role="group" aria-label=${own.title}>
      <button type="button" aria-pressed=${attempt === undefined} onClick=${() => setParams({ attempt: "" })}>${own.now}</button>
      ${known.items.map((each) => html`<button
        type="button"
        aria-pressed=${each === attempt}
        onClick=${() => setParams({ attempt: each.id })}
      >${own.one(each.attempt, new Date(each.time).toLocaleTimeString(), each.result)}</button>`)}
    </div>
    ${attempt && html`<${Attempt} attempt=${attempt} />`}
  </section>`;
}

function Attempt({ attempt }) {
  const plugins = Object.keys(attempt.nodes?.[0]?.scores ?? {});
  return html`
    <p class="verdict">${own.result(attempt)}</p>
    ${attempt.message && html`<p class="message">${attempt.message}</p>`}
    ${attempt.rejections?.length > 0 && html`<table>
      <thead><tr><th scope="col" class="number">${texts.decision.nodes}</th><th scope="col">${texts.decision.by}</th><th scope="col">${texts.decision.why}</th></tr></thead>
      <tbody>${attempt.rejections.map((each) => html`<tr><td class="number">${each.nodes}</td><td>${each.plugin}</td><td>${each.reason}</td></tr>`)}</tbody>
    </table>`}
    ${plugins.length > 0 && html`<table>
      <thead><tr>
        <th scope="col">${texts.decision.node}</th><th scope="col" class="number">${texts.decision.total}</th>
        ${plugins.map((plugin) => html`<th scope="col" class="number">${plugin}</th>`)}
      </tr></thead>
      <tbody>
        ${attempt.nodes.map((row) => html`<tr>
          <td><a href=${linkTo("cluster", { node: row.name })}>${row.name}</a></td>
          <td class="number">${row.total}</td>
          ${plugins.map((plugin) => html`<td class="number">${row.scores[plugin]}</td>`)}
        </tr>`)}
      </tbody>
    </table>`}
  `;
}
