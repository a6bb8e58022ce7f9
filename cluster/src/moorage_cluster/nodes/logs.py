"""What `kubectl logs` shows: simulated containers write nothing but that they started and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from moorage.api.manifests import Manifest, Now, moment, timestamp, utc_now
from moorage.apimachinery import errors
from moorage.http.transport import Stream
from moorage_cluster.nodes.log_options import LogOptions

ReadLog = Callable[[Manifest, Manifest, LogOptions], bytes | Stream | None]
"""The output of a container of a pod; None if it is simulated."""


class Logs:
    """The logs of all containers; `read_log` reads those that are not simulated."""

    def __init__(self, now: Now = utc_now, read_log: ReadLog | None = None) -> None:
        self._now = now
        self._read_log = read_log

    def __call__(self, pod: Manifest, query: Mapping[str, str]) -> bytes | Stream:
        """The log of a container of a pod; ApiError if it has not started."""
        options = LogOptions.of(query, self._now())
        container, status = _container(pod, query.get("container") or "")
        state = _state(pod["metadata"]["name"], container["name"], status, is_previous=options.is_previous)
        if self._read_log is not None:
            written = self._read_log(pod, container, options)
            if written is not None:
                return written
        lines = _lines(container["name"], status.get("image", ""), pod["metadata"]["name"], state)
        return _shown(lines, options)


def _container(pod: Manifest, name: str) -> tuple[Manifest, Manifest]:
    """A container and its status; the first one if none is named."""
    spec, status = pod["spec"], pod.get("status") or {}
    name = name or spec["containers"][0]["name"]
    listed = {each["name"]: each for each in (*(spec.get("initContainers") or ()), *spec["containers"])}
    if name not in listed:
        raise errors.bad_request(f"container {name} is not valid for pod {pod['metadata']['name']}")
    known = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return listed[name], next((each for each in known if each["name"] == name), {})


def _state(pod: str, name: str, status: Manifest, *, is_previous: bool) -> Manifest:
    """The state of a container that belongs to the requested log."""
    state, previous = _states(status)
    if is_previous:
        if not previous:
            raise errors.bad_request(f'previous terminated container "{name}" in pod "{pod}" not found')
        return previous
    if not state:
        waiting = (status.get("state") or {}).get("waiting") or {}
        raise errors.bad_request(
            f'container "{name}" in pod "{pod}" is waiting to start: '
            f"{waiting.get('reason') or 'ContainerCreating'}"
        )
    return state


def _states(status: Manifest) -> tuple[Manifest, Manifest]:
    """The current or last state of a container, and the one before."""
    state, last = status.get("state") or {}, (status.get("lastState") or {}).get("terminated") or {}
    return state.get("running") or state.get("terminated") or last, last


def _lines(name: str, image: str, pod: str, state: Manifest) -> list[tuple[str, str]]:
    since = state.get("startedAt")
    if not since:
        return []
    shortly = timestamp(moment(since) + timedelta(seconds=1))
    lines = [(since, f"container {name} of pod {pod} started"), (since, f"image {image}")]
    until = state.get("finishedAt")
    if until is None or until > shortly:
        lines.append((shortly, "ready to serve"))
    if until is not None:
        why = state.get("reason") or "Completed"
        lines.append((until, f"ended with exit code {state.get('exitCode', 0)} ({why})"))
    return lines


def _shown(lines: list[tuple[str, str]], options: LogOptions) -> bytes:
    chosen = options.latest([line for line in lines if options.includes(moment(line[0]))])
    texts = (
        f"{at} {text}\n" if options.has_timestamps else f"{at} simulated: {text}\n" for at, text in chosen
    )
    return options.limited("".join(texts).encode())
