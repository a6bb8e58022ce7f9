// A sortable table of any length: only the rows in sight are in the document.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";

const ROW_PIXELS = 30;
const ROWS_BEYOND = 8; // rows above and below those in sight

// columns: {key, title, value(row), text?(row), cell?(row), numeric?}; sort: {key, descending}.
export function VirtualTable({ label, columns, rows, rowKey, sort, onSort, selected, onSelect }) {
  const frame = useRef(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const sorted = useMemo(() => sortedRows(rows, columns, sort), [rows, columns, sort?.key, sort?.descending]);
  useEffect(() => {
    const element = frame.current;
    const update = () => setView({ top: element.scrollTop, height: element.clientHeight || 600 });
    const observer = new ResizeObserver(update);
    observer.observe(element);
    element.addEventListener("scroll", update, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", update);
    };
  }, []);
  const first = Math.max(0, Math.floor(view.top / ROW_PIXELS) - ROWS_BEYOND);
  const last = Math.min(sorted.length, Math.ceil((view.top + view.height) / ROW_PIXELS) + ROWS_BEYOND);
  return html`<div class="virtual-table" ref=${frame} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${sorted.length + 1}>
      <thead>
        <tr aria-rowindex="1">
          ${columns.map((column) => html`<${Heading} column=${column} sort=${sort} onSort=${onSort} />`)}
        </tr>
      </thead>
      <tbody>
        <${Gap} rows=${first} columns=${columns.length} />
        ${sorted.slice(first, last).map((row, place) => {
          const key = rowKey(row);
          return html`<tr
            key=${key}
            aria-rowindex=${first + place + 2}
            class=${key === selected ? "selected" : ""}
            onClick=${onSelect && (() => onSelect(row))}
          >
            ${columns.map((column) => html`<td class=${column.numeric ? "number" : ""}>${shown(column, row)}</td>`)}
          </tr>`;
        })}
        <${Gap} rows=${sorted.length - last} columns=${columns.length} />
      </tbody>
    </table>
  </div>`;
}

function shown(column, row) {
  if (column.cell !== undefined) return column.cell(row);
  return column.text !== undefined ? column.text(row) : column.value(row);
}

function Heading({ column, sort, onSort }) {
  const isSorted = sort?.key === column.key;
  const direction = sort?.descending ? "descending" : "ascending";
  const content = onSort
    ? html`<button type="button" class="sort" onClick=${() => onSort(nextSort(column, sort))}>
        ${column.title}${isSorted ? (sort.descending ? " ▼" : " ▲") : ""}
      </button>`
    : column.title;
  return html`<th scope="col" class=${column.numeric ? "number" : ""} aria-sort=${isSorted ? direction : undefined}>
    ${content}
  </th>`;
}

// Numbers begin with the greatest, texts with the first.
function nextSort(column, sort) {
  if (sort?.key === column.key) return { key: column.key, descending: !sort.descending };
  return { key: column.key, descending: column.numeric === true };
}

function Gap({ rows, columns }) {
  return rows > 0 && html`<tr aria-hidden="true"><td class="gap" colspan=${columns} style=${{ height: `${rows * ROW_PIXELS}px` }}></td></tr>`;
}

const compare = new Intl.Collator("en", { numeric: true }).compare;

function sortedRows(rows, columns, sort) {
  const column = columns.find((each) => each.key === sort?.key);
  if (column === undefined) return rows;
  const sign = sort.descending ? -1 : 1;
  const order = column.numeric
    ? (one, other) => sign * ((column.value(one) ?? -Infinity) - (column.value(other) ?? -Infinity))
    : (one, other) => sign * compare(column.value(one) ?? "", column.value(other) ?? "");
  return [...rows].sort(order);
}

// The sort of a table as a parameter of the address, and back.
export function sortFrom(text, fallback) {
  if (!text) return fallback;
  return { key: text.replace(/^-/, ""), descending: text.startsWith("-") };
}

export function sortText(sort) {
  return `${sort.descending ? "-" : ""}${sort.key}`;
}
