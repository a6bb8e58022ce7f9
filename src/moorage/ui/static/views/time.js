// The history of a source: any moment of it, what changed then, and two runs side by side.
import { html, useEffect, useMemo, useRef, useState } from "../vendor/preact.js";
import { PendingPlot } from "../components/pending_plot.js";
import { TimeSlider } from "../components/time_slider.js";
import { get } from "../api.js";
import { moment } from "../format.js";
import { setParams } from "../router.js";
import { RunHistory } from "../run_history.js";
import { useStore } from "../store.js";
import { texts } from "../texts.js";
import { Choice, shapeOf, ZONE } from "./cluster.js";
import { DifferentNodes } from "./different_nodes.js";
import { RunAtMoment } from "./run_at_moment.js";

const MOST_LIVE_CHANGES = 400_000; // then the history is read again: the server has forgotten the first ones
const ADDRESS_MILLISECONDS = 250; // the address follows once the moment rests
const own = texts.time;

export function TimeView({ store, params }) {
  const { runs, failure } = useRuns(useStore(store));
  if (failure !== null) return html`<p class="problem" role="alert">${failure}</p>`;
  if (runs === null) return html`<p class="notice" role="status">${own.loading}</p>`;
  return html`<${Moments} store=${store} runs=${runs} params=${params} />`;
}

function Moments({ store, runs, params }) {
  const { kind, live } = store.source;
  const [chosen, choose] = useMoment(params.at);
  const [playing, play] = useState(false);
  const first = Math.min(...runs.map(({ history }) => history.first));
  const last = Math.max(...runs.map(({ history }) => history.last));
  const at = Math.min(Math.max(chosen ?? (live ? last : first), first), last);
  const size = runs.reduce((sum, { history }) => sum + history.size, 0);
  const moves = useMemo(() => runs.map(({ history }) => history.seek(at)), [runs, at, size]);
  const shape = useMemo(() => shapeOf(runs[0].history.state), [runs, runs[0].history.state.nodesVersion]);
  const group = params.group ?? (shape.labels.includes(ZONE) ? ZONE : "");
  const resource = params.fill ?? "cpu";
  const steps = {
    previous: (time) => furthest(runs, (history) => history.previous(time), Math.max),
    next: (time) => furthest(runs, (history) => history.next(time), Math.min),
  };
  return html`
    <div class="title">
      <h1>${own.title}</h1>
      ${live && html`<button type="button" aria-pressed=${chosen === null} onClick=${() => choose(null)}>${own.live}</button>`}
    </div>
    <${TimeSlider}
      first=${first}
      last=${last}
      at=${at}
      text=${moment(kind, at)}
      steps=${steps}
      playing=${playing}
      speed=${Number(params.speed) || undefined}
      label=${own.slider}
      onMove=${choose}
      onPlay=${(plays) => {
        if (plays && at >= last) choose(first);
        play(plays);
      }}
      onSpeed=${(speed) => setParams({ speed })}
    />
    <${PendingPlot}
      runs=${runs.map(({ title, history }) => ({ title, times: history.times, pending: history.pending }))}
      first=${first}
      last=${last}
      at=${at}
      axisText=${(time) => axisText(kind, time)}
      label=${own.pending}
      onMove=${choose}
    />
    <div class="plot-title">
      <span>${own.pendingAxis}:</span>
      ${runs.map(({ title }, place) => html`<span class="key ${place > 0 ? "second" : ""}">${title}</span>`)}
    </div>
    <form class="tools" onSubmit=${(event) => event.preventDefault()}>
      <${Choice} label=${texts.cluster.fill} name="fill" value=${resource} options=${shape.resources.map((each) => [each, each])} />
      <${Choice}
        label=${texts.cluster.group}
        name="group"
        value=${group}
        options=${[["", texts.cluster.ungrouped], ...shape.labels.map((each) => [each, each])]}
      />
    </form>
    <div class="runs">
      ${runs.map((run, place) => html`<${RunAtMoment}
        key=${place}
        run=${run}
        number=${runs.length > 1 ? place + 1 : null}
        source=${store.source}
        at=${at}
        moves=${moves[place]}
        groupBy=${group}
        resource=${resource}
        node=${params.node}
      />`)}
    </div>
    ${runs.length > 1 && html`<${DifferentNodes} runs=${runs} at=${at} params=${params} />`}
  `;
}

function furthest(runs, timeOf, choose) {
  const times = runs.map(({ history }) => timeOf(history)).filter((time) => time !== undefined);
  return times.length > 0 ? choose(...times) : undefined;
}

function axisText(kind, time) {
  if (kind === "recording") return Number.isInteger(time) ? String(time) : "";
  return kind === "simulation" ? moment(kind, time) : new Date(time * 1000).toLocaleTimeString("en-GB");
}

// The moment that the address has, or null; the address follows what is chosen.
function useMoment(text) {
  const given = text !== undefined && Number.isFinite(Number(text)) ? Number(text) : null;
  const [chosen, choose] = useState(given);
  const written = useRef(given);
  useEffect(() => {
    if (given === written.current) return;
    written.current = given;
    choose(given);
  }, [given]);
  useEffect(() => {
    if (chosen === written.current) return undefined;
    const timer = setTimeout(() => {
      written.current = chosen;
      setParams({ at: chosen });
    }, ADDRESS_MILLISECONDS);
    return () => clearTimeout(timer);
  }, [chosen]);
  return [chosen, choose];
}

// The run of the source, and the one that it is compared with; changes of a cluster are added as they come.
function useRuns(store) {
  const [known, setKnown] = useState({ runs: null, failure: null });
  const [round, setRound] = useState(0);
  useEffect(() => {
    const ending = new AbortController();
    const early = [];
    let history = null;
    const stop = store.follow((batch) => {
      if (history === null) early.push(batch);
      else history.append(batch);
      if (history?.size > MOST_LIVE_CHANGES) setRound(round + 1);
    });
    read(store, ending.signal)
      .then((runs) => {
        history = runs[0].history;
        for (const batch of early) history.append(batch);
        setKnown({ runs, failure: null });
      })
      .catch((error) => ending.signal.aborted || setKnown({ runs: null, failure: error.message }));
    return () => {
      ending.abort();
      stop();
    };
  }, [store.state, store.resumptions, round]);
  return known;
}

async function read(store, signal) {
  const runs = [{ title: store.source.title, history: new RunHistory(await get("history", {}, signal)) }];
  if (!store.has("compare")) return runs;
  const [{ title }, history] = await Promise.all(["source", "history"].map((path) => get(`runs/2/${path}`, {}, signal)));
  return [...runs, { title, history: new RunHistory(history) }];
}
