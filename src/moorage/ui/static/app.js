// The frame of all views: navigation, theme, connection, keyboard, and what is shown when nothing can be.
import { html, useEffect, useState } from "./vendor/preact.js";
import { Dialog } from "./components/dialog.js";
import { goTo, linkTo, useRoute } from "./router.js";
import { useStore } from "./store.js";
import { texts } from "./texts.js";
import { currentTheme, toggleTheme } from "./theme.js";
import { views } from "./views/index.js";

function offered(store) {
  const isThere = ({ feature }) => feature === undefined || [feature].flat().some((each) => store.has(each));
  return views.filter(isThere);
}

export function App({ store }) {
  useStore(store);
  const route = useRoute();
  const [theme, setTheme] = useState(currentTheme());
  const [showsKeys, setShowsKeys] = useState(false);
  const change = () => {
    toggleTheme();
    setTheme(currentTheme());
  };
  useEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const view = offered(store)[Number(event.key) - 1];
      if (view !== undefined) goTo(view.name);
      else if (event.key === "t") change();
      else if (event.key === "?") setShowsKeys(true);
      else if (event.key === "/") {
        event.preventDefault();
        document.querySelector("[data-search]")?.focus();
      }
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, [store]);
  useEffect(() => {
    const view = views.find((each) => each.name === route.view);
    document.title = [view?.title, store.source?.title, texts.product].filter(Boolean).join(" · ");
  });
  return html`
    <a class="skip" href="#content" onClick=${focusContent}>${texts.skip}</a>
    <header>
      <a class="brand" href="#/">${texts.product}</a>
      <nav aria-label=${texts.views}>
        ${offered(store).map(
          (view) => html`<a
            href=${linkTo(view.name)}
            aria-current=${view.name === route.view ? "page" : undefined}
            >${view.title}</a
          >`,
        )}
      </nav>
      <span class="source" title=${store.source?.title}>${store.source?.title}</span>
      <${Connection} state=${store.connection} />
      <button type="button" onClick=${() => setShowsKeys(true)} aria-label=${texts.shortcuts.show}>?</button>
      <button type="button" onClick=${change} aria-label=${texts.theme.toggle}>${texts.theme[theme]}</button>
    </header>
    <main id="content" tabindex="-1"><${Content} store=${store} route=${route} /></main>
    ${showsKeys && html`<${Shortcuts} close=${() => setShowsKeys(false)} />`}
  `;
}

function isTyping(element) {
  return element.closest?.("input, textarea, select, [contenteditable]") != null;
}

function focusContent(event) {
  event.preventDefault();
  document.getElementById("content").focus();
}

function Connection({ state }) {
  return html`<span class="connection ${state}" role="status">${texts.connection[state]}</span>`;
}

function Content({ store, route }) {
  if (store.failure !== null) return html`<${Failure} store=${store} />`;
  if (store.source === null) return html`<p class="notice">${texts.loading}</p>`;
  const view = offered(store).find((each) => each.name === route.view);
  if (view === undefined) return html`<p class="notice">${texts.missingViews[route.view] ?? texts.unknownView}</p>`;
  return html`
    ${store.source.problems.map((problem) => html`<p class="problem" role="alert">${problem}</p>`)}
    <${view.component} store=${store} params=${route.params} />
  `;
}

function Failure({ store }) {
  if (store.failure.isDenied) {
    return html`<section class="notice" role="alert"><h1>${texts.denied.title}</h1><p>${texts.denied.text}</p></section>`;
  }
  return html`<section class="notice" role="alert">
    <h1>${texts.failed.title}</h1>
    <p>${store.failure.message}</p>
    <button type="button" onClick=${() => store.start()}>${texts.failed.retry}</button>
  </section>`;
}

function Shortcuts({ close }) {
  return html`<${Dialog} title=${texts.shortcuts.title} close=${close}>
    <dl class="keys">
      ${texts.shortcuts.rows.map(([key, meaning]) => html`<div><dt><kbd>${key}</kbd></dt><dd>${meaning}</dd></div>`)}
    </dl>
  <//>`;
}
