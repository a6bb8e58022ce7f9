// The state of nodes and pods in the browser: read once, then kept up to date by changes.
import { changesSince, get } from "./api.js";
import { useEffect, useState } from "./vendor/preact.js";

const RETRY_MILLISECONDS = 2000;

export class ClusterState {
  constructor(document = { revision: 0, time: 0, nodes: {}, pods: {} }) {
    this.revision = document.revision;
    this.time = document.time;
    this.nodes = new Map(Object.entries(document.nodes));
    this.pods = new Map();
    this.podsOf = new Map(); // node name -> set of keys; pending pods under ""
    for (const [key, pod] of Object.entries(document.pods)) this.#put(key, pod);
  }

  apply(changes) {
    this.revision = changes.revision;
    this.time = changes.time;
    for (const [name, node] of Object.entries(changes.nodes)) {
      if (node === null) this.nodes.delete(name);
      else this.nodes.set(name, node);
    }
    for (const [key, pod] of Object.entries(changes.pods)) {
      this.#remove(key);
      if (pod !== null) this.#put(key, pod);
    }
  }

  // Keys of the pods on a node; "" for those without one.
  podsOn(node) {
    return this.podsOf.get(node) || EMPTY;
  }

  // What pods on a node request of a resource, and what there is of it.
  usage(name, resource) {
    let used = 0;
    if (resource === "pods") used = this.podsOn(name).size;
    else for (const key of this.podsOn(name)) used += this.pods.get(key).requests?.[resource] || 0;
    return { used, total: this.nodes.get(name)?.allocatable?.[resource] || 0 };
  }

  #put(key, pod) {
    this.pods.set(key, pod);
    const node = pod.node || "";
    if (!this.podsOf.has(node)) this.podsOf.set(node, new Set());
    this.podsOf.get(node).add(key);
  }

  #remove(key) {
    const pod = this.pods.get(key);
    if (pod === undefined) return;
    this.pods.delete(key);
    this.podsOf.get(pod.node || "")?.delete(key);
  }
}

const EMPTY = new Set();

export class ClusterStore {
  constructor() {
    this.source = null;
    this.state = new ClusterState();
    this.connection = "waiting"; // waiting, live, lost, ended
    this.failure = null;
    this.lastChanges = null;
    this.#listeners = new Set();
  }

  #listeners;
  #isTold = false;
  #stop = null;

  async start() {
    this.#stop?.();
    try {
      this.source = await get("source");
      this.state = new ClusterState(await get("cluster"));
      this.failure = null;
      this.connection = this.source.live ? this.connection : "ended";
    } catch (error) {
      this.failure = error;
      if (!error.isDenied) setTimeout(() => this.start(), RETRY_MILLISECONDS);
      this.#tell();
      return;
    }
    if (this.source.live) this.#follow();
    this.#tell();
  }

  #follow() {
    this.#stop = changesSince(this.state.revision, {
      changed: (changes) => {
        this.state.apply(changes);
        this.lastChanges = changes;
        this.#tell();
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
    this.#tell();
  }

  has(feature) {
    return this.source !== null && this.source.features.includes(feature);
  }

  // Listeners are told once a frame, however many changes there were.
  subscribe(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell() {
    if (this.#isTold) return;
    this.#isTold = true;
    requestAnimationFrame(() => {
      this.#isTold = false;
      for (const listener of this.#listeners) listener();
    });
  }
}

// Renders the component again when the store has changed.
export function useStore(store) {
  const [, set] = useState(0);
  useEffect(() => store.subscribe(() => set((count) => count + 1)), [store]);
  return store;
}
