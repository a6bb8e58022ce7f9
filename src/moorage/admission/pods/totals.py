"""The total requests or limits of a pod, from its containers and its pod-level resources.

Containers run concurrently, so theirs add up; init containers run before them one by one, so the largest
counts; restartable init containers keep running beside all that start after them. `api.requests` computes
requests like this for the scheduler's objects; this module is for plain manifests, and for limits too.
"""

from __future__ import annotations

from typing import Literal

from moorage.api.amounts import Amounts, add_to, amounts_of, raise_to
from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest
from moorage.api.names import is_pod_level_resource

Part = Literal["requests", "limits"]


def is_sidecar(container: Manifest) -> bool:
    """Whether an init container is restartable, so that it keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def has_pod_level_resources(pod: Manifest) -> bool:
    """Whether the pod has pod-level resources."""
    resources = pod.get("spec", {}).get("resources") or {}
    return any(
        is_pod_level_resource(name) for part in ("requests", "limits") for name in resources.get(part) or ()
    )


def container_resources(container: Manifest, part: Part) -> dict[str, str]:
    """A container's requests or limits, as written."""
    listed: dict[str, str] = (container.get("resources") or {}).get(part) or {}
    return listed


def containers_total(spec: Manifest, part: Part) -> Amounts:
    """The peak usage of all containers of a pod."""
    return _total(spec, part, {}, infeasible=False)


def spec_totals(pod: Manifest, part: Part) -> Amounts:
    """A pod's requests or limits by its spec alone, without overhead, as limit ranges use them."""
    spec = pod.get("spec", {})
    total = containers_total(spec, part)
    own = (spec.get("resources") or {}).get(part) or {}
    total.update(amounts_of({name: own[name] for name in ("cpu", "memory") if name in own}))
    return total


def charged_totals(pod: Manifest, part: Part) -> Amounts:
    """A pod's requests or limits with overhead and resources allocated by its node, as quotas charge them."""
    spec, status = pod.get("spec", {}), pod.get("status") or {}
    given = {
        each.get("name", ""): each
        for field in ("containerStatuses", "initContainerStatuses")
        for each in status.get(field) or ()
        if "resources" in each
    }
    total = _total(spec, part, given, infeasible=bool(given) and _resize_infeasible(status))
    own = (spec.get("resources") or {}).get(part) or {}
    total.update(amounts_of({name: text for name, text in own.items() if is_pod_level_resource(name)}))
    overhead = amounts_of(spec.get("overhead") or {})
    if part == "limits":
        # Overhead does not introduce a limit where there is none.
        overhead = {name: more for name, more in overhead.items() if name in total and total[name].billionths}
    add_to(total, overhead)
    return total


def _total(spec: Manifest, part: Part, given: dict[str, Manifest], *, infeasible: bool) -> Amounts:
    """The sum of the containers or the peak of the init containers, whichever is larger.

    given: statuses, by name, of the containers for which the node has reported resources.
    infeasible: whether the node has reported that the resize is infeasible.
    """
    total: Amounts = {}
    for container in spec.get("containers") or ():
        add_to(total, _effective(container, part, given, infeasible))
    running: Amounts = {}
    peak: Amounts = {}
    for container in spec.get("initContainers") or ():
        if is_sidecar(container):
            needed = _effective(container, part, given, infeasible)
            add_to(total, needed)
            add_to(running, needed)
            raise_to(peak, running)
        else:
            # A regular init container cannot be resized, so its status is irrelevant.
            alone = amounts_of(container_resources(container, part))
            add_to(alone, running)
            raise_to(peak, alone)
    raise_to(total, peak)
    return total


def _effective(container: Manifest, part: Part, given: dict[str, Manifest], infeasible: bool) -> Amounts:
    """The requested or the allocated resources of a container, whichever is more."""
    wanted = amounts_of(container_resources(container, part))
    status = given.get(container.get("name", "")) if given else None
    if status is None:
        return wanted
    largest = {} if infeasible else wanted
    raise_to(largest, amounts_of(status["resources"].get(part) or {}))
    if part == "requests":
        raise_to(largest, amounts_of(status.get("allocatedResources") or {}))
    return largest


def _resize_infeasible(status: Manifest) -> bool:
    pending = find_condition(status, "PodResizePending")
    return pending is not None and pending.get("reason") == "Infeasible"
