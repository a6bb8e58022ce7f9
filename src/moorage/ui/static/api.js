// Requests to the server that the page came from; there is no other.
const BASE = "/api/v1/";

export class RequestFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }

  get isDenied() {
    return this.status === 401;
  }
}

async function answered(path, options) {
  let response;
  try {
    response = await fetch(BASE + path, { credentials: "same-origin", ...options });
  } catch {
    throw new RequestFailed(0, "the server does not answer");
  }
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  throw new RequestFailed(response.status, problem.message || response.statusText);
}

export function get(path, query = {}, signal = undefined) {
  const given = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== ""));
  const text = given.toString();
  return answered(text ? `${path}?${text}` : path, { signal });
}

export function post(path, body, signal = undefined) {
  const headers = { "Content-Type": "application/json" };
  return answered(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export function podPath(key) {
  return key.split("/").map(encodeURIComponent).join("/");
}

// The changes after a revision. The browser connects again by itself, and says what it has seen.
export function changesSince(revision, { changed, reset, opened, lost }) {
  const events = new EventSource(`${BASE}changes?since=${revision}`);
  events.addEventListener("changes", (event) => changed(JSON.parse(event.data)));
  events.addEventListener("reset", () => {
    events.close();
    reset();
  });
  events.addEventListener("open", opened);
  events.addEventListener("error", () => lost(events.readyState === EventSource.CLOSED));
  return () => events.close();
}
