// Reading a document again and again while its view is visible.
const LONGEST_SHARE = 0.1; // of the time that goes into reading: a document that takes long is read less often

// Calls an async function, which does not fail, until the returned function is called; with an infinite pause once.
export function poll(read, pauseMilliseconds) {
  let timer = null;
  let isEnded = false;
  const next = async () => {
    timer = null;
    const begin = performance.now();
    await read();
    const pause = Math.max(pauseMilliseconds, (performance.now() - begin) / LONGEST_SHARE);
    if (!isEnded && pause < Infinity) timer = setTimeout(whileVisible, pause);
  };
  const whileVisible = () => {
    if (!document.hidden) next();
    else document.addEventListener("visibilitychange", whileVisible, { once: true });
  };
  whileVisible();
  return () => {
    isEnded = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", whileVisible);
  };
}
