"""The QoS class of a pod: how well the kubelet keeps its resources for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final

from moorage.api.pod import Pod

COUNTED_FOR_QOS: Final = ("cpu", "memory")
"""The resources that the QoS class depends on."""


class QOSClass(StrEnum):
    """The QoS classes, the most protected first."""

    GUARANTEED = "Guaranteed"
    BURSTABLE = "Burstable"
    BEST_EFFORT = "BestEffort"


Amounts = Mapping[str, int]
"""Amounts by resource; those that are missing and those that are zero mean the same."""


def qos_class(pod: Pod) -> QOSClass:
    """A pod's QoS class, as its status has it: worked out from its requests and limits."""
    spec = pod.spec
    if spec.resources is not None:
        return qos_of([(spec.resources.requests, spec.resources.limits)])
    containers = (*spec.containers, *spec.init_containers)
    return qos_of([(each.resources.requests, each.resources.limits) for each in containers])


def qos_of(resources: Iterable[tuple[Amounts, Amounts]]) -> QOSClass:
    """The QoS class by requests and limits: those of every container, or those of the whole pod."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    all_are_limited = True
    for asked, limited in resources:
        _add(requests, asked)
        all_are_limited &= _add(limits, limited) == len(COUNTED_FOR_QOS)
    if not requests and not limits:
        return QOSClass.BEST_EFFORT
    return QOSClass.GUARANTEED if all_are_limited and requests == limits else QOSClass.BURSTABLE


def _add(total: dict[str, int], amounts: Amounts) -> int:
    """Add the positive amounts of resources that count for QoS; returns the number of these resources."""
    count = 0
    for name in COUNTED_FOR_QOS:
        amount = amounts.get(name, 0)
        if amount > 0:
            total[name] = total.get(name, 0) + amount
            count += 1
    return count
