// The state of nodes and pods in the browser: read once, then kept up to date by changes.
import { changesSince, get } from "./api.js";
import { PacedDrawing } from "./paced_drawing.js";
import { useEffect, useState } from "./vendor/preact.js";

const RETRY_MILLISECONDS = 2000;

export class ClusterState {
  constructor(document = { revision: 0, time: 0, nodes: {}, pods: {} }) {
    this.revision = document.revision;
    this.time = document.time;
    this.nodes = new Map(Object.entries(document.nodes));
    this.nodesVersion = 0; // grows when nodes come, go or change
    this.pods = new Map();
    this.podsOf = new Map(); // node name -> set of keys; pending pods under ""
    this.used = new Map(); // node name -> amounts that its pods request
    for (const [key, pod] of Object.entries(document.pods)) this.#put(key, pod);
  }

  // Applies changes; returns where pods have come or gone: [{node, kind}].
  apply(changes) {
    this.revision = changes.revision;
    this.time = changes.time;
    const nodes = Object.entries(changes.nodes);
    if (nodes.length > 0) this.nodesVersion += 1;
    for (const [name, node] of nodes) {
      if (node === null) this.nodes.delete(name);
      else this.nodes.set(name, node);
    }
    const moves = [];
    for (const [key, pod] of Object.entries(changes.pods)) {
      const before = this.pods.get(key)?.node || "";
      const after = pod?.node || "";
      this.#remove(key);
      if (pod !== null) this.#put(key, pod);
      if (before !== after && before) moves.push({ node: before, kind: "gone" });
      if (before !== after && after) moves.push({ node: after, kind: "arrived" });
    }
    return moves;
  }

  // All that `restore` needs to make this state again.
  keyframe() {
    const { revision, time, nodesVersion } = this;
    return { revision, time, nodesVersion, nodes: new Map(this.nodes), pods: new Map(this.pods) };
  }

  restore(keyframe) {
    Object.assign(this, keyframe, { nodes: new Map(keyframe.nodes), pods: new Map(), podsOf: new Map(), used: new Map() });
    for (const [key, pod] of keyframe.pods) this.#put(key, pod);
  }

  // Keys of the pods on a node; "" for those without one.
  podsOn(node) {
    return this.podsOf.get(node) || EMPTY;
  }

  // What pods on a node request of a resource, and what there is of it.
  usage(name, resource) {
    const used = resource === "pods" ? this.podsOn(name).size : this.used.get(name)?.[resource] || 0;
    return { used, total: this.nodes.get(name)?.allocatable?.[resource] || 0 };
  }

  #put(key, pod) {
    this.pods.set(key, pod);
    const node = pod.node || "";
    if (!this.podsOf.has(node)) this.podsOf.set(node, new Set());
    this.podsOf.get(node).add(key);
    this.#count(pod, 1);
  }

  #remove(key) {
    const pod = this.pods.get(key);
    if (pod === undefined) return;
    this.pods.delete(key);
    this.podsOf.get(pod.node || "").delete(key);
    this.#count(pod, -1);
  }

  #count(pod, sign) {
    if (!pod.node) return;
    if (!this.used.has(pod.node)) this.used.set(pod.node, {});
    const amounts = this.used.get(pod.node);
    for (const [resource, requested] of Object.entries(pod.requests || {})) {
      amounts[resource] = (amounts[resource] || 0) + sign * requested;
    }
  }
}

const EMPTY = new Set();

export class ClusterStore {
  constructor() {
    this.source = null;
    this.state = new ClusterState();
    this.connection = "waiting"; // waiting, live, lost, ended
    this.failure = null;
    this.moves = []; // where pods have come or gone since listeners were told before
    this.resumptions = 0; // how often the page was shown again: what followers then get is merged
    document.addEventListener("visibilitychange", () => this.#visibilityChanged());
  }

  #listeners = new Set();
  #followers = new Set();
  #drawing = new PacedDrawing(() => this.#tellNow());
  #untold = [];
  #stop = null;

  async start() {
    this.#unfollow();
    try {
      this.source = await get("source");
      this.state = new ClusterState(await get("cluster"));
      this.failure = null;
      this.connection = this.source.live ? this.connection : "ended";
    } catch (error) {
      this.failure = error;
      if (!error.isDenied) setTimeout(() => this.start(), RETRY_MILLISECONDS);
      this.#drawing.now();
      return;
    }
    this.#follow();
    this.#drawing.now();
  }

  // A page that is not visible reads nothing; what it has missed comes at once when it is shown again.
  #visibilityChanged() {
    if (document.hidden) {
      this.#unfollow();
    } else if (this.#stop === null && this.source !== null && this.failure === null) {
      this.resumptions += 1;
      this.#follow();
    }
  }

  #unfollow() {
    this.#stop?.();
    this.#stop = null;
  }

  #follow() {
    if (!this.source.live || document.hidden) return;
    this.#stop = changesSince(this.state.revision, {
      changed: (changes) => {
        this.#untold.push(...this.state.apply(changes));
        for (const follower of this.#followers) follower(changes);
        this.#drawing.soon();
      },
      reset: () => this.start(),
      opened: () => this.#connected("live"),
      lost: (isFinal) => {
        this.#connected("lost");
        // A refused stream is not tried again by the browser: the token may have expired.
        if (isFinal) setTimeout(() => this.start(), RETRY_MILLISECONDS);
      },
    });
  }

  #connected(connection) {
    if (this.connection === connection) return;
    this.connection = connection;
    this.#drawing.now();
  }

  has(feature) {
    return this.source !== null && this.source.features.includes(feature);
  }

  // Listeners are told in frames that are drawn, however many changes there were since the last one.
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  // Followers are given all changes as they come.
  follow(follower) {
    this.#followers.add(follower);
    return () => this.#followers.delete(follower);
  }

  #tellNow() {
    if (this.#untold.length > 0) this.moves = this.#untold;
    this.#untold = [];
    for (const listener of this.#listeners) listener();
  }
}

// Renders the component again when the store has changed.
export function useStore(store) {
  const [, set] = useState(0);
  useEffect(() => store.subscribe(() => set((count) => count + 1)), [store]);
  return store;
}
