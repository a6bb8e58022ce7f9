"""`/metrics/resources`: requests and limits of each pod, as the scheduler counts them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from moorage.api.names import is_pod_level_resource
from moorage.api.pod import Pod
from moorage.api.quantity import NANO
from moorage.api.resource_requests import pod_requests

_LABELS: Final = ("namespace", "pod", "node", "scheduler", "priority", "resource", "unit")
_UNITS: Final = {"cpu": "cores", "memory": "bytes", "storage": "bytes", "ephemeral-storage": "bytes"}
_TERMINAL: Final = ("Succeeded", "Failed")


def pod_resources_text(pods: Iterable[Pod]) -> bytes:
    """Requests and limits of unfinished pods, in Prometheus' text format."""
    registry = CollectorRegistry()
    registry.register(_Resources(pods))
    return generate_latest(registry)


class _Resources(Collector):
    def __init__(self, pods: Iterable[Pod]) -> None:
        self._pods = pods

    def describe(self) -> Iterable[Family]:
        """Nothing: pods are read in `collect` only."""
        return ()

    def collect(self) -> Iterator[Family]:
        requests = GaugeMetricFamily(
            "kube_pod_resource_request", "[STABLE] What a pod asks for, by resource.", labels=_LABELS
        )
        limits = GaugeMetricFamily(
            "kube_pod_resource_limit", "[STABLE] What a pod may use at most, by resource.", labels=_LABELS
        )
        for pod in self._pods:
            if pod.spec.node_name and pod.status.phase in _TERMINAL:
                continue
            _add(requests, pod, pod_requests(pod))
            _add(limits, pod, pod_limits(pod))
        yield limits
        yield requests


def pod_limits(pod: Pod) -> dict[str, int]:
    """The limits of a pod in billionths, by resource; overhead is added where there is a limit."""
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        _sum(total, container.resources.limits)
    running: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in pod.spec.init_containers:
        limits = container.resources.limits
        if container.restartable:
            _sum(total, limits)
            _sum(running, limits)
            alone = dict(running)
        else:
            alone = dict(running)
            _sum(alone, limits)
        _raise(peak, alone)
    _raise(total, peak)
    if pod.spec.resources is not None:
        total |= {
            name: int(amount)
            for name, amount in pod.spec.resources.limits.items()
            if is_pod_level_resource(name)
        }
    for name, amount in pod.spec.overhead.items():
        if total.get(name):
            total[name] += amount
    return total


def _sum(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: dict[str, int], floor: Mapping[str, int]) -> None:
    for name, amount in floor.items():
        total[name] = max(total.get(name, 0), amount)


def _add(family: GaugeMetricFamily, pod: Pod, amounts: Mapping[str, int]) -> None:
    spec = pod.spec
    priority = "" if spec.priority is None else str(spec.priority)
    for name, billionths in sorted(amounts.items()):
        if billionths:
            labels = (
                pod.namespace,
                pod.name,
                spec.node_name,
                spec.scheduler_name,
                priority,
                name,
                _unit(name),
            )
            family.add_metric(labels, billionths / NANO)


def _unit(name: str) -> str:
    if name in _UNITS:
        return _UNITS[name]
    if name.startswith("hugepages-"):
        return "bytes"
    return "integer" if name.startswith("attachable-volumes-") else ""
