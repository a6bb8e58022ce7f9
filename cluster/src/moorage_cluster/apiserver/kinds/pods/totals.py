"""What a whole pod requests, or is limited to, by its containers and by itself.

Containers run side by side, so theirs add up; init containers run before them one by one, so the largest
counts; restartable init containers go on running beside all that come after them. `api.requests` computes
requests like this for the scheduler's objects; here are plain manifests, and limits, too.
"""

from __future__ import annotations

from typing import Literal

from moorage.api.amounts import Amounts, add_to, amounts_of, raise_to
from moorage.api.conditions import find_condition
from moorage.api.manifests import Manifest
from moorage.api.names import is_pod_level_resource

Part = Literal["requests", "limits"]


def is_sidecar(container: Manifest) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def asks_as_a_whole(pod: Manifest) -> bool:
    """Whether the pod itself, not only its containers, names resources."""
    resources = pod.get("spec", {}).get("resources") or {}
    return any(
        is_pod_level_resource(name) for part in ("requests", "limits") for name in resources.get(part) or ()
    )


def container_resources(container: Manifest, part: Part) -> dict[str, str]:
    """A container's requests or limits, as written."""
    listed: dict[str, str] = (container.get("resources") or {}).get(part) or {}
    return listed


def containers_total(spec: Manifest, part: Part) -> Amounts:
    """What all containers of a pod need at once at their peak."""
    return _total(spec, part, {}, infeasible=False)


def spec_totals(pod: Manifest, part: Part) -> Amounts:
    """A pod's requests or limits by its spec alone, without overhead: what limit ranges look at."""
    spec = pod.get("spec", {})
    total = containers_total(spec, part)
    own = (spec.get("resources") or {}).get(part) or {}
    total.update(amounts_of({name: own[name] for name in ("cpu", "memory") if name in own}))
    return total


def charged_totals(pod: Manifest, part: Part) -> Amounts:
    """A pod's requests or limits with overhead and what its node has given it: what quotas charge."""
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
        # Who is not limited does not become so by overhead.
        overhead = {name: more for name, more in overhead.items() if name in total and total[name].billionths}
    add_to(total, overhead)
    return total


def _total(spec: Manifest, part: Part, given: dict[str, Manifest], *, infeasible: bool) -> Amounts:
    """The containers' sum or the init containers' peak, whichever is larger.

    given: statuses, by name, of the containers whose node has said what they have.
    infeasible: whether the node has said that they will not get what they want now.
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
            # A plain init container cannot be resized: its status says nothing of interest.
            alone = amounts_of(container_resources(container, part))
            add_to(alone, running)
            raise_to(peak, alone)
    raise_to(total, peak)
    return total


def _effective(container: Manifest, part: Part, given: dict[str, Manifest], infeasible: bool) -> Amounts:
    """What a container wants or has, whichever is more."""
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
