// A slider over time, with steps from change to change, and playing.
import { html, useEffect, useRef } from "../vendor/preact.js";

const FACTORS = [1, 10, 60, 600, 3600];
const LONGEST_PLAY_SECONDS = 60; // with the speed that is chosen at first

// steps: {previous(at), next(at)}, the times of the changes before and after a moment, or undefined.
export function TimeSlider({ first, last, at, text, steps, playing, speed, label, onMove, onPlay, onSpeed }) {
  usePlaying(playing, { at, last, speed: speed ?? firstSpeed(last - first), onMove, onPlay });
  const go = (time) => time !== undefined && onMove(time);
  const pressed = (event) => {
    const step = { ArrowLeft: "previous", ArrowDown: "previous", ArrowRight: "next", ArrowUp: "next" }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    go(steps[step](at));
  };
  return html`<div class="time-slider">
    <div class="tools" role="group" aria-label=${label.group}>
      <button type="button" onClick=${() => go(steps.previous(at))} aria-label=${label.previous}>‹</button>
      <button type="button" onClick=${() => onPlay(!playing)} aria-pressed=${playing}>${playing ? label.pause : label.play}</button>
      <button type="button" onClick=${() => go(steps.next(at))} aria-label=${label.next}>›</button>
      <label>${label.speed}
        <select value=${speed ?? firstSpeed(last - first)} onChange=${(event) => onSpeed(Number(event.target.value))}>
          ${FACTORS.map((factor) => html`<option value=${factor}>×${factor}</option>`)}
        </select>
      </label>
      <output>${text}</output>
    </div>
    <input
      type="range"
      min=${first}
      max=${last}
      step="any"
      value=${at}
      aria-label=${label.slider}
      aria-valuetext=${text}
      onInput=${(event) => onMove(Number(event.target.value))}
      onKeyDown=${pressed}
    />
  </div>`;
}

function firstSpeed(span) {
  return FACTORS.find((factor) => span / factor <= LONGEST_PLAY_SECONDS) ?? FACTORS[FACTORS.length - 1];
}

// While it plays, the moment moves with every frame.
function usePlaying(playing, now) {
  const latest = useRef(now);
  latest.current = now;
  useEffect(() => {
    if (!playing) return undefined;
    let before = performance.now();
    let request = 0;
    const advance = (moment) => {
      const { at, last, speed, onMove, onPlay } = latest.current;
      onMove(Math.min(at + (Math.max(moment - before, 0) / 1000) * speed, last));
      before = moment;
      if (at >= last) onPlay(false);
      else request = requestAnimationFrame(advance);
    };
    request = requestAnimationFrame(advance);
    return () => cancelAnimationFrame(request);
  }, [playing]);
}
