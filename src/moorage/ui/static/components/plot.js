// A plot over time: uPlot with the page's colours, as wide as its place.
import { html, useEffect, useRef } from "../vendor/preact.js";
import uPlot from "../vendor/uplot.js";
import { colour } from "../theme.js";

const HEIGHT_PIXELS = 180;
const AXIS_PIXELS = 64;
const SERIES_COLOURS = 8; // --series-0 … of style.css

// times: seconds; series: [{name, values}], null where there is no value; shown(value): a value as text.
// onPoint(place): the pointer is at this place of the columns, or null. sync: plots with the same one share the pointer.
export function Plot({ label, times, series, shown, sync, onPoint }) {
  const frame = useRef(null);
  const plot = useRef(null);
  const latest = useRef(null);
  latest.current = [times, ...series.map((each) => each.values)];
  const names = series.map((each) => each.name).join("\n");

  useEffect(() => {
    const make = () => {
      plot.current?.destroy();
      plot.current = new uPlot(options(frame.current.clientWidth, series, shown, sync, onPoint), latest.current, frame.current);
    };
    make();
    const observer = new ResizeObserver(() =>
      plot.current.setSize({ width: frame.current.clientWidth, height: HEIGHT_PIXELS }),
    );
    observer.observe(frame.current);
    addEventListener("themechange", make);
    return () => {
      observer.disconnect();
      removeEventListener("themechange", make);
      plot.current.destroy();
      plot.current = null;
    };
  }, [names, sync]);
  useEffect(() => plot.current.setData(latest.current), [times]);

  return html`<div class="plot" ref=${frame} role="img" aria-label=${label}></div>`;
}

function options(width, series, shown, sync, onPoint) {
  const axis = {
    stroke: colour("muted"),
    font: "12px system-ui, sans-serif",
    grid: { stroke: colour("tile"), width: 1 },
    ticks: { stroke: colour("border"), width: 1, size: 4 },
  };
  return {
    width,
    height: HEIGHT_PIXELS,
    padding: [8, 8, 0, 0],
    cursor: { sync: { key: sync }, points: { size: 6 }, drag: { x: false, y: false } },
    legend: { show: false },
    hooks: { setCursor: [(self) => onPoint(self.cursor.idx ?? null)] },
    scales: { y: { range: (self, least, greatest) => [0, greatest > 0 ? greatest * 1.1 : 1] } },
    axes: [
      { ...axis, space: 80, size: 30, values: (self, values) => values.map(timeOfDay) },
      { ...axis, size: AXIS_PIXELS, values: (self, values) => values.map(shown) },
    ],
    series: [{}, ...series.map((each, place) => line(each.name, place))],
  };
}

function line(label, place) {
  const dash = place < SERIES_COLOURS ? undefined : [5, 4];
  return { label, stroke: colour(`series-${place % SERIES_COLOURS}`), dash, width: 1.5, points: { size: 4 } };
}

export function timeOfDay(seconds) {
  return new Date(seconds * 1000).toLocaleTimeString("en-GB");
}

// What the lines stand for, with the values at a place of the columns; null: the latest.
export function Legend({ series, shown, place }) {
  return html`<ul class="legend plot-legend">
    ${series.map(({ name, title, values }, number) => html`<li key=${name}>
      <span class="mark line series-${number % SERIES_COLOURS} ${number < SERIES_COLOURS ? "" : "dashed"}"></span>
      ${title} <span class="value">${shown(values.at(place ?? -1) ?? null)}</span>
    </li>`)}
  </ul>`;
}
