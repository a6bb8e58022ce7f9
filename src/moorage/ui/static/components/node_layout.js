// Where the tiles of nodes are: groups one below the other, each a grid of equal tiles.
import { byName } from "../format.js";

const GAP_PIXELS = 2;
const HEADING_PIXELS = 24;
const GROUP_GAP_PIXELS = 12;
const LEAST_TILE_PIXELS = 7;
const LARGEST_TILE_PIXELS = 72;

export const LABELLED_TILE_PIXELS = 44; // from this size on, a tile has room for its name

// Node names by the value of a label; without a label, all are one group.
export function groupsOf(nodes, label) {
  const groups = new Map();
  for (const [name, node] of nodes) {
    const value = label ? node.labels?.[label] ?? "" : null;
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(name);
  }
  const sorted = [...groups].sort(([one], [other]) => byName(one ?? "", other ?? ""));
  return sorted.map(([value, names]) => ({ value, names: names.sort(byName) }));
}

export class NodeLayout {
  // tile: size in pixels; 0: the largest with which everything is in sight.
  constructor(groups, width, height, tile = 0) {
    this.groups = groups;
    this.width = Math.max(width, 100);
    this.tile = tile || this.#fitting(height);
    this.columns = Math.max(1, Math.floor(this.width / (this.tile + GAP_PIXELS)));
    this.tiles = []; // {name, x, y}, from top to bottom
    this.headings = []; // {value, count, y}
    this.index = new Map();
    this.height = this.#place();
  }

  #fitting(height) {
    for (let tile = LARGEST_TILE_PIXELS; tile > LEAST_TILE_PIXELS; tile -= 1) {
      if (this.#heightWith(tile) <= height) return tile;
    }
    return LEAST_TILE_PIXELS;
  }

  #heightWith(tile) {
    const columns = Math.max(1, Math.floor(this.width / (tile + GAP_PIXELS)));
    const rows = this.groups.reduce((sum, group) => sum + Math.ceil(group.names.length / columns), 0);
    return rows * (tile + GAP_PIXELS) + this.#headingsHeight();
  }

  #headingsHeight() {
    const heading = this.#hasHeadings ? HEADING_PIXELS : 0;
    return this.groups.length * (heading + GROUP_GAP_PIXELS);
  }

  get #hasHeadings() {
    return this.groups.some((group) => group.value !== null);
  }

  #place() {
    const step = this.tile + GAP_PIXELS;
    let y = 0;
    for (const { value, names } of this.groups) {
      if (value !== null) {
        this.headings.push({ value, count: names.length, y });
        y += HEADING_PIXELS;
      }
      names.forEach((name, place) => {
        this.index.set(name, this.tiles.length);
        this.tiles.push({ name, x: (place % this.columns) * step, y: y + Math.floor(place / this.columns) * step });
      });
      y += Math.ceil(names.length / this.columns) * step + GROUP_GAP_PIXELS;
    }
    return y;
  }

  // The places of the tiles between two heights: [first, last).
  between(top, bottom) {
    const first = this.#firstFrom(top - this.tile);
    let last = first;
    while (last < this.tiles.length && this.tiles[last].y < bottom) last += 1;
    return [first, last];
  }

  #firstFrom(y) {
    let [low, high] = [0, this.tiles.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tiles[middle].y < y) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  at(x, y) {
    const [first, last] = this.between(y - this.tile, y + 1);
    for (let place = first; place < last; place += 1) {
      const tile = this.tiles[place];
      if (x >= tile.x && x < tile.x + this.tile && y >= tile.y && y < tile.y + this.tile) return tile.name;
    }
    return null;
  }

  // The node that an arrow key leads to.
  neighbour(name, key) {
    const place = this.index.get(name);
    if (place === undefined) return this.tiles[0]?.name;
    const { x, y } = this.tiles[place];
    if (key === "ArrowLeft") return this.tiles[Math.max(place - 1, 0)].name;
    if (key === "ArrowRight") return this.tiles[Math.min(place + 1, this.tiles.length - 1)].name;
    const isUp = key === "ArrowUp";
    const rows = this.tiles.filter((tile) => (isUp ? tile.y < y : tile.y > y));
    if (rows.length === 0) return name;
    const row = isUp ? rows[rows.length - 1].y : rows[0].y;
    const inRow = rows.filter((tile) => tile.y === row);
    return inRow.reduce((best, tile) => (Math.abs(tile.x - x) < Math.abs(best.x - x) ? tile : best)).name;
  }
}
