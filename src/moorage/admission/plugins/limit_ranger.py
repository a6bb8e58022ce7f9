"""LimitRanger: a namespace's limit ranges set missing requests and limits of containers, and bound them.

Two steps: defaults are set before other plugins see the pod, bounds are checked after all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import CLAIMS, PODS, Call, Plugin, refusal
from moorage.admission.pods.totals import Part, container_resources, spec_totals
from moorage.api.manifests import Manifest, child, metadata
from moorage.api.quantity import parse_quantity

LIMIT_RANGES: Final = "/limitranges"
_ANNOTATION: Final = "kubernetes.io/limit-ranger"


def set_defaults(attributes: Attributes, reader: Reader) -> None:
    """Give the containers of a pod the namespace's default requests and limits."""
    if _going(attributes):
        return
    for limit_range in reader.all(LIMIT_RANGES, attributes.namespace):
        limits, requests = _container_defaults(limit_range)
        if limits or requests:
            _default_pod(attributes.obj, limits, requests)


def check_pod(attributes: Attributes, reader: Reader) -> None:
    """Reject a pod with too much, too little, or too high a ratio of limit to request."""
    _check(attributes, reader, _pod_problems)


def check_claim(attributes: Attributes, reader: Reader) -> None:
    """Reject a claim for too much or too little storage."""
    _check(attributes, reader, _claim_problems)


def _going(attributes: Attributes) -> bool:
    return attributes.old is not None and "deletionTimestamp" in attributes.old["metadata"]


def _container_defaults(limit_range: Manifest) -> tuple[dict[str, str], dict[str, str]]:
    """The merged default limits and default requests of all items of type Container."""
    limits: dict[str, str] = {}
    requests: dict[str, str] = {}
    for item in limit_range["spec"].get("limits") or ():
        if item.get("type") == "Container":
            limits.update(item.get("default") or {})
            requests.update(item.get("defaultRequest") or {})
    return limits, requests


def _default_pod(pod: Manifest, limits: dict[str, str], requests: dict[str, str]) -> None:
    spec = pod["spec"]
    said: list[str] = []
    for field, what in (("containers", "container"), ("initContainers", "init container")):
        for container in spec.get(field) or ():
            set_limits = _fill(container, "limits", limits)
            set_requests = _fill(container, "requests", requests)
            whose = f"for {what} {container.get('name', '')}"
            if set_requests:
                said.append(f"{', '.join(set_requests)} request {whose}")
            if set_limits:
                said.append(f"{', '.join(set_limits)} limit {whose}")
    if said:
        text = f"LimitRanger plugin set: {'; '.join(said)}"
        child(metadata(pod), "annotations")[_ANNOTATION] = text


def _fill(container: Manifest, part: Part, defaults: dict[str, str]) -> list[str]:
    """Add missing resources; returns their names, sorted."""
    given = container_resources(container, part)
    missing = sorted(defaults.keys() - given.keys())
    if missing:
        listed = child(child(container, "resources"), part)
        listed.update((name, defaults[name]) for name in missing)
    return missing


class _Usage(NamedTuple):
    """The requests and limits of a container or pod, as quantities."""

    requests: Mapping[str, str]
    limits: Mapping[str, str]


_Check = Callable[[str, str, str, _Usage], str]
"""Arguments: a limit range's type, a resource, the bound, the usage. Returns a problem, or empty."""


def _check(
    attributes: Attributes, reader: Reader, problems: Callable[[Manifest, Manifest], list[str]]
) -> None:
    if _going(attributes):
        return
    for limit_range in reader.all(LIMIT_RANGES, attributes.namespace):
        said = list(dict.fromkeys(problems(limit_range, attributes.obj)))
        if said:
            raise refusal(attributes, said[0] if len(said) == 1 else f"[{', '.join(said)}]")


def _pod_problems(limit_range: Manifest, pod: Manifest) -> list[str]:
    problems: list[str] = []
    spec = pod["spec"]
    for item in limit_range["spec"].get("limits") or ():
        if item.get("type") == "Container":
            for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
                usage = _Usage(
                    container_resources(container, "requests"), container_resources(container, "limits")
                )
                problems += _item_problems(item, _POD_CHECKS, usage)
        elif item.get("type") == "Pod":
            usage = _Usage(_texts(pod, "requests"), _texts(pod, "limits"))
            problems += _item_problems(item, _POD_CHECKS, usage)
    return problems


def _texts(pod: Manifest, part: Part) -> dict[str, str]:
    return {name: str(amount) for name, amount in spec_totals(pod, part).items()}


def _claim_problems(limit_range: Manifest, claim: Manifest) -> list[str]:
    requests = claim.get("spec", {}).get("resources", {}).get("requests") or {}
    problems: list[str] = []
    for item in limit_range["spec"].get("limits") or ():
        if item.get("type") == "PersistentVolumeClaim":
            problems += _item_problems(item, _CLAIM_CHECKS, _Usage(requests, {}))
    return problems


def _item_problems(item: Manifest, checks: Mapping[str, _Check], usage: _Usage) -> list[str]:
    said = (
        check(item["type"], name, bound, usage)
        for field, check in checks.items()
        for name, bound in (item.get(field) or {}).items()
    )
    return [problem for problem in said if problem]


def _milli(text: str) -> int:
    return parse_quantity(text).milli_value


def _too_little(kind: str, name: str, bound: str, usage: _Usage) -> str:
    least = f"minimum {name} usage per {kind} is {bound}"
    request, limit = usage.requests.get(name), usage.limits.get(name)
    if request is None:
        return f"{least}.  No request is specified"
    if _milli(request) < _milli(bound):
        return f"{least}, but request is {request}"
    if limit is not None and _milli(limit) < _milli(bound):
        return f"{least}, but limit is {limit}"
    return ""


def _too_much(kind: str, name: str, bound: str, usage: _Usage) -> str:
    most = f"maximum {name} usage per {kind} is {bound}"
    request, limit = usage.requests.get(name), usage.limits.get(name)
    if limit is None:
        return f"{most}.  No limit is specified"
    if _milli(limit) > _milli(bound):
        return f"{most}, but limit is {limit}"
    if request is not None and _milli(request) > _milli(bound):
        return f"{most}, but request is {request}"
    return ""


def _too_much_requested(kind: str, name: str, bound: str, usage: _Usage) -> str:
    most = f"maximum {name} usage per {kind} is {bound}"
    request = usage.requests.get(name)
    if request is None:
        return f"{most}.  No request is specified"
    if _milli(request) > _milli(bound):
        return f"{most}, but request is {request}"
    return ""


def _too_wide(kind: str, name: str, bound: str, usage: _Usage) -> str:
    widest = f"{name} max limit to request ratio per {kind} is {bound}"
    request, limit = _milli(usage.requests.get(name, "0")), _milli(usage.limits.get(name, "0"))
    if request == 0:
        return f"{widest}, but no request is specified or request is 0"
    if limit == 0:
        return f"{widest}, but no limit is specified or limit is 0"
    ratio = limit / request
    if ratio * 1000 > _milli(bound):
        return f"{widest}, but provided ratio is {ratio:f}"
    return ""


_POD_CHECKS: Final[Mapping[str, _Check]] = {
    "min": _too_little,
    "max": _too_much,
    "maxLimitRequestRatio": _too_wide,
}
_CLAIM_CHECKS: Final[Mapping[str, _Check]] = {"min": _too_little, "max": _too_much_requested}

_POD_CALLS: Final = (Call("CREATE", PODS), Call("UPDATE", PODS, "resize"))
DEFAULTS: Final = Plugin("LimitRanger", set_defaults, _POD_CALLS)
BOUNDS: Final = (
    Plugin("LimitRanger", check_pod, _POD_CALLS),
    Plugin("LimitRanger", check_claim, (Call("CREATE", CLAIMS), Call("UPDATE", CLAIMS))),
)
