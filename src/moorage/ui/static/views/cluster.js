// The nodes of the cluster: how full they are, what is wrong with them, and what runs there.
import { html, useMemo } from "../vendor/preact.js";
import { NodeMap } from "../components/node_map.js";
import { NodePanel } from "./node_panel.js";
import { VirtualTable, sortFrom, sortText } from "../components/virtual_table.js";
import { amount, number, percent } from "../format.js";
import { setParams } from "../router.js";
import { useStore } from "../store.js";
import { texts } from "../texts.js";

export const ZONE = "topology.kubernetes.io/zone";
const HOSTNAME = "kubernetes.io/hostname";
const MOST_GROUPS = 8; // values of a label that nodes are grouped by; of larger clusters half as many as nodes
const own = texts.cluster;

export function ClusterView({ store, params }) {
  const { state, moves } = useStore(store);
  const shape = useMemo(() => shapeOf(state), [state, state.nodesVersion]);
  const groupBy = params.group ?? (shape.labels.includes(ZONE) ? ZONE : "");
  const resource = params.fill ?? "cpu";
  const matches = useMemo(() => matching(state, params.search), [state, state.revision, params.search]);
  const pending = state.podsOn("").size;
  const select = (node) => setParams({ node });
  return html`
    <h1 class="figures">
      ${own.nodes(number(state.nodes.size))}, ${own.pods(number(state.pods.size - pending))}
      ${pending > 0 && html`, <${Pending} text=${own.pending(number(pending))} isLink=${store.has("queue")} />`}
    </h1>
    <form class="tools" onSubmit=${(event) => event.preventDefault()}>
      <label>${own.search}
        <input
          type="search"
          data-search
          value=${params.search ?? ""}
          placeholder=${own.searchHint}
          onInput=${(event) => setParams({ search: event.target.value })}
        />
      </label>
      <${Choice} label=${own.fill} name="fill" value=${resource} options=${shape.resources.map((each) => [each, each])} />
      <${Choice}
        label=${own.group}
        name="group"
        value=${groupBy}
        options=${[["", own.ungrouped], ...shape.labels.map((each) => [each, each])]}
      />
      <${Choice} label=${own.show} name="as" value=${params.as ?? "map"} options=${Object.entries(own.forms)} />
      <${Legend} />
    </form>
    <div class="beside">
      ${params.as === "table"
        ? html`<${NodeTable} state=${state} resource=${resource} matches=${matches} params=${params} select=${select} />`
        : html`<${NodeMap}
            state=${state}
            moves=${moves}
            groupBy=${groupBy}
            resource=${resource}
            matches=${matches}
            selected=${params.node}
            onSelect=${select}
            label=${own.map}
            describe=${(name) => described(state, name, resource)}
          />`}
      ${params.node && html`<${NodePanel} state=${state} name=${params.node} close=${() => setParams({ node: "" })} />`}
    </div>
  `;
}

function Pending({ text, isLink }) {
  return isLink ? html`<a href="#/queue">${text}</a>` : text;
}

export function Choice({ label, name, value, options }) {
  return html`<label>${label}
    <select value=${value} onChange=${(event) => setParams({ [name]: event.target.value })}>
      ${options.map(([key, text]) => html`<option value=${key} selected=${key === value}>${text}</option>`)}
    </select>
  </label>`;
}

export function Legend() {
  return html`<ul class="legend" aria-label=${own.legend.title}>
    ${own.legend.rows.map(([kind, text]) => html`<li><i class="mark ${kind}" aria-hidden="true"></i>${text}</li>`)}
  </ul>`;
}

// What nodes can be filled by, and grouped by: labels with few values.
export function shapeOf(state) {
  const resources = new Set(["cpu", "memory", "pods"]);
  const values = new Map();
  for (const node of state.nodes.values()) {
    for (const resource of Object.keys(node.allocatable ?? {})) resources.add(resource);
    for (const [label, value] of Object.entries(node.labels ?? {})) {
      if (!values.has(label)) values.set(label, new Set());
      values.get(label).add(value);
    }
  }
  const most = Math.max(MOST_GROUPS, state.nodes.size / 2);
  const grouping = ([label, found]) => label !== HOSTNAME && found.size > 1 && found.size <= most;
  const labels = [...values].filter(grouping).map(([label]) => label);
  return { resources: [...resources], labels: labels.sort() };
}

// The nodes that a search finds: by name, label, taint, or a pod on them; null if nothing is searched.
function matching(state, search) {
  const wanted = (search ?? "").trim().toLowerCase();
  if (!wanted) return null;
  const found = new Set();
  for (const [name, node] of state.nodes) {
    const labels = Object.entries(node.labels ?? {}).map(([key, value]) => `${key}=${value}`);
    if ([name, ...labels, ...(node.taints ?? [])].some((text) => text.toLowerCase().includes(wanted))) found.add(name);
  }
  for (const [key, pod] of state.pods) if (pod.node && key.toLowerCase().includes(wanted)) found.add(pod.node);
  return found;
}

export function described(state, name, resource) {
  const node = state.nodes.get(name);
  if (node === undefined) return [name];
  const { used, total } = state.usage(name, resource);
  const lines = [name, `${resource}: ${own.of(amount(resource, used), amount(resource, total))} (${percent(used, total)})`];
  lines.push(own.pods(number(state.podsOn(name).size)));
  if (node.unschedulable) lines.push(own.cordoned);
  return [...lines, ...(node.conditions ?? []), ...(node.taints ?? [])];
}

function NodeTable({ state, resource, matches, params, select }) {
  const names = [...state.nodes.keys()].filter((name) => matches === null || matches.has(name));
  const share = (name) => {
    const { used, total } = state.usage(name, resource);
    return total > 0 ? used / total : 0;
  };
  const columns = [
    { key: "node", title: own.columns.node, value: (name) => name },
    { key: "share", title: resource, numeric: true, value: share, text: (name) => percent(share(name), 1) },
    { key: "pods", title: own.columns.pods, numeric: true, value: (name) => state.podsOn(name).size },
    { key: "state", title: own.columns.state, value: (name) => stateText(state.nodes.get(name)) },
  ];
  return html`<${VirtualTable}
    label=${own.table}
    columns=${columns}
    rows=${names}
    rowKey=${(name) => name}
    sort=${sortFrom(params.sort, { key: "node", descending: false })}
    onSort=${(sort) => setParams({ sort: sortText(sort) })}
    selected=${params.node}
    onSelect=${select}
  />`;
}

function stateText(node) {
  return [node.unschedulable ? own.cordoned : "", ...(node.conditions ?? []), ...(node.taints ?? [])].filter(Boolean).join(", ");
}
