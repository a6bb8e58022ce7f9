// Nodes that pass all filters, with the score of every plugin: raw, normalised or weighted.
import { html } from "../vendor/preact.js";
import { VirtualTable, sortFrom, sortText } from "../components/virtual_table.js";
import { number } from "../format.js";
import { linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";

const own = texts.decision;

export function Scores({ feasible = [], params }) {
  if (feasible.length === 0) return null;
  const form = params.scores ?? "weighted";
  const plugins = Object.keys(feasible[0].scores ?? {});
  const columns = [
    { key: "node", title: own.node, value: (row) => row.node, cell: (row) => nodeCell(row) },
    ...(plugins.length > 0 ? [{ key: "total", title: own.total, numeric: true, value: (row) => row.total }] : []),
    ...plugins.map((plugin) => pluginColumn(plugin, form, feasible[0].scores[plugin].weight)),
  ];
  return html`<section>
    <h2>${own.feasible(number(feasible.length))}</h2>
    ${plugins.length > 0 && html`<${FormChoice} form=${form} />`}
    <${VirtualTable}
      label=${own.scoresTable}
      columns=${columns}
      rows=${feasible}
      rowKey=${(row) => row.node}
      sort=${sortFrom(params.sort, null)}
      onSort=${(sort) => setParams({ sort: sortText(sort) })}
      selected=${feasible.find((row) => row.chosen)?.node}
    />
  </section>`;
}

function FormChoice({ form }) {
  return html`<div class="tools" role="group" aria-label=${own.form}>
    ${Object.entries(own.forms).map(([key, title]) => html`<button
      type="button"
      aria-pressed=${key === form}
      onClick=${() => setParams({ scores: key })}
    >${title}</button>`)}
  </div>`;
}

function nodeCell(row) {
  return html`<a href=${linkTo("cluster", { node: row.node })}>${row.node}</a>${row.chosen && html` <span class="badge">${own.chosen}</span>`}`;
}

function pluginColumn(plugin, form, weight) {
  const title = form === "weighted" && weight !== 1 ? `${plugin} ×${weight}` : plugin;
  return { key: plugin, title, numeric: true, value: (row) => row.scores?.[plugin]?.[form] ?? null };
}
