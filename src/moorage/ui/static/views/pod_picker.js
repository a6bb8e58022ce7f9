// All pods, to choose one: those that wait first.
import { html } from "../vendor/preact.js";
import { VirtualTable, sortFrom, sortText } from "../components/virtual_table.js";
import { amount, byName, number } from "../format.js";
import { goTo, linkTo, setParams } from "../router.js";
import { useStore } from "../store.js";
import { texts } from "../texts.js";

const own = texts.decision;

export function PodPicker({ store, params, view = "decision" }) {
  const { state } = useStore(store);
  const wanted = (params.search ?? "").trim().toLowerCase();
  const rows = [...state.pods].filter(([key, pod]) => isWanted(key, pod, wanted)).sort(waitingFirst);
  const columns = [
    { key: "pod", title: own.pod, value: ([key]) => key, cell: ([key]) => html`<a href=${linkTo(view, { pod: key })}>${key}</a>` },
    { key: "node", title: own.node, value: ([, pod]) => pod.node ?? "" },
    { key: "cpu", title: "cpu", numeric: true, value: ([, pod]) => pod.requests?.cpu ?? 0, text: ([, pod]) => amount("cpu", pod.requests?.cpu ?? 0) },
    { key: "memory", title: "memory", numeric: true, value: ([, pod]) => pod.requests?.memory ?? 0, text: ([, pod]) => amount("memory", pod.requests?.memory ?? 0) },
    { key: "priority", title: own.priority, numeric: true, value: ([, pod]) => pod.priority ?? 0 },
    { key: "message", title: own.why, value: ([, pod]) => pod.message ?? "" },
  ];
  return html`<h1>${own.choose}</h1>
    <form class="tools" onSubmit=${(event) => event.preventDefault()}>
      <label>${own.search}
        <input type="search" data-search value=${params.search ?? ""} onInput=${(event) => setParams({ search: event.target.value })} />
      </label>
      <span class="note" role="status">${own.found(number(rows.length))}</span>
    </form>
    <${VirtualTable}
      label=${own.choose}
      columns=${columns}
      rows=${rows}
      rowKey=${([key]) => key}
      sort=${sortFrom(params.sort, null)}
      onSort=${(sort) => setParams({ sort: sortText(sort) })}
      onSelect=${([key]) => goTo(view, { pod: key })}
    />`;
}

function isWanted(key, pod, wanted) {
  return !wanted || key.toLowerCase().includes(wanted) || (pod.node ?? "").toLowerCase().includes(wanted);
}

function waitingFirst([oneKey, one], [otherKey, other]) {
  return Boolean(one.node) - Boolean(other.node) || byName(oneKey, otherKey);
}
