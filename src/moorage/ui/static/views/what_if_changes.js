// Changes of the cluster and of weights: those that are made, and a form for one more.
import { html, useState } from "../vendor/preact.js";
import { byName } from "../format.js";
import { useStore } from "../store.js";
import { texts } from "../texts.js";

const own = texts.whatIf.change;
const EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

// The fields of each kind, in the order of the form; a default makes a field optional.
const KINDS = {
  drain: [{ name: "node", list: "nodes" }],
  cordon: [{ name: "node", list: "nodes" }],
  uncordon: [{ name: "node", list: "nodes" }],
  removeNode: [{ name: "node", list: "nodes" }],
  addNode: [{ name: "like", list: "nodes" }, { name: "count", type: "number", value: "1" }],
  addShape: [{ name: "cpu", value: "8" }, { name: "memory", value: "32Gi" }, { name: "count", type: "number", value: "1" }],
  taint: [
    { name: "node", list: "nodes" },
    { name: "key" },
    { name: "value", optional: true },
    { name: "effect", options: EFFECTS, value: EFFECTS[0] },
  ],
  untaint: [{ name: "node", list: "nodes" }, { name: "key" }],
  label: [{ name: "node", list: "nodes" }, { name: "key" }, { name: "value", optional: true }],
  weight: [{ name: "plugin", list: "plugins" }, { name: "weight", type: "number", value: "10" }],
};

export function Changes({ store, changes, setChanges, plugins }) {
  const { state } = useStore(store);
  const [kind, setKind] = useState("drain");
  const names = [...state.nodes.keys()].sort(byName);
  const submit = (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(event.target));
    setChanges([...changes, changeFrom(kind, values)]);
  };
  return html`
    ${changes.length === 0 && html`<p class="note">${own.none}</p>`}
    <ol class="changes">
      ${changes.map((each, place) => html`<li>
        <span>${described(each)}</span>
        <button
          type="button"
          aria-label=${own.removeOf(described(each))}
          onClick=${() => setChanges(changes.filter((_, other) => other !== place))}
        >${own.remove}</button>
      </li>`)}
    </ol>
    <form class="change-form" onSubmit=${submit}>
      <label>${own.kind}
        <select value=${kind} onChange=${(event) => setKind(event.target.value)}>
          ${Object.keys(KINDS).map((each) => html`<option value=${each}>${own.kinds[each]}</option>`)}
        </select>
      </label>
      ${KINDS[kind].map((field) => html`<${Field} key=${`${kind}/${field.name}`} field=${field} />`)}
      <button type="submit">${own.add}</button>
      <datalist id="what-if-nodes">${names.map((name) => html`<option value=${name}></option>`)}</datalist>
      <datalist id="what-if-plugins">${plugins.map((name) => html`<option value=${name}></option>`)}</datalist>
    </form>
  `;
}

function Field({ field }) {
  if (field.options) {
    return html`<label>${own.fields[field.name]}
      <select name=${field.name}>${field.options.map((each) => html`<option>${each}</option>`)}</select>
    </label>`;
  }
  return html`<label>${own.fields[field.name]}
    <input
      name=${field.name}
      type=${field.type ?? "text"}
      min=${field.type === "number" ? 1 : undefined}
      list=${field.list && `what-if-${field.list}`}
      required=${!field.optional}
      defaultValue=${field.value ?? ""}
      autocomplete="off"
    />
  </label>`;
}

function changeFrom(kind, values) {
  if (kind === "addShape") {
    const { cpu, memory, count } = values;
    return { kind: "addNode", shape: { allocatable: { cpu, memory } }, count: Number(count) };
  }
  if (kind === "label") return { kind, ...values, value: values.value === "" ? null : values.value };
  const numbers = Object.fromEntries(
    Object.entries(values).filter(([name]) => name === "count" || name === "weight").map(([name, value]) => [name, Number(value)]),
  );
  return { kind, ...values, ...numbers };
}

export function described(change) {
  if (change.kind === "suggestion") return change.text;
  const write = own.described[change.kind];
  return write === undefined ? JSON.stringify(change) : write(change);
}
