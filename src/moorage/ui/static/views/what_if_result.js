// The pod now and then, side by side, and what differs.
import { html } from "../vendor/preact.js";
import { Scores } from "./scores.js";
import { number } from "../format.js";
import { linkTo } from "../router.js";
import { texts } from "../texts.js";

const own = texts.whatIf;
const MOST_NODES = 8;

export function Result({ answer: { now, then, differences }, params, addChange, changes }) {
  return html`
    <dl class="now-then">
      <div><dt>${own.now}</dt><dd>${now.verdict}</dd></div>
      <div class="then"><dt>${own.then}</dt><dd aria-live="polite">${then.verdict}</dd></div>
    </dl>
    ${(then.notes ?? []).map((note) => html`<p class="problem">${note}</p>`)}
    <${Moved} differences=${differences} />
    <${Suggestions} help=${now.help} changes=${changes} addChange=${addChange} />
    <${Reasons} reasons=${differences.reasons} />
    <${ByPlugin} differences=${differences} />
    <${Others} others=${differences.others} />
    <${Scores} feasible=${then.feasible} params=${params} />
  `;
}

function Moved({ differences: { node, isEquallyGood, feasible, opened, closed } }) {
  return html`
    <p>${node.before === node.after ? own.sameNode(node.after) : own.otherNode(node.before, node.after)}
      ${node.before !== node.after && isEquallyGood && ` ${own.equallyGood(node.before)}`}</p>
    <p>${own.feasible(number(feasible.before), number(feasible.after))}
      ${opened.length > 0 && html` ${own.opened} <${NodeNames} names=${opened} />.`}
      ${closed.length > 0 && html` ${own.closed} <${NodeNames} names=${closed} />.`}</p>
  `;
}

function NodeNames({ names }) {
  const more = names.length - MOST_NODES;
  return html`${names.slice(0, MOST_NODES).map(
    (name, place) => html`${place > 0 && ", "}<a href=${linkTo("cluster", { node: name })}>${name}</a>`,
  )}${more > 0 && texts.decision.more(number(more))}`;
}

function Suggestions({ help = [], changes, addChange }) {
  const left = help.filter((each) => !changes.some((change) => change.text === each.text));
  if (left.length === 0) return null;
  return html`
    <h2>${texts.decision.help}</h2>
    <ul class="suggestions">
      ${left.map((each) => html`<li key=${each.text}>
        <button
          type="button"
          aria-label=${own.tryOf(each.text)}
          onClick=${() => addChange({ kind: "suggestion", text: each.text })}
        >${own.try}</button>
        <span>${each.text}</span>
      </li>`)}
    </ul>
  `;
}

function Reasons({ reasons }) {
  if (reasons.length === 0) return null;
  return html`
    <h2>${own.reasons}</h2>
    <div class="wide"><table>
      <thead><tr>
        <th scope="col">${texts.decision.by}</th><th scope="col">${texts.decision.why}</th>
        <th scope="col" class="number">${own.now}</th><th scope="col" class="number">${own.then}</th>
      </tr></thead>
      <tbody>${reasons.map((each) => html`<tr>
        <td>${each.plugin}</td><td>${each.reasons.join(", ")}</td>
        <td class="number">${number(each.before)}</td><td class="number">${number(each.after)}</td>
      </tr>`)}</tbody>
    </table></div>
  `;
}

function ByPlugin({ differences: { scores, node } }) {
  if (scores.length === 0) return null;
  const nodes = Object.keys(scores[0].nodes);
  return html`
    <h2>${own.byPlugin}</h2>
    <div class="wide"><table class="by-plugin">
      <thead>
        <tr>
          <th scope="col" rowspan="2">${own.plugin}</th>
          <th scope="colgroup" colspan="2">${own.weight}</th>
          ${nodes.map((name) => html`<th scope="colgroup" colspan="2">${name}${name === node.after && html` <span class="badge">${own.then}</span>`}</th>`)}
        </tr>
        <tr>${["", ...nodes].map(() => html`<th scope="col" class="number">${own.now}</th><th scope="col" class="number">${own.then}</th>`)}</tr>
      </thead>
      <tbody>
        ${scores.map((each) => html`<tr key=${each.plugin}>
          <td>${each.plugin}</td>
          <${Pair} value=${each.weight} />
          ${nodes.map((name) => html`<${Pair} value=${each.nodes[name]} />`)}
        </tr>`)}
      </tbody>
    </table></div>
  `;
}

function Pair({ value: { before, after } }) {
  const isChanged = before !== after;
  return html`<td class="number">${shown(before)}</td><td class=${isChanged ? "number changed" : "number"}>${shown(after)}</td>`;
}

function shown(value) {
  return value === null ? "–" : number(value);
}

function Others({ others }) {
  if (others === null || others.total === 0) return null;
  return html`
    <h2>${own.others}</h2>
    <p class="note">${own.otherPods(others.evaluated, others.total)}</p>
    ${others.items.length > 0 && html`<div class="wide"><table>
      <thead><tr>
        <th scope="col">${texts.decision.pod}</th><th scope="col">${own.loses}</th>
        <th scope="col" class="number">${own.fitsNow}</th><th scope="col" class="number">${own.fitsThen}</th>
      </tr></thead>
      <tbody>${others.items.map((each) => html`<tr key=${each.pod}>
        <td><a href=${linkTo("decision", { pod: each.pod })}>${each.pod}</a></td><td>${each.node}</td>
        <td class="number">${number(each.before)}</td><td class="number">${number(each.after)}</td>
      </tr>`)}</tbody>
    </table></div>`}
  `;
}
