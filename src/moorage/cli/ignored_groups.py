"""What is not taken into account of groups of pods, because feature gates are off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from moorage.api.pod import Pod
from moorage.api.pod_groups import PREEMPT_LOWER_PRIORITY, Group, GroupKey, group_of
from moorage.cli.version_options import GATES_FLAG, VERSION_FLAG
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

_BASE_GATE: Final = "GenericWorkload"


def not_honoured(
    pods: Iterable[Pod], group_of_key: Callable[[GroupKey], Group | None], version: KubernetesVersion
) -> Iterator[str]:
    """What feature gates that are off leave out of account of the groups of pods, one line for each."""
    keys = dict.fromkeys(key for pod in pods if (key := group_of(pod)) is not None)
    for key in keys:
        if not version.features.generic_workload:
            yield _line(f"PodGroup {key} is not honoured, its pods are decided one by one", _BASE_GATE)
        elif (group := group_of_key(key)) is not None:
            for field, gate in _gated_fields(group):
                if not version.gates.enabled[gate]:
                    yield _line(f"{field} of PodGroup {key} is not honoured", gate)


def _gated_fields(group: Group) -> Iterator[tuple[str, str]]:
    """The fields of a group that are set and have a feature gate of their own, each with that gate."""
    if group.topology_key:
        yield "schedulingConstraints", "TopologyAwareWorkloadScheduling"
    if group.preemption_policy != PREEMPT_LOWER_PRIORITY:
        yield "preemptionPolicy", "PodGroupPreemptionPolicy"
    if group.parent:
        yield "parentCompositePodGroupName", "CompositePodGroup"


def _line(what: str, gate: str) -> str:
    known = DEFAULT_VERSION.gates.known
    needed = ",".join(f"{each}=true" for each in (*known[gate].needs, gate))
    return f"{what}; {VERSION_FLAG} {DEFAULT_VERSION.minor} {GATES_FLAG} {needed} would honour it"
