// The address of every state of the page: #/view?key=value. What a view shows is in its parameters.
import { useEffect, useState } from "./vendor/preact.js";

const DEFAULT_VIEW = "cluster";

export function currentRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { view: path || DEFAULT_VIEW, params: Object.fromEntries(new URLSearchParams(query)) };
}

export function linkTo(view, params = {}) {
  const given = Object.entries(params).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const query = new URLSearchParams(given).toString();
  return query ? `#/${view}?${query}` : `#/${view}`;
}

export function goTo(view, params = {}) {
  location.hash = linkTo(view, params);
}

// Changes parameters of the present view without a step in the browser's history.
export function setParams(changes) {
  const { view, params } = currentRoute();
  history.replaceState(null, "", linkTo(view, { ...params, ...changes }));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute() {
  const [route, setRoute] = useState(currentRoute);
  useEffect(() => {
    const update = () => setRoute(currentRoute());
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return route;
}
