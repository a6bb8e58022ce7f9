// One pod: why it is where it is, or why it is nowhere, and what would help.
import { html, useEffect, useState } from "../vendor/preact.js";
import { Attempts } from "./attempts.js";
import { PodPicker } from "./pod_picker.js";
import { Scores } from "./scores.js";
import { get, podPath } from "../api.js";
import { number } from "../format.js";
import { linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";

const MOST_NODES = 6;
const own = texts.decision;

export function DecisionView({ store, params }) {
  if (!params.pod) return html`<${PodPicker} store=${store} params=${params} />`;
  return html`
    <div class="title">
      <h1>${params.pod}</h1>
      <span>
        ${store.has("what-if") && html`<a href=${linkTo("what-if", { pod: params.pod })}>${own.whatIf}</a> · `}
        <a href="#/decision">${own.another}</a>
      </span>
    </div>
    ${store.has("attempts") && html`<${Attempts} pod=${params.pod} chosen=${params.attempt} source=${store.source} />`}
    ${!params.attempt &&
    store.has("explain") &&
    html`<${Explained} key=${params.pod} params=${params} canTry=${store.has("what-if")} />`}
  `;
}

function Explained({ params, canTry }) {
  const { explanation, failure, again } = useExplanation(params.pod);
  if (failure !== null) return html`<p class="problem" role="alert">${failure}</p>`;
  if (explanation === null) return html`<p class="note" role="status" aria-busy="true">${own.evaluating}</p>`;
  return html`
    <p class="verdict">${explanation.verdict} <button type="button" onClick=${again}>${own.again}</button></p>
    ${explanation.message && html`<p class="message">${explanation.message}</p>`}
    ${(explanation.notes ?? []).map((note) => html`<p class="problem">${note}</p>`)}
    <${Preemption} explanation=${explanation} />
    <${Today} today=${explanation.today} />
    <${Group} group=${explanation.group} />
    <${Help} help=${explanation.help} pod=${params.pod} canTry=${canTry} />
    <${Rejected} rejected=${explanation.rejected} />
    <${Lead} lead=${explanation.lead} node=${explanation.node} />
    <${Scores} feasible=${explanation.feasible} params=${params} />
    <${LeftOut} leftOut=${explanation.leftOut} />
  `;
}

function useExplanation(pod) {
  const [known, setKnown] = useState({ explanation: null, failure: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    setKnown({ explanation: null, failure: null });
    get(`explain/${podPath(pod)}`, {}, ending.signal)
      .then((explanation) => setKnown({ explanation, failure: null }))
      .catch((error) => ending.signal.aborted || setKnown({ explanation: null, failure: error.message }));
    return () => ending.abort();
  }, [pod, round]);
  return { ...known, again: () => setRound(round + 1) };
}

function Preemption({ explanation: { nominatedNode, victims } }) {
  if (!nominatedNode) return null;
  return html`<p>${own.preempts} <${NodeLink} name=${nominatedNode} />${victims?.length > 0 && html`: ${victims.map(
    (key, place) => html`${place > 0 && ", "}<a href=${linkTo("decision", { pod: key })}>${key}</a>`,
  )}`}</p>`;
}

function Today({ today }) {
  if (today === undefined) return null;
  const behind = Object.entries(today.behindByPlugin ?? {});
  return html`<section>
    <h2>${own.today}</h2>
    <p>${today.same ? own.same : own.notSame}</p>
    ${(today.rejectedBy ?? []).map((each) => html`<p>${each.plugin}: ${(each.reasons ?? []).join(", ")}</p>`)}
    ${behind.length > 0 && html`<${Differences} values=${behind} />`}
  </section>`;
}

function Group({ group }) {
  if (group === undefined) return null;
  return html`<section>
    <h2>${own.group(group.name)}</h2>
    <p>${own.members(group.needed, group.known, group.onNodes)} ${group.message}</p>
    <table>
      <thead><tr><th scope="col">${own.member}</th><th scope="col">${own.node}</th><th scope="col">${own.why}</th></tr></thead>
      <tbody>
        ${group.members.map((each) => html`<tr>
          <td><a href=${linkTo("decision", { pod: each.pod })}>${each.pod}</a></td>
          <td>${each.node && html`<${NodeLink} name=${each.node} />`}</td>
          <td>${each.message}</td>
        </tr>`)}
      </tbody>
    </table>
  </section>`;
}

function Help({ help = [], pod, canTry }) {
  if (help.length === 0) return null;
  return html`<section>
    <h2>${own.help}</h2>
    <table>
      <thead><tr>
        <th scope="col">${own.change}</th><th scope="col">${own.opens}</th>${canTry && html`<th scope="col">${own.whatIf}</th>`}
      </tr></thead>
      <tbody>
        ${help.map((each) => html`<tr key=${each.text}>
          <td>${each.text}</td>
          <td><${NodeLinks} names=${each.nodes} /></td>
          ${canTry && html`<td><a href=${tryLink(pod, each.text)} aria-label=${own.tryOf(each.text)}>${own.try}</a></td>`}
        </tr>`)}
      </tbody>
    </table>
  </section>`;
}

function tryLink(pod, text) {
  return linkTo("what-if", { pod, changes: JSON.stringify([{ kind: "suggestion", text }]) });
}

function Rejected({ rejected = [] }) {
  if (rejected.length === 0) return null;
  return html`<section>
    <h2>${own.rejected}</h2>
    <table>
      <thead>
        <tr>
          <th scope="col" class="number">${own.nodes}</th>
          <th scope="col">${own.by}</th>
          <th scope="col">${own.why}</th>
          <th scope="col">${own.which}</th>
        </tr>
      </thead>
      <tbody>
        ${rejected.map((each) => html`<tr>
          <td class="number">${number(each.count)}</td>
          <td>${each.plugin}</td>
          <td>${each.reasons.join(", ")}</td>
          <td><${NodeLinks} names=${each.nodes} /></td>
        </tr>`)}
      </tbody>
    </table>
  </section>`;
}

function NodeLinks({ names }) {
  const more = names.length - MOST_NODES;
  return html`${names.slice(0, MOST_NODES).map((name, place) => html`${place > 0 && ", "}<${NodeLink} name=${name} />`)}
    ${more > 0 && own.more(number(more))}`;
}

function NodeLink({ name }) {
  return html`<a href=${linkTo("cluster", { node: name })}>${name}</a>`;
}

function Lead({ lead, node }) {
  if (lead === undefined || lead === null) return null;
  const differences = Object.entries(lead.byPlugin).filter(([, value]) => value !== 0);
  return html`<section>
    <h2>${own.lead(node, lead.second, lead.total)}</h2>
    <${Differences} values=${differences} />
  </section>`;
}

// Signed amounts by plugin, as bars from a common middle.
function Differences({ values }) {
  const largest = Math.max(...values.map(([, value]) => Math.abs(value)), 1);
  const sorted = [...values].sort(([, one], [, other]) => other - one);
  return html`<ul class="differences">
    ${sorted.map(([plugin, value]) => {
      const share = `${(50 * Math.abs(value)) / largest}%`;
      const style = value > 0 ? { left: "50%", width: share } : { right: "50%", width: share };
      return html`<li key=${plugin}>
        <span>${plugin}</span>
        <span class="bar"><i class=${value > 0 ? "for" : "against"} style=${style}></i></span>
        <span class="number">${value > 0 ? "+" : ""}${number(value)}</span>
      </li>`;
    })}
  </ul>`;
}

function LeftOut({ leftOut = [] }) {
  if (leftOut.length === 0) return null;
  return html`<details>
    <summary>${own.leftOut}</summary>
    <ul>${leftOut.map((each) => html`<li>${each.point}: ${each.plugins.join(", ")} (${each.why})</li>`)}</ul>
  </details>`;
}
