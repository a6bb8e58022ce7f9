// One run at a moment: the map of its nodes, and what has changed last.
import { html } from "../vendor/preact.js";
import { NodeMap } from "../components/node_map.js";
import { moment, number } from "../format.js";
import { linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";
import { described } from "./cluster.js";
import { NodePanel } from "./node_panel.js";

const MOST_EVENTS = 200;
const own = texts.time;

// number: of the run, if it is compared with another; otherwise null.
export function RunAtMoment({ run, number: place, source, at, moves, groupBy, resource, node }) {
  const { state } = run.history;
  const pending = state.podsOn("").size;
  return html`<section class="run">
    ${place !== null && html`<h2>${own.run(place, run.title)}</h2>`}
    <p class="figures">${own.figures(number(state.nodes.size), number(state.pods.size - pending), number(pending))}</p>
    <div class="beside">
      <${NodeMap}
        state=${state}
        moves=${moves}
        groupBy=${groupBy}
        resource=${resource}
        matches=${null}
        selected=${node}
        onSelect=${(name) => setParams({ node: name })}
        label=${place === null ? texts.cluster.map : own.map(place)}
        describe=${(name) => described(state, name, resource)}
      />
      ${node && place === null && html`<${NodePanel} state=${state} name=${node} close=${() => setParams({ node: "" })} />`}
    </div>
    <${Events} history=${run.history} at=${at} source=${source} number=${place} />
  </section>`;
}

function Events({ history, at, source, number: place }) {
  const position = history.positionAt(at);
  const events = history.events[position];
  const time = moment(source.kind, history.times[position]);
  return html`<${place === null ? "h2" : "h3"} class="moment">
      ${position === 0 ? own.beginning(time) : own.events(time, number(events.length))}
    <//>
    <ul class="events" tabindex="0">
      ${events.slice(0, MOST_EVENTS).map((event) => html`<li>
        <${Subject} event=${event} source=${source} isLinked=${place !== 2} />${" "}
        <span class="kind ${event.kind}">${own.kinds[event.kind]}</span>${" "}
        ${event.message ?? event.on}
      </li>`)}
      ${events.length > MOST_EVENTS && html`<li>${own.more(number(events.length - MOST_EVENTS))}</li>`}
    </ul>`;
}

function Subject({ event, source, isLinked }) {
  if (event.node !== undefined) return event.node;
  const has = (feature) => source.features.includes(feature);
  if (!isLinked || !(has("attempts") || has("explain"))) return event.pod;
  return html`<a href=${linkTo("decision", { pod: event.pod })}>${event.pod}</a>`;
}
