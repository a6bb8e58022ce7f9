"""What `kubectl logs` shows: simulated containers write nothing but that they started and ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from moorage.api.manifests import Manifest, moment, timestamp
from moorage.apiserver import errors


def logs(pod: Manifest, query: Mapping[str, str]) -> bytes:
    """What a container of a pod has written, from the pod's status; ApiError if it has not begun."""
    spec, status = pod["spec"], pod.get("status") or {}
    name = query.get("container") or spec["containers"][0]["name"]
    known = {
        each["name"]: each
        for key in ("initContainerStatuses", "containerStatuses")
        for each in status.get(key) or ()
    }
    listed = [each["name"] for each in (*(spec.get("initContainers") or ()), *spec["containers"])]
    if name not in listed:
        raise errors.bad_request(f"container {name} is not valid for pod {pod['metadata']['name']}")
    state, previous = _states(known.get(name, {}))
    if query.get("previous") in ("true", "1"):
        if not previous:
            raise errors.bad_request(
                f'previous terminated container "{name}" in pod "{pod["metadata"]["name"]}" not found'
            )
        state = previous
    if not state:
        waiting = (known.get(name, {}).get("state") or {}).get("waiting") or {}
        raise errors.bad_request(
            f'container "{name}" in pod "{pod["metadata"]["name"]}" is waiting to start: '
            f"{waiting.get('reason') or 'ContainerCreating'}"
        )
    image = known[name].get("image", "")
    lines = _lines(name, image, pod["metadata"]["name"], state)
    return _shown(lines, query)


def _states(status: Manifest) -> tuple[Manifest, Manifest]:
    """What a container is or was doing, and what it did before that."""
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


def _shown(lines: list[tuple[str, str]], query: Mapping[str, str]) -> bytes:
    tail = query.get("tailLines", "")
    if tail.isdecimal():
        lines = lines[len(lines) - int(tail) :] if int(tail) < len(lines) else lines
    with_times = query.get("timestamps") in ("true", "1")
    return "".join(
        f"{at} {text}\n" if with_times else f"{at} simulated: {text}\n" for at, text in lines
    ).encode()
