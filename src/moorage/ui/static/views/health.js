// The scheduler's health: plots of its own metrics over the last minutes, and their latest values as a table.
import { html, useEffect, useState } from "../vendor/preact.js";
import { get } from "../api.js";
import { Legend, Plot, timeOfDay } from "../components/plot.js";
import { number } from "../format.js";
import { poll } from "../polling.js";
import { texts } from "../texts.js";

const REFRESH_MILLISECONDS = 1000;
const MOST_SAMPLES = 600; // as many as the server keeps
const own = texts.health;

export function HealthView() {
  const { times, plots, problem } = useHealth();
  if (problem === null) return html`<p class="notice">${texts.loading}</p>`;
  const filled = plots.filter((plot) => plot.series.length > 0).map(titled);
  return html`
    <h1>${own.title}</h1>
    ${problem && html`<p class="problem" role="alert">${own.noMetrics(problem)}</p>`}
    ${times.length === 0 && html`<p class="note" role="status">${own.waiting}</p>`}
    <div class="plots">${filled.map((plot) => html`<${Panel} key=${plot.name} plot=${plot} times=${times} />`)}</div>
    ${filled.length > 0 && html`<${Latest} plots=${filled} />`}
  `;
}

function Panel({ plot, times }) {
  const shown = (value) => shownIn(plot.unit, value);
  const [place, setPlace] = useState(null);
  const id = `plot-${plot.name}`;
  return html`<section class="plot-panel" aria-labelledby=${id}>
    <h2 id=${id}>
      ${plot.title} <small>${own.units[plot.unit]}</small>
      <small class="at">${place !== null && place < times.length ? timeOfDay(times[place]) : ""}</small>
    </h2>
    <${Plot}
      label=${own.plot(plot.title)}
      times=${times}
      series=${plot.series}
      shown=${shown}
      sync="health"
      onPoint=${setPlace}
    />
    <${Legend} series=${plot.series} shown=${shown} place=${place} />
  </section>`;
}

function Latest({ plots }) {
  return html`<section>
    <h2 id="latest-values">${own.latest}</h2>
    <table class="latest" aria-labelledby="latest-values">
      <thead>
        <tr><th scope="col">${own.columns.what}</th><th scope="col">${own.columns.which}</th>
          <th scope="col" class="number">${own.columns.value}</th></tr>
      </thead>
      <tbody>
        ${plots.flatMap((plot) => plot.series.map((series) => html`<tr key=${`${plot.name} ${series.name}`}>
          <td>${plot.title} (${own.units[plot.unit]})</td><td>${series.title}</td>
          <td class="number">${shownIn(plot.unit, series.values.at(-1) ?? null)}</td>
        </tr>`))}
      </tbody>
    </table>
  </section>`;
}

function titled(plot) {
  const series = plot.series.map((each) => ({ ...each, title: own.series[each.name] ?? each.name }));
  return { ...plot, series, title: own.plots[plot.name] ?? plot.name };
}

// A value in the unit of its plot, without it; times are shown in milliseconds.
function shownIn(unit, value) {
  if (value === null) return "–";
  const scaled = unit === "1/s" || unit === "pods" ? value : value * 1000;
  return number(scaled, scaled < 10 ? 2 : scaled < 100 ? 1 : 0);
}

// The samples that are known, and the newer ones as they come while the view is shown.
function useHealth() {
  const [known, setKnown] = useState({ times: [], plots: [], problem: null });
  useEffect(() => {
    const ending = new AbortController();
    let columns = { times: [], plots: [] };
    const stop = poll(async () => {
      try {
        const newer = await get("health", { since: columns.times.at(-1) }, ending.signal);
        columns = joined(columns, newer);
        setKnown({ ...columns, problem: newer.problem });
      } catch (error) {
        if (!ending.signal.aborted) setKnown({ ...columns, problem: error.message });
      }
    }, REFRESH_MILLISECONDS);
    return () => {
      stop();
      ending.abort();
    };
  }, []);
  return known;
}

// Columns with newer ones behind them; a series that only one of them has is null in the other.
export function joined(older, newer) {
  if (newer.times.length === 0 && older.plots.length > 0) return older;
  const times = [...older.times, ...newer.times];
  const plots = newer.plots.map((plot) => {
    const before = older.plots.find((each) => each.name === plot.name)?.series ?? [];
    const names = [...new Set([...before, ...plot.series].map((each) => each.name))];
    const series = names.map((name) => ({
      name,
      values: [...values(before, name, older.times), ...values(plot.series, name, newer.times)].slice(-MOST_SAMPLES),
    }));
    return { ...plot, series: series.filter((each) => each.values.some((value) => value !== null)) };
  });
  return { times: times.slice(-MOST_SAMPLES), plots };
}

function values(series, name, times) {
  return series.find((each) => each.name === name)?.values ?? times.map(() => null);
}
