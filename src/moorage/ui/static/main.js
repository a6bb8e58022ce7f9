// The page's beginning: the stored theme, the store, and the shell with its views.
import { html, render } from "./vendor/preact.js";
import { App } from "./app.js";
import { ClusterStore } from "./store.js";
import { applyStoredTheme } from "./theme.js";

applyStoredTheme();
const store = new ClusterStore();
render(html`<${App} store=${store} />`, document.getElementById("page"));
store.start();
