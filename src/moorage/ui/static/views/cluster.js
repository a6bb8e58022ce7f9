// The nodes, and how full they are.
import { html } from "../vendor/preact.js";
import { useStore } from "../store.js";
import { byName, percent } from "../format.js";

export function ClusterView({ store }) {
  useStore(store);
  const names = [...store.state.nodes.keys()].sort(byName);
  return html`<h1>${names.length} nodes, ${store.state.pods.size} pods</h1>
    <ul>
      ${names.map((name) => {
        const { used, total } = store.state.usage(name, "cpu");
        return html`<li key=${name}>${name} ${percent(used, total)}</li>`;
      })}
    </ul>`;
}
