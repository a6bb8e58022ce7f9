// A report of shadow mode: where another scheduler has put each pod, where moorage would have, and why not there.
import { html, useEffect, useState } from "../vendor/preact.js";
import { VirtualTable, sortFrom, sortText } from "../components/virtual_table.js";
import { get } from "../api.js";
import { moment, number } from "../format.js";
import { linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";

const own = texts.shadow;

export function ShadowView({ params }) {
  const { items, failure } = useComparisons();
  if (failure !== null) return html`<p class="problem" role="alert">${failure}</p>`;
  if (items === null) return html`<p class="notice">${texts.loading}</p>`;
  const shown = items.filter((row) => isShown(row, params));
  return html`
    <h1>${own.title(number(items.length))}</h1>
    <ul class="cards" aria-label=${own.byResult}>
      ${Object.entries(own.results).map(([result, text]) => html`<li>
        <button
          type="button"
          class="card"
          aria-pressed=${params.result === result}
          onClick=${() => setParams({ result: params.result === result ? "" : result })}
        >
          <strong>${number(items.filter((row) => row.result === result).length)}</strong>
          <span>${text}</span>
        </button>
      </li>`)}
    </ul>
    <form class="tools" onSubmit=${(event) => event.preventDefault()}>
      <label>${own.search}
        <input type="search" data-search value=${params.search ?? ""} onInput=${(event) => setParams({ search: event.target.value })} />
      </label>
      <span class="note" role="status">${own.shown(number(shown.length))}</span>
    </form>
    <${VirtualTable}
      label=${own.table}
      columns=${columns()}
      rows=${shown}
      rowKey=${(row) => `${row.pod} ${row.time}`}
      sort=${sortFrom(params.sort, null)}
      onSort=${(sort) => setParams({ sort: sortText(sort) })}
    />`;
}

function useComparisons() {
  const [known, setKnown] = useState({ items: null, failure: null });
  useEffect(() => {
    const ending = new AbortController();
    get("comparisons", {}, ending.signal)
      .then(({ items }) => setKnown({ items, failure: null }))
      .catch((error) => ending.signal.aborted || setKnown({ items: null, failure: error.message }));
    return () => ending.abort();
  }, []);
  return known;
}

function isShown(row, { result, search }) {
  if (result && row.result !== result) return false;
  const wanted = (search ?? "").trim().toLowerCase();
  return [row.pod, row.node, row.ours, row.plugin].some((text) => (text ?? "").toLowerCase().includes(wanted));
}

function columns() {
  const texted = (key, text) => ({ key, title: own.columns[key], value: (row) => row[key] ?? "", ...text });
  return [
    texted("pod"),
    texted("time", { cell: (row) => html`<a href=${linkTo("time", { at: row.time })}>${moment("shadow", row.time)}</a>` }),
    texted("result", { value: (row) => own.results[row.result] }),
    texted("node"),
    texted("ours"),
    texted("plugin"),
    texted("reason"),
    texted("totals", { value: (row) => (row.totals ?? []).join(" / ") }),
    texted("group"),
  ];
}
