// The attempts that a running scheduler remembers of a pod, or that a recording has, with the numbers of each moment.
import { html, useEffect, useState } from "../vendor/preact.js";
import { get, podPath } from "../api.js";
import { moment } from "../format.js";
import { linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";

const own = texts.decision.attempts;

export function Attempts({ pod, chosen, source }) {
  const [known, setKnown] = useState({ items: null, failure: null });
  useEffect(() => {
    const ending = new AbortController();
    get(`attempts/${podPath(pod)}`, {}, ending.signal)
      .then(({ items }) => setKnown({ items, failure: null }))
      .catch((error) => ending.signal.aborted || setKnown({ items: null, failure: error.message }));
    return () => ending.abort();
  }, [pod]);
  if (known.failure !== null) return html`<p class="problem" role="alert">${known.failure}</p>`;
  if (known.items === null) return null;
  const isNowKnown = source.features.includes("explain");
  if (known.items.length === 0) return isNowKnown ? null : html`<p class="notice">${own.none}</p>`;
  const attempt = known.items.find((each) => String(each.id) === chosen) ?? (isNowKnown ? undefined : known.items.at(-1));
  return html`<section>
    <h2>${own.titles[source.kind] ?? own.title}</h2>
    <div class="tools" role="group" aria-label=${own.titles[source.kind] ?? own.title}>
      ${isNowKnown && html`<button
        type="button"
        aria-pressed=${attempt === undefined}
        onClick=${() => setParams({ attempt: "" })}
      >${own.now}</button>`}
      ${known.items.map((each) => html`<button
        type="button"
        aria-pressed=${each === attempt}
        onClick=${() => setParams({ attempt: each.id })}
      >${own.one(each.attempt, timeOf(each, source), each.result)}</button>`)}
    </div>
    ${attempt && html`<${Attempt} attempt=${attempt} />`}
  </section>`;
}

function timeOf(attempt, { kind }) {
  const time = new Date(attempt.time);
  return kind === "recording" ? moment(kind, time.getTime() / 1000) : time.toLocaleTimeString();
}

function Attempt({ attempt }) {
  const plugins = Object.keys(attempt.nodes?.[0]?.scores ?? {});
  return html`
    <p class="verdict">${own.result(attempt)}</p>
    ${attempt.message && html`<p class="message">${attempt.message}</p>`}
    ${attempt.nominatedNode && html`<p>${own.preempts(attempt.nominatedNode, attempt.victims ?? [])}</p>`}
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
