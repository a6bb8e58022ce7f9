// A run over time: the state at any moment, what has changed then, and how many pods were pending.
import { ClusterState } from "./store.js";

const MOST_KEYFRAMES = 24;
const LEAST_KEYFRAME_CHANGES = 2000; // applied in a few milliseconds

export class RunHistory {
  // history: the document of that name.
  constructor({ base, changes }) {
    const total = changes.reduce((sum, batch) => sum + sizeOf(batch), 0);
    this.batches = []; // batches[0] led to the first state that is shown
    this.times = [];
    this.pending = []; // after each batch
    this.events = []; // of each batch: [{kind, pod or node, on}]
    this.state = new ClusterState(base); // the state that is shown
    this.position = -1; // the last batch that is in it
    this.size = 0;
    this.#end = new ClusterState(base);
    this.#spacing = Math.max(LEAST_KEYFRAME_CHANGES, total / MOST_KEYFRAMES);
    if (base.revision > 0 || changes.length === 0) this.append({ ...base, nodes: {}, pods: {} });
    for (const batch of changes) this.append(batch);
    this.seek(this.times[0]);
  }

  #end; // the state after all batches
  #keyframes = []; // [{position, frame}]
  #spacing;
  #sinceKeyframe = Infinity;

  get first() {
    return this.times[0];
  }

  get last() {
    return this.times[this.times.length - 1];
  }

  // Adds changes that came after all others.
  append(batch) {
    if (this.batches.length > 0 && batch.revision <= this.#end.revision) return;
    const events = this.batches.length > 0 ? eventsOf(this.#end, batch) : []; // before the first, all is unknown
    this.#end.apply(batch);
    this.batches.push(batch);
    this.times.push(batch.time);
    this.events.push(events);
    this.pending.push(this.#end.podsOn("").size);
    this.size += sizeOf(batch);
    this.#sinceKeyframe += sizeOf(batch);
    if (this.#sinceKeyframe < this.#spacing) return;
    this.#keyframes.push({ position: this.batches.length - 1, frame: this.#end.keyframe() });
    this.#sinceKeyframe = 0;
  }

  // The last batch up to a time; the first one if there is none.
  positionAt(time) {
    return Math.max(countUpTo(this.times, time, (each) => each) - 1, 0);
  }

  // The time of the last batch before a time, and of the first one after it; undefined if there is none.
  previous(time) {
    let position = this.positionAt(time);
    while (this.times[position] >= time) position -= 1;
    return this.times[position];
  }

  next(time) {
    return this.times[countUpTo(this.times, time, (each) => each)];
  }

  // Makes `state` that of a time; returns where pods have come or gone, if the step there was a forward one.
  seek(time) {
    const position = this.positionAt(time);
    const nearest = this.#keyframes[Math.max(countUpTo(this.#keyframes, position, (each) => each.position) - 1, 0)];
    const isBackward = position < this.position;
    if (isBackward || nearest.position > this.position) {
      this.state.restore(nearest.frame);
      this.position = nearest.position;
    }
    const moves = [];
    while (this.position < position) {
      this.position += 1;
      moves.push(...this.state.apply(this.batches[this.position]));
    }
    return isBackward ? [] : moves;
  }
}

function sizeOf(batch) {
  return Object.keys(batch.nodes).length + Object.keys(batch.pods).length;
}

// How many items of a sorted list are not beyond a limit.
function countUpTo(list, limit, value) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (value(list[middle]) <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

function eventsOf(state, batch) {
  const nodes = Object.entries(batch.nodes).map(([node, after]) => ({ kind: nodeKind(state.nodes.get(node), after), node }));
  const pods = Object.entries(batch.pods).map(([pod, after]) => podEvent(pod, state.pods.get(pod), after));
  return [...nodes, ...pods];
}

function nodeKind(before, after) {
  if (after === null) return "nodeRemoved";
  return before === undefined ? "nodeAdded" : "nodeChanged";
}

function podEvent(pod, before, after) {
  if (after === null) return { kind: before?.node ? "gone" : "deleted", pod, on: before?.node };
  if (after.node && after.node !== before?.node) return { kind: "placed", pod, on: after.node };
  if (after.message && after.message !== before?.message) return { kind: "failed", pod, message: after.message };
  return { kind: before === undefined ? "created" : "changed", pod, on: after.node };
}
