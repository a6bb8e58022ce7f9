// The pods that wait for a node: where, why, since when, and what they wait for.
import { html, useEffect, useState } from "../vendor/preact.js";
import { VirtualTable, sortFrom, sortText } from "../components/virtual_table.js";
import { get } from "../api.js";
import { age, duration, moment, number } from "../format.js";
import { poll } from "../polling.js";
import { linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";

const REFRESH_MILLISECONDS = 2000;
const MOST_REASONS = 12;
const own = texts.queue;

export function QueueView({ store, params }) {
  const { kind, live } = store.source;
  const { queue, failure } = useQueue(live);
  if (failure !== null) return html`<p class="problem" role="alert">${failure}</p>`;
  if (queue === null) return html`<p class="notice">${texts.loading}</p>`;
  const shown = queue.items.filter((entry) => isShown(entry, params));
  return html`
    <h1>${own.title(number(queue.items.length))}</h1>
    ${queue.problem && html`<p class="problem" role="alert">${own.noScheduler(queue.problem)}</p>`}
    ${!queue.fromScheduler && !queue.problem && html`<p class="note">${live ? own.fromConditions : own.atEnd}</p>`}
    <${Places} items=${queue.items} chosen=${params.place} />
    <${Reasons} items=${queue.items} chosen=${params.reason} />
    <${QueueTable} items=${shown} params=${params} kind=${kind} hasAttempts=${queue.fromScheduler} />
  `;
}

// The queue, read again and again while the view is shown; that of a file does not change.
function useQueue(live) {
  const [known, setKnown] = useState({ queue: null, failure: null });
  useEffect(() => {
    const ending = new AbortController();
    const read = async () => {
      try {
        setKnown({ queue: await get("queue", {}, ending.signal), failure: null });
      } catch (error) {
        if (!ending.signal.aborted) setKnown((before) => ({ ...before, failure: error.message }));
      }
    };
    const stop = poll(read, live ? REFRESH_MILLISECONDS : Infinity);
    return () => {
      stop();
      ending.abort();
    };
  }, [live]);
  return known;
}

function isShown(entry, { place, reason, search }) {
  if (place && entry.place !== place) return false;
  if (reason && !reasonsOf(entry).includes(reason)) return false;
  return !search || entry.pod.toLowerCase().includes(search.trim().toLowerCase());
}

// Why a pod waits: the reasons of its last attempt without the numbers of nodes, or what keeps it from being tried.
export function reasonsOf(entry) {
  if (entry.gatedBy) return [entry.gatedBy];
  const list = /^\d+\/\d+ nodes are available: (.*?)(?:\. |\.$|$)/.exec(entry.message ?? "");
  if (list !== null) return list[1].split(/, (?=\d+ )/).map((part) => part.replace(/^\d+ /, "").replace(/\.$/, ""));
  if (entry.message) return [entry.message];
  return entry.rejectedBy ?? [];
}

function counted(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort(([, one], [, other]) => other - one);
}

function Places({ items, chosen }) {
  const counts = new Map(counted(items.map((entry) => entry.place)));
  const known = Object.keys(own.places).filter((place) => counts.has(place));
  return html`<ul class="cards" aria-label=${own.byPlace}>
    ${known.map((place) => html`<li>
      <button
        type="button"
        class="card"
        aria-pressed=${place === chosen}
        onClick=${() => setParams({ place: place === chosen ? "" : place })}
      >
        <strong>${number(counts.get(place))}</strong>
        <span>${own.places[place]}</span>
      </button>
    </li>`)}
  </ul>`;
}

function Reasons({ items, chosen }) {
  const counts = counted(items.flatMap((entry) => [...new Set(reasonsOf(entry))])).slice(0, MOST_REASONS);
  if (counts.length === 0) return null;
  return html`<h2>${own.reasons}</h2>
    <ul class="reasons">
      ${counts.map(([reason, count]) => html`<li>
        <button
          type="button"
          aria-pressed=${reason === chosen}
          onClick=${() => setParams({ reason: reason === chosen ? "" : reason })}
        >
          <strong>${number(count)}</strong> ${reason}
        </button>
      </li>`)}
    </ul>`;
}

function QueueTable({ items, params, kind, hasAttempts }) {
  const columns = [
    { key: "pod", title: own.columns.pod, value: (entry) => entry.pod, cell: podCell },
    { key: "place", title: own.columns.place, value: (entry) => own.places[entry.place] ?? entry.place },
    ...sinceColumn(kind),
    ...(hasAttempts ? attemptColumns() : []),
    { key: "why", title: own.columns.why, value: (entry) => reasonsOf(entry).join(", ") },
  ];
  return html`<form class="tools" onSubmit=${(event) => event.preventDefault()}>
      <label>${own.search}
        <input type="search" data-search value=${params.search ?? ""} onInput=${(event) => setParams({ search: event.target.value })} />
      </label>
      <span class="note" role="status">${own.shown(number(items.length))}</span>
    </form>
    <${VirtualTable}
      label=${own.table}
      columns=${columns}
      rows=${items}
      rowKey=${(entry) => entry.uid || entry.pod}
      sort=${sortFrom(params.sort, null)}
      onSort=${(sort) => setParams({ sort: sortText(sort) })}
    />`;
}

// Recordings have numbers of steps instead of times.
function sinceColumn(kind) {
  if (kind === "recording") return [];
  const text = kind === "cluster" ? age : (since) => moment(kind, Date.parse(since) / 1000);
  const value = (entry) => -Date.parse(entry.since);
  return [{ key: "since", title: own.columns.since, numeric: true, value, text: (entry) => text(entry.since) }];
}

function podCell(entry) {
  return html`<a href=${linkTo("decision", { pod: entry.pod })}>${entry.pod}</a>`;
}

function attemptColumns() {
  return [
    { key: "attempts", title: own.columns.attempts, numeric: true, value: (entry) => entry.attempts },
    { key: "next", title: own.columns.next, numeric: true, value: nextTry, text: (entry) => nextText(entry) },
    { key: "rejected", title: own.columns.rejected, value: (entry) => entry.gatedBy || (entry.rejectedBy ?? []).join(", ") },
    { key: "woken", title: own.columns.woken, value: (entry) => awaited(entry).join(", ") },
  ];
}

function nextTry(entry) {
  return entry.nextAttempt === undefined || entry.nextAttempt === null ? null : Date.parse(entry.nextAttempt) / 1000;
}

function nextText(entry) {
  const moment = nextTry(entry);
  return moment === null ? "" : own.in(duration(Math.max(moment - Date.now() / 1000, 0)));
}

function awaited(entry) {
  return [...new Set((entry.awaited ?? []).flatMap((each) => each.events ?? []))];
}
