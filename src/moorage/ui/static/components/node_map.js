// All nodes as tiles on a canvas: how full they are, what is wrong with them, and where pods come and go.
import { html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { colour } from "../theme.js";
import { groupsOf, LABELLED_TILE_PIXELS, NodeLayout } from "./node_layout.js";

const FLASH_MILLISECONDS = 1600;
const FADING_MILLISECONDS = 400; // between two steps of flashes that fade
const MOST_FADING = 50; // flashes: more of them do not fade, so that they are drawn once
const ZOOM_STEPS = [0, 7, 10, 14, 20, 28, 40, 56, 72]; // 0: everything is in sight

// moves: where pods have come or gone; matches: the names that are not dimmed, or null for all.
export function NodeMap({ state, moves, groupBy, resource, matches, selected, onSelect, label, describe }) {
  const canvas = useRef(null);
  const frame = useRef(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [zoom, setZoom] = useState(0);
  const [top, setTop] = useState(0);
  const [hovered, setHovered] = useState(null);
  const flashes = useFlashes(moves);
  const grouped = useMemo(() => groupsOf(state.nodes, groupBy), [state, state.nodesVersion, groupBy]);
  const layout = useMemo(
    () => new NodeLayout(grouped, size.width, size.height, ZOOM_STEPS[zoom]),
    [grouped, size.width, size.height, zoom],
  );

  useLayoutEffect(() => {
    const observer = new ResizeObserver(() =>
      setSize({ width: frame.current.clientWidth, height: frame.current.clientHeight }),
    );
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);

  // In the frame in which the rest of the view is drawn: a frame of its own would cost as much again.
  useLayoutEffect(() => {
    let timer = 0;
    const draw = () => {
      clearTimeout(timer);
      forgetEnded(flashes);
      paint(canvas.current, { state, layout, top, resource, matches, selected, hovered: hovered?.name, flashes });
      const pause = flashes.size > MOST_FADING ? FLASH_MILLISECONDS : FADING_MILLISECONDS;
      if (flashes.size > 0) timer = setTimeout(() => requestAnimationFrame(draw), pause);
    };
    draw();
    addEventListener("themechange", draw);
    return () => {
      clearTimeout(timer);
      removeEventListener("themechange", draw);
    };
  });

  const pointed = (event) => {
    const box = canvas.current.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };
  const move = (event) => {
    const { x, y } = pointed(event);
    const name = layout.at(x, y + top);
    setHovered(name === null ? null : { name, x, y });
  };
  const pressed = (event) => {
    if (event.key === "+" || event.key === "-") return changeZoom(event.key === "+" ? 1 : -1);
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const name = layout.neighbour(selected, event.key);
    if (name === undefined) return;
    const { y } = layout.tiles[layout.index.get(name)];
    if (y < top || y + layout.tile > top + size.height) frame.current.scrollTop = y - size.height / 2;
    onSelect(name);
  };
  const changeZoom = (step) => setZoom((now) => zoomed(now, step, layout.tile));

  return html`<div class="node-map">
    <div class="zoom">
      <button type="button" aria-label=${label.zoomOut} onClick=${() => changeZoom(-1)}>−</button>
      <button type="button" onClick=${() => setZoom(0)} aria-pressed=${zoom === 0}>${label.fit}</button>
      <button type="button" aria-label=${label.zoomIn} onClick=${() => changeZoom(1)}>+</button>
    </div>
    <div class="frame" ref=${frame} onScroll=${(event) => setTop(event.target.scrollTop)}>
      <div class="extent" style=${{ height: `${layout.height}px` }}>
        <canvas
          ref=${canvas}
          tabindex="0"
          role="img"
          aria-label=${label.map}
          style=${{ width: `${size.width}px`, height: `${size.height}px` }}
          width=${Math.round(size.width * devicePixelRatio)}
          height=${Math.round(size.height * devicePixelRatio)}
          onPointerMove=${move}
          onPointerLeave=${() => setHovered(null)}
          onClick=${(event) => {
            const { x, y } = pointed(event);
            const name = layout.at(x, y + top);
            if (name !== null) onSelect(name);
          }}
          onKeyDown=${pressed}
        ></canvas>
      </div>
    </div>
    ${hovered && html`<${Tip} at=${hovered} width=${size.width} lines=${describe(hovered.name)} />`}
  </div>`;
}

// One step from the present size, also where that was chosen to fit.
function zoomed(now, step, tile) {
  if (now !== 0) return Math.min(Math.max(now + step, 1), ZOOM_STEPS.length - 1);
  const next = ZOOM_STEPS.findIndex((size) => size > tile);
  if (step > 0) return next === -1 ? ZOOM_STEPS.length - 1 : next;
  return Math.max((next === -1 ? ZOOM_STEPS.length : next) - 1, 1);
}

function Tip({ at, width, lines }) {
  const isLeft = at.x > width / 2;
  const style = { top: `${at.y + 14}px`, [isLeft ? "right" : "left"]: `${(isLeft ? width - at.x : at.x) + 14}px` };
  return html`<div class="tip" style=${style} role="tooltip">${lines.map((line) => html`<div>${line}</div>`)}</div>`;
}

// Nodes on which pods have come or gone lately: name -> {kind, since}.
function useFlashes(moves) {
  const flashes = useRef(new Map()).current;
  const seen = useRef(moves);
  if (moves !== seen.current) {
    seen.current = moves;
    for (const { node, kind } of moves) flashes.set(node, { kind, since: performance.now() });
  }
  return flashes;
}

function forgetEnded(flashes) {
  const now = performance.now();
  for (const [name, { since }] of flashes) if (now - since >= FLASH_MILLISECONDS) flashes.delete(name);
}

function paint(canvas, { state, layout, top, resource, matches, selected, hovered, flashes }) {
  if (canvas === null) return;
  const context = canvas.getContext("2d");
  const height = canvas.height / devicePixelRatio;
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  const colours = palette();
  paintHeadings(context, layout, top, height, colours);
  const [first, last] = layout.between(top, top + height);
  const now = performance.now();
  const fades = flashes.size <= MOST_FADING;
  for (let place = first; place < last; place += 1) {
    const { name, x, y } = layout.tiles[place];
    const node = state.nodes.get(name);
    if (node === undefined) continue;
    context.globalAlpha = matches === null || matches.has(name) ? 1 : 0.18;
    const { used, total } = state.usage(name, resource);
    paintTile(context, { x, y: y - top, size: layout.tile, name, node, share: total > 0 ? used / total : 0, has: total > 0 }, colours);
    const flash = flashes.get(name);
    if (flash !== undefined) paintFlash(context, { x, y: y - top, size: layout.tile }, flash, fades ? now : flash.since, colours);
    if (name === selected || name === hovered) {
      frameTile(context, x, y - top, layout.tile, name === selected ? colours.accent : colours.text);
    }
  }
  context.globalAlpha = 1;
}

let knownColours = { theme: null };

function palette() {
  const theme = document.documentElement.dataset.theme;
  if (knownColours.theme !== theme) {
    const names = ["background", "tile", "text", "muted", "accent", "bad", "good", "warning", "border"];
    const fills = ["fill-low", "fill-middle", "fill-high", "fill-full"].map(colour);
    knownColours = { theme, fills, ...Object.fromEntries(names.map((name) => [name, colour(name)])) };
  }
  return knownColours;
}

function paintHeadings(context, layout, top, height, colours) {
  context.font = "600 13px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const { value, count, y } of layout.headings) {
    if (y + 24 < top || y > top + height) continue;
    context.fillStyle = colours.text;
    context.fillText(value || "–", 0, y - top + 11);
    const width = context.measureText(value || "–").width;
    context.fillStyle = colours.muted;
    context.fillText(`  ${count.toLocaleString("en")}`, width, y - top + 11);
  }
}

function paintTile(context, { x, y, size, name, node, share, has }, colours) {
  context.fillStyle = colours.tile;
  context.fillRect(x, y, size, size);
  const full = Math.min(share, 1) * size;
  context.fillStyle = colours.fills[share >= 0.98 ? 3 : share >= 0.8 ? 2 : share >= 0.4 ? 1 : 0];
  context.fillRect(x, y + size - full, size, full);
  if (node.unschedulable) hatch(context, x, y, size, colours.text);
  if (node.taints?.length) corner(context, x, y, size, colours.text);
  if (node.conditions?.length) frameTile(context, x, y, size, colours.bad);
  if (size >= LABELLED_TILE_PIXELS) label(context, x, y, size, name, has ? `${Math.round(100 * share)}%` : "–", colours);
}

function hatch(context, x, y, size, colour) {
  context.save();
  context.beginPath();
  context.rect(x, y, size, size);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1;
  context.globalAlpha *= 0.55;
  context.beginPath();
  for (let at = -size; at < size; at += Math.max(4, size / 6)) {
    context.moveTo(x + at, y + size);
    context.lineTo(x + at + size, y);
  }
  context.stroke();
  context.restore();
}

function corner(context, x, y, size, colour) {
  const side = Math.max(3, size / 5);
  context.fillStyle = colour;
  context.beginPath();
  context.moveTo(x + size - side, y);
  context.lineTo(x + size, y);
  context.lineTo(x + size, y + side);
  context.fill();
}

function frameTile(context, x, y, size, colour) {
  context.strokeStyle = colour;
  context.lineWidth = 2;
  context.strokeRect(x + 1, y + 1, size - 2, size - 2);
}

// Texts have the page's background behind them: they are readable on every fill.
function label(context, x, y, size, name, share, colours) {
  context.save();
  context.beginPath();
  context.rect(x + 2, y + 2, size - 4, size - 4);
  context.clip();
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const [text, middle] of [[name, y + 10], [share, y + size - 10]]) {
    context.fillStyle = colours.background;
    context.fillRect(x + 3, middle - 7, context.measureText(text).width + 4, 14);
    context.fillStyle = colours.text;
    context.fillText(text, x + 5, middle);
  }
  context.restore();
}

function paintFlash(context, { x, y, size }, { kind, since }, now, colours) {
  const before = context.globalAlpha;
  context.globalAlpha = before * Math.max(1 - (now - since) / FLASH_MILLISECONDS, 0);
  frameTile(context, x, y, size, kind === "gone" ? colours.bad : colours.good);
  context.globalAlpha = before;
}
