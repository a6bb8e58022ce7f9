// Draws what changes by itself so seldom that it takes a small share of a core: others need the cores, too.
const MOST_SHARE = 0.02; // of the time that goes into frames
const LONGEST_PAUSE_MILLISECONDS = 1000;

export class PacedDrawing {
  #draw;
  #frame = null;
  #timer = null;
  #notBefore = 0;

  // draw: called in a frame.
  constructor(draw) {
    this.#draw = draw;
  }

  // At once if nothing was drawn lately; otherwise once the last frame is a small share of the time since then.
  soon() {
    if (this.#frame !== null || this.#timer !== null) return;
    const wait = this.#notBefore - performance.now();
    if (wait > 0) this.#timer = setTimeout(() => this.now(), wait);
    else this.now();
  }

  now() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#frame ??= requestAnimationFrame(() => this.#drawn());
  }

  #drawn() {
    this.#frame = null;
    const begin = performance.now();
    this.#draw();
    afterFrame(() => {
      const now = performance.now();
      this.#notBefore = now + Math.min((now - begin) / MOST_SHARE, LONGEST_PAUSE_MILLISECONDS);
    });
  }
}

// Called when the frame of this moment has been laid out and painted.
function afterFrame(work) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    work();
  };
  port2.postMessage(null);
}
