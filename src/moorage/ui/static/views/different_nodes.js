// The pods that are on different nodes in two runs at a moment.
import { html, useMemo } from "../vendor/preact.js";
import { VirtualTable, sortFrom, sortText } from "../components/virtual_table.js";
import { amount, number } from "../format.js";
import { setParams } from "../router.js";
import { texts } from "../texts.js";

const own = texts.time;

export function DifferentNodes({ runs, at, params }) {
  const [one, other] = runs.map(({ history }) => history.state);
  const rows = useMemo(() => different(one, other), [runs, at]);
  const columns = [
    { key: "pod", title: own.columns.pod, value: (row) => row.key },
    ...[0, 1].map((place) => ({
      key: `run${place + 1}`,
      title: own.columns.run(place + 1),
      value: (row) => whereText(row.pods[place]),
    })),
    ...["cpu", "memory"].map((resource) => ({
      key: resource,
      title: own.columns[resource],
      numeric: true,
      value: (row) => requested(row, resource),
      text: (row) => amount(resource, requested(row, resource)),
    })),
  ];
  return html`<section>
    <h2>${own.different(number(rows.length))}</h2>
    <${VirtualTable}
      label=${own.different(number(rows.length))}
      columns=${columns}
      rows=${rows}
      rowKey=${(row) => row.key}
      sort=${sortFrom(params.sort, null)}
      onSort=${(sort) => setParams({ sort: sortText(sort) })}
    />
  </section>`;
}

function different(one, other) {
  const rows = [];
  for (const [key, pod] of one.pods) {
    const there = other.pods.get(key);
    if ((pod.node || "") !== (there?.node || "")) rows.push({ key, pods: [pod, there] });
  }
  for (const [key, pod] of other.pods) if (pod.node && !one.pods.has(key)) rows.push({ key, pods: [undefined, pod] });
  return rows;
}

function whereText(pod) {
  if (pod === undefined) return own.noPod;
  return pod.node || own.pendingPod;
}

function requested({ pods }, resource) {
  return (pods[0] ?? pods[1]).requests?.[resource] ?? 0;
}
