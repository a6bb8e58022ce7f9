"""Sums over a pod's containers: what pod-level resources default to, and which QoS class a pod is in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from moorage.api.manifests import Manifest, child
from moorage.api.quantity import NANO, parse_quantity

Which = Literal["requests", "limits"]
Amounts = dict[str, int]
"""Billionths by resource."""

HUGE_PAGES: Final = "hugepages-"
_COUNTS_FOR_QOS: Final = ("cpu", "memory")
_BINARY: Final = ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki")
_DECIMAL: Final = (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3), ("", 0), ("m", -3))


def is_pod_level_resource(name: str) -> bool:
    """Whether a pod as a whole may ask for it."""
    return name in _COUNTS_FOR_QOS or name.startswith(HUGE_PAGES)


def is_sidecar(container: Manifest) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def aggregate(spec: Manifest, which: Which) -> dict[str, str]:
    """What all containers need at once at their peak: init containers run one by one, sidecars stay."""
    total: Amounts = {}
    sidecars: Amounts = {}
    peak: Amounts = {}
    binary: set[str] = set()
    for container in spec.get("containers") or ():
        _add(total, _amounts(container, which, binary))
    for container in spec.get("initContainers") or ():
        amounts = _amounts(container, which, binary)
        if is_sidecar(container):
            _add(total, amounts)
            _add(sidecars, amounts)
            during = sidecars
        else:
            during = dict(sidecars)
            _add(during, amounts)
        _raise_to(peak, during)
    _raise_to(total, peak)
    return {name: canonical(amount, binary=name in binary) for name, amount in total.items()}


def _amounts(container: Manifest, which: Which, binary: set[str]) -> Amounts:
    amounts: Amounts = {}
    for name, text in (container.get("resources", {}).get(which) or {}).items():
        if text.endswith("i"):
            binary.add(name)
        amounts[name] = parse_quantity(text)
    return amounts


def _add(total: Amounts, more: Amounts) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise_to(total: Amounts, least: Amounts) -> None:
    for name, amount in least.items():
        if amount > total.get(name, -1):
            total[name] = amount


def canonical(billionths: int, *, binary: bool) -> str:
    """An amount as Kubernetes writes it: the largest unit that leaves no fraction."""
    if not billionths:
        return "0"
    whole, fraction = divmod(billionths, NANO)
    if binary and not fraction:
        for power, suffix in zip(range(6, 0, -1), _BINARY, strict=True):
            if whole % (1 << 10 * power) == 0:
                return f"{whole >> 10 * power}{suffix}"
        return str(whole)
    for suffix, exponent in _DECIMAL:
        unit: int = 10 ** (9 + exponent)
        if billionths % unit == 0:
            return f"{billionths // unit}{suffix}"
    return f"{billionths // 1000}u" if billionths % 1000 == 0 else f"{billionths}n"


def default_pod_level_resources(
    spec: Manifest, container_requests: Mapping[str, str], container_limits: Mapping[str, str]
) -> None:
    """Complete a pod's own resources from those of its containers, if it has some at all."""
    resources = spec["resources"]
    if not resources.get("limits") and not resources.get("requests"):
        return
    limits = dict(resources.get("limits") or {})
    asked = resources.get("requests") or {}
    for name, amount in container_limits.items():
        if name.startswith(HUGE_PAGES) and name not in asked and name not in limits:
            limits[name] = amount
    if not limits:
        return
    resources["limits"] = limits
    requests = dict(asked)
    for name, amount in container_requests.items():
        if name in _COUNTS_FOR_QOS:
            requests.setdefault(name, amount)
    for name, amount in limits.items():
        if is_pod_level_resource(name):
            requests.setdefault(name, amount)
    if requests:
        child(spec, "resources")["requests"] = requests


def qos_class(pod: Manifest) -> str:
    """How safe a pod is when its node runs short: Guaranteed, Burstable or BestEffort."""
    spec = pod.get("spec") or {}
    requests: Amounts = {}
    limits: Amounts = {}
    guaranteed = True
    whole = spec.get("resources")
    if whole is not None:
        _gather(requests, whole.get("requests"))
        if whole.get("limits"):
            guaranteed = _gather(limits, whole["limits"]) == len(_COUNTS_FOR_QOS)
    else:
        for key in ("containers", "initContainers"):
            for container in spec.get(key) or ():
                resources = container.get("resources") or {}
                _gather(requests, resources.get("requests"))
                if _gather(limits, resources.get("limits")) < len(_COUNTS_FOR_QOS):
                    guaranteed = False
    if not requests and not limits:
        return "BestEffort"
    return "Guaranteed" if guaranteed and requests == limits else "Burstable"


def _gather(total: Amounts, amounts: Mapping[str, str] | None) -> int:
    """Add what counts for QoS and is more than nothing; how many resources that were."""
    count = 0
    if amounts:
        for name in _COUNTS_FOR_QOS:
            if (text := amounts.get(name)) and (amount := parse_quantity(text)) > 0:
                total[name] = total.get(name, 0) + amount
                count += 1
    return count
