// One node: what it has, what is requested of it, and its pods.
import { html } from "../vendor/preact.js";
import { amount, byName, percent } from "../format.js";
import { linkTo } from "../router.js";
import { texts } from "../texts.js";

const MOST_PODS = 200;
const own = texts.cluster;

export function NodePanel({ state, name, close }) {
  const node = state.nodes.get(name);
  const keys = [...state.podsOn(name)].sort(byName);
  return html`<aside class="panel" aria-label=${own.details(name)}>
    <div class="title">
      <h2>${name}</h2>
      <button type="button" onClick=${close} aria-label=${own.close}>×</button>
    </div>
    ${node === undefined ? html`<p>${own.gone}</p>` : html`<${Facts} node=${node} />`}
    ${node !== undefined &&
    Object.keys(node.allocatable ?? {}).map((resource) => {
      const { used, total } = state.usage(name, resource);
      return html`<${Meter} key=${resource} resource=${resource} used=${used} total=${total} />`;
    })}
    <h3>${own.pods(keys.length)}</h3>
    <ul class="pods">
      ${keys.slice(0, MOST_PODS).map((key) => {
        const pod = state.pods.get(key);
        return html`<li key=${key}>
          <a href=${linkTo("decision", { pod: key })}>${key}</a>
          <span>${amount("cpu", pod.requests?.cpu ?? 0)} / ${amount("memory", pod.requests?.memory ?? 0)}</span>
        </li>`;
      })}
    </ul>
    ${keys.length > MOST_PODS && html`<p>${own.more(keys.length - MOST_PODS)}</p>`}
    ${node !== undefined && html`<${Labels} labels=${node.labels ?? {}} />`}
  </aside>`;
}

function Facts({ node }) {
  const facts = [node.unschedulable ? own.cordoned : "", ...(node.conditions ?? []), ...(node.taints ?? [])];
  return html`<ul class="badges">${facts.filter(Boolean).map((fact) => html`<li class="badge">${fact}</li>`)}</ul>`;
}

function Meter({ resource, used, total }) {
  return html`<div class="meter-row">
    <span>${resource}</span>
    <meter min="0" max=${total || 1} value=${used} aria-label=${resource}></meter>
    <span>${own.of(amount(resource, used), amount(resource, total))} · ${percent(used, total)}</span>
  </div>`;
}

function Labels({ labels }) {
  const names = Object.keys(labels).sort();
  return html`<details><summary>${own.labels(names.length)}</summary>
    <ul class="labels">${names.map((name) => html`<li>${name}=${labels[name]}</li>`)}</ul>
  </details>`;
}
