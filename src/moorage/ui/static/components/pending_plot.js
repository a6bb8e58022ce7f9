// How many pods were pending over time: one line for each run, and a mark at the moment that is shown.
import { html, useEffect, useLayoutEffect, useRef } from "../vendor/preact.js";
import uPlot from "../vendor/uplot.js";
import { colour } from "../theme.js";

const HEIGHT_PIXELS = 110;
const MOST_POINTS = 2000; // more than there are pixels across

// runs: [{title, times, pending}]; onMove is given the time of a click.
export function PendingPlot({ runs, first, last, at, axisText, label, onMove }) {
  const frame = useRef(null);
  const plot = useRef(null);
  const shown = useRef({ at });
  shown.current.at = at;
  const count = runs.map((run) => run.times.length).join();
  useLayoutEffect(() => {
    const draw = () => {
      plot.current?.destroy();
      const mark = { hooks: { draw: [(drawn) => paintMark(drawn, shown.current.at)] } };
      const options = optionsOf(runs, { first, last, axisText, width: frame.current.clientWidth, plugins: [mark] });
      plot.current = new uPlot(options, joined(runs, last), frame.current);
    };
    draw();
    const clicked = (event) => {
      const over = plot.current.over.getBoundingClientRect();
      onMove(Math.min(Math.max(plot.current.posToVal(event.clientX - over.left, "x"), first), last));
    };
    const observer = new ResizeObserver(() =>
      plot.current.setSize({ width: frame.current.clientWidth, height: HEIGHT_PIXELS }),
    );
    observer.observe(frame.current);
    frame.current.addEventListener("click", clicked);
    addEventListener("themechange", draw);
    return () => {
      observer.disconnect();
      frame.current?.removeEventListener("click", clicked);
      removeEventListener("themechange", draw);
      plot.current.destroy();
      plot.current = null;
    };
  }, [count, first, last]);
  useEffect(() => plot.current?.redraw(false, false), [at]);
  return html`<div class="pending-plot" ref=${frame} role="img" aria-label=${label}></div>`;
}

function optionsOf(runs, { first, last, axisText, width, plugins }) {
  const axis = { stroke: colour("muted"), grid: { stroke: colour("border"), width: 1 }, ticks: { show: false } };
  const strokes = [colour("fill-middle"), colour("fill-high")];
  return {
    width,
    height: HEIGHT_PIXELS,
    plugins,
    cursor: { drag: { setScale: false }, points: { show: false } },
    legend: { show: false },
    scales: { x: { time: false, range: [first, last > first ? last : first + 1] }, y: { range: (_, low, high) => [0, Math.max(high, 1)] } },
    axes: [
      { ...axis, size: 24, values: (_, values) => values.map(axisText) },
      { ...axis, size: 56, values: (_, values) => values.map((value) => (Number.isInteger(value) ? value.toLocaleString("en") : "")) },
    ],
    series: [
      {},
      ...runs.map((run, place) => ({
        label: run.title,
        stroke: strokes[place],
        width: 2,
        paths: uPlot.paths.stepped({ align: 1 }),
        points: { show: false },
      })),
    ],
  };
}

// All runs over the times at which any has changed, as uPlot wants them.
function joined(runs, last) {
  const tables = runs.map(({ times, pending }) => {
    const places = thinned(pending);
    return [[...places.map((place) => times[place]), Infinity], places.map((place) => pending[place])];
  });
  const moments = [...new Set([...tables.flatMap(([times]) => times.slice(0, -1)), last])].sort((one, other) => one - other);
  return [moments, ...tables.map(([times, values]) => valuesAt(moments, times, values))];
}

function valuesAt(moments, times, values) {
  let place = -1;
  return moments.map((moment) => {
    while (times[place + 1] <= moment) place += 1;
    return place < 0 ? null : values[place];
  });
}

// The places of the least and the greatest value of each piece: fewer points, and no peak is lost.
function thinned(values) {
  if (values.length <= MOST_POINTS) return [...values.keys()];
  const piece = Math.ceil((2 * values.length) / MOST_POINTS);
  const places = [];
  for (let start = 0; start < values.length; start += piece) {
    let [least, greatest] = [start, start];
    for (let place = start; place < Math.min(start + piece, values.length); place += 1) {
      if (values[place] < values[least]) least = place;
      if (values[place] > values[greatest]) greatest = place;
    }
    places.push(...new Set([Math.min(least, greatest), Math.max(least, greatest)]));
  }
  return places;
}

function paintMark(plot, at) {
  const x = Math.round(plot.valToPos(at, "x", true));
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = colour("accent");
  ctx.lineWidth = 2 * devicePixelRatio;
  ctx.beginPath();
  ctx.moveTo(x, bbox.top);
  ctx.lineTo(x, bbox.top + bbox.height);
  ctx.stroke();
  ctx.restore();
}
