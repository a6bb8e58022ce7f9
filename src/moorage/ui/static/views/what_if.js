// What if: a pod, a configuration and a cluster as they might be, beside what there is. Nothing is written.
import { html, useEffect, useState } from "../vendor/preact.js";
import { PodPicker } from "./pod_picker.js";
import { Changes } from "./what_if_changes.js";
import { TextEditor } from "./what_if_text.js";
import { Result } from "./what_if_result.js";
import { get, podPath, post } from "../api.js";
import { goTo, linkTo, setParams } from "../router.js";
import { texts } from "../texts.js";

const DELAY_MILLISECONDS = 350; // after the last change, before it is evaluated
const own = texts.whatIf;

export function WhatIfView({ store, params }) {
  if (params.pod || params.new) return html`<${Workbench} key=${params.pod ?? ""} store=${store} params=${params} />`;
  return html`
    <p><button type="button" onClick=${() => goTo("what-if", { new: "1" })}>${own.startNew}</button></p>
    <${PodPicker} store=${store} params=${params} view="what-if" />
  `;
}

function Workbench({ store, params }) {
  const pod = useText(`pod/${params.pod ?? ""}`, params.pod ? `pods/${podPath(params.pod)}/manifest` : null, own.newPod);
  const config = useText("configuration", "what-if/configuration", "");
  const changes = changesFrom(params.changes);
  const setChanges = (next) => setParams({ changes: next.length > 0 ? JSON.stringify(next) : "" });
  const { answer, problems, failure, isBusy } = useAnswer(params, pod, config);
  const tab = params.tab ?? (changes.length > 0 ? "changes" : "pod");
  const ofText = (name) => problems.filter((each) => each.of === name);
  const marks = { pod: markOf(pod, ofText("pod")), configuration: markOf(config, ofText("config")), changes: changes.length };
  return html`
    <div class="title">
      <h1>${params.pod ? own.title(params.pod) : own.titleNew}</h1>
      <span>
        ${params.pod && store.has("explain") && html`<a href=${linkTo("decision", { pod: params.pod })}>${own.decision}</a> · `}
        <a href="#/what-if">${own.another}</a>
      </span>
    </div>
    <p class="note">${own.nothingChanges}</p>
    <div class="what-if">
      <section class="editor" aria-label=${own.editor}>
        <div class="tools" role="group" aria-label=${own.editor}>
          ${Object.entries(own.tabs).map(([key, title]) => html`<button
            type="button"
            aria-pressed=${key === tab}
            onClick=${() => setParams({ tab: key })}
          >${title}${Boolean(marks[key]) && html` <span class="badge">${marks[key]}</span>`}</button>`)}
        </div>
        ${tab === "pod" && html`<${TextEditor} label=${own.tabs.pod} text=${pod} problems=${ofText("pod")} />`}
        ${tab === "configuration" &&
        html`<${TextEditor} label=${own.tabs.configuration} text=${config} problems=${ofText("config")} />`}
        ${tab === "changes" &&
        html`<${Changes} store=${store} changes=${changes} setChanges=${setChanges} plugins=${pluginsOf(answer)} />`}
      </section>
      <section class="result" aria-label=${own.result} aria-busy=${isBusy}>
        <p class="note" role="status">${statusText(isBusy, problems.length, answer)}</p>
        ${failure !== null && html`<p class="problem" role="alert">${failure}</p>`}
        ${answer !== null && html`<${Result}
          answer=${answer}
          params=${params}
          addChange=${(change) => setChanges([...changes, change])}
          changes=${changes}
        />`}
      </section>
    </div>
  `;
}

function markOf(text, problems) {
  if (problems.length > 0) return own.problems(problems.length);
  return text.edited === null ? "" : own.isEdited;
}

function statusText(isBusy, problems, answer) {
  if (isBusy) return own.evaluating;
  if (problems === 0) return "";
  return answer === null ? own.invalidFirst(problems) : own.invalid(problems);
}

function pluginsOf(answer) {
  return (answer?.differences.scores ?? []).map((each) => each.plugin);
}

function changesFrom(text) {
  try {
    const read = JSON.parse(text || "[]");
    return Array.isArray(read) ? read : [];
  } catch {
    return [];
  }
}

// A text that is edited: what the server has, and what it was made into in this tab of the browser.
function useText(name, path, initial) {
  const key = `what-if/${name}`;
  const [original, setOriginal] = useState(path === null ? initial : null);
  const [edited, setEdited] = useState(() => sessionStorage.getItem(key));
  const [failure, setFailure] = useState(null);
  useEffect(() => {
    if (path === null) return undefined;
    const ending = new AbortController();
    get(path, {}, ending.signal)
      .then(({ text }) => setOriginal(text))
      .catch((error) => ending.signal.aborted || setFailure(error.message));
    return () => ending.abort();
  }, [path]);
  const set = (text) => {
    const isChanged = text !== null && text !== original;
    if (isChanged) sessionStorage.setItem(key, text);
    else sessionStorage.removeItem(key);
    setEdited(isChanged ? text : null);
  };
  return { shown: edited ?? original, edited, failure, isNew: path === null, set, reset: () => set(null) };
}

// Validates and evaluates a while after the last change.
function useAnswer(params, pod, config) {
  const [known, setKnown] = useState({ answer: null, problems: [], failure: null, isBusy: true });
  const podText = pod.isNew ? pod.shown : pod.edited;
  const changes = params.changes ?? "";
  useEffect(() => {
    const ending = new AbortController();
    setKnown((before) => ({ ...before, isBusy: true }));
    const ask = async () => {
      const given = { pod: podText, config: config.edited };
      const edits = podText !== null || config.edited !== null;
      const { problems } = edits ? await post("what-if/validate", given, ending.signal) : { problems: [] };
      if (problems.length > 0) return setKnown((before) => ({ ...before, problems, failure: null, isBusy: false }));
      const body = { of: params.pod ?? "", ...given, changes: changesFrom(changes) };
      const { problems: more, ...answer } = await post("what-if", body, ending.signal);
      return setKnown({ answer: more.length > 0 ? null : answer, problems: more, failure: null, isBusy: false });
    };
    const failed = (error) =>
      ending.signal.aborted || setKnown({ answer: null, problems: [], failure: error.message, isBusy: false });
    const timer = setTimeout(() => ask().catch(failed), DELAY_MILLISECONDS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [params.pod, podText, config.edited, changes]);
  return known;
}
