"""What a pod will use, by its requests: for pods that no measurement contains yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from moorage import Pod, PodInfo, resource_amounts
from moorage.optional_plugins.load_aware.arguments import LoadAwareArgs
from moorage.optional_plugins.load_aware.readings import MAX_AMOUNT

Estimate = tuple[int, int]
"""The expected use of cpu, in milli-CPU, and of memory, in bytes."""

_NOTHING: Final[Mapping[str, int]] = {}


class Estimator:
    """Estimates what pods use: a share of their requests, or of their limits where these are larger.

    A container without a request counts with the default of kube-scheduler's scores: 100m and 200Mi.
    """

    def __init__(self, args: LoadAwareArgs) -> None:
        self._cpu_percent = args.estimates.cpu
        self._memory_percent = args.estimates.memory
        self._counts_limits = args.limits_of_burstable

    def of(self, info: PodInfo) -> Estimate:
        """What a pod on a node will use."""
        load = info.load
        cpu, memory = load.scoring_cpu_milli, load.scoring_memory
        if self._counts_limits:
            limits = _limits(info.pod)
            cpu, memory = max(cpu, limits.get("cpu", 0)), max(memory, limits.get("memory", 0))
        cpu, memory = cpu * self._cpu_percent // 100, memory * self._memory_percent // 100
        if cpu > MAX_AMOUNT or memory > MAX_AMOUNT:
            return min(cpu, MAX_AMOUNT), min(memory, MAX_AMOUNT)
        return cpu, memory

    def of_pod(self, pod: Pod) -> Estimate:
        """What a pod will use that is on no node yet."""
        return self.of(PodInfo(pod))


def _limits(pod: Pod) -> Mapping[str, int]:
    """The limits of a pod: its own, or the sum of its containers', of resources that all of them limit."""
    spec = pod.spec
    if spec.resources is not None and spec.resources.limits:
        return resource_amounts(spec.resources.limits)
    running = [*spec.containers, *(each for each in spec.init_containers if each.restartable)]
    return _sums(resource_amounts(each.resources.limits) for each in running)


def _sums(amounts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    """The sums of amounts, of the names that all of them have."""
    first, *others = amounts
    return {
        name: amount + sum(each[name] for each in others)
        for name, amount in (first or _NOTHING).items()
        if all(name in each for each in others)
    }
