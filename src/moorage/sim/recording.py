"""Recordings of a scheduler's decisions: a cluster, and the decision for each pod.

The format is JSON: `objects` (the cluster before the first step), `steps` (a `pod` with the decision to
`expect`, or lists of objects to `create`, `replace` and `delete`), optionally `config` (the profiles)
and `reference` (the scheduler, with its version). With `everyAttempt`, each attempt is a step of its own, and
what follows from one, such as the eviction of victims, is in later steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.base import Object, Struct
from moorage.api.coscheduling import API_VERSION as COSCHEDULING
from moorage.api.coscheduling import CoschedulingPodGroup
from moorage.api.decode import InputError, convert, decode_object
from moorage.api.files import load_json
from moorage.api.pod import Pod
from moorage.config.load import default_config, parse_profiles
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion, nearest_version
from moorage.plugins import default_registry
from moorage.sim.group_recording import GroupExpectation, GroupStep

_VERSION: Final = re.compile(r"\bv(\d+)\.(\d+)")


class Expectation(Struct):
    """The recorded decision for a pod."""

    node: str | None = None
    scores: dict[str, dict[str, int]] | None = None
    message: str | None = None
    victims: tuple[str, ...] | None = None
    nominated: str | None = None
    sampled: bool = False
    """Whether the nodes with scores are a sample of the feasible ones, because enough were found."""

    @property
    def seen_waiting(self) -> bool:
        """Whether the first attempt of a pod that preempted others was observed.

        If its victims end at once, the pod may be bound before it is observed: then neither the message nor
        the nomination of the first attempt is recorded, only the result.
        """
        return not self.victims or self.nominated is not None

    @property
    def nomination(self) -> str | None:
        """The node that the pod was nominated to."""
        return self.nominated if self.seen_waiting else self.node


@dataclass(frozen=True, slots=True)
class PodStep:
    """A scheduling attempt of a pod."""

    pod: Pod
    expect: Expectation


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """A change of the cluster."""

    put: tuple[Object, ...] = ()
    delete: tuple[Object, ...] = ()


@dataclass(frozen=True, slots=True)
class Recording:
    """A cluster and the decisions made in it, in order."""

    name: str
    family: str
    config: SchedulerConfiguration
    version: KubernetesVersion
    """The version to emulate."""
    preempts: bool
    """Whether victims and nominations are recorded."""
    objects: tuple[Object, ...]
    steps: tuple[PodStep | ChangeStep | GroupStep, ...] = field(repr=False)
    every_attempt: bool = False
    """Whether each attempt is a step of its own."""

    def pods(self) -> Iterator[PodStep]:
        """The decisions."""
        return (step for step in self.steps if isinstance(step, PodStep))


def load_recording(
    path: Path, version: KubernetesVersion | None = None, gates: Mapping[str, bool] | None = None
) -> Recording:
    """A recording from a file, or InputError."""
    return parse_recording(load_json(path), str(path), version, gates)


def parse_recording(
    document: Any,
    where: str,
    version: KubernetesVersion | None = None,
    gates: Mapping[str, bool] | None = None,
) -> Recording:
    """A recording from plain data, or InputError.

    version: the version to emulate; by default that of the recorded scheduler.
    gates: feature gates to set.
    """
    if not isinstance(document, Mapping) or "steps" not in document:
        raise InputError(where, "not a recording: there are no steps")
    name = str(document.get("name") or Path(where).stem)
    is_grouped = bool(document.get("groups"))
    version = version or _recorded_version(document.get("reference"))
    recorded = convert(document.get("featureGates") or {}, dict[str, bool], f"{where}: featureGates")
    if is_grouped or gates or recorded:
        recorded |= _gates_of_groups(document.get("gates")) if is_grouped else {}
        version = version.with_gates({**recorded, **(gates or {})})
    config = _config(document.get("config"), version, f"{where}: config")
    _load_plugins(config)
    return Recording(
        name,
        str(document.get("family") or name),
        config,
        version,
        bool(document.get("preempts")),
        _objects(document.get("objects"), f"{where}: objects"),
        tuple(
            _step(s, f"{where}: steps[{i}]", is_grouped=is_grouped)
            for i, s in enumerate(_list(document["steps"], f"{where}: steps"))
        ),
        bool(document.get("everyAttempt")),
    )


def _config(config: Any, version: KubernetesVersion, where: str) -> SchedulerConfiguration:
    if not isinstance(config, Mapping) or config.get("profiles") is None:
        return default_config(version)
    parsed = parse_profiles(_list(config["profiles"], f"{where}.profiles"), version=version)
    percentage = convert(config.get("percentageOfNodesToScore") or 0, int, where)
    return replace(parsed, percentage_of_nodes_to_score=percentage)


def _load_plugins(config: SchedulerConfiguration) -> None:
    """Load the plugins of moorage that a configuration enables: they declare kinds of recorded objects."""
    registry = default_registry()
    for profile in config.profiles:
        enabled = {ref.name for _, plugins in profile.plugins.items() for ref in plugins.enabled}
        for name in enabled & registry.keys():
            registry[name]


def _gates_of_groups(recorded: object) -> dict[str, bool]:
    """The gates of a recording of groups: the usual ones, one more, or only one."""
    gates = ["GenericWorkload"]
    if recorded != "GenericWorkload":
        gates += ["TopologyAwareWorkloadScheduling", "PodGroupPreemptionPolicy"]
    if recorded == "CompositePodGroup":
        gates.append("CompositePodGroup")
    return dict.fromkeys(gates, True)


def _recorded_version(reference: Any) -> KubernetesVersion:
    """The version of a scheduler such as `kube-scheduler v1.36.4`."""
    found = _VERSION.search(reference) if isinstance(reference, str) else None
    return nearest_version(*found.groups()) if found else DEFAULT_VERSION


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(where, "expected a list")
    return value


def _objects(value: Any, where: str) -> tuple[Object, ...]:
    decoded = (_object(item, f"{where}[{i}]") for i, item in enumerate(_list(value, where)))
    return tuple(item for item in decoded if item is not None)


def _object(manifest: Any, where: str) -> Object | None:
    """An object; groups of scheduler-plugins are read into the form that scheduling reads."""
    named = (manifest.get("apiVersion"), manifest.get("kind")) if isinstance(manifest, Mapping) else None
    if named == (COSCHEDULING, "PodGroup"):
        return convert(manifest, CoschedulingPodGroup, where).as_pod_group()
    return decode_object(manifest, where)


def _step(step: Any, where: str, *, is_grouped: bool) -> PodStep | ChangeStep | GroupStep:
    if not isinstance(step, Mapping):
        raise InputError(where, "expected an object")
    if "group" in step or ("pod" not in step and is_grouped and "expect" in step):
        return _group_step(step, where)
    if "pod" not in step:
        return ChangeStep(
            _objects(step.get("create"), f"{where}.create")
            + _objects(step.get("replace"), f"{where}.replace"),
            _objects(step.get("delete"), f"{where}.delete"),
        )
    pod = decode_object(step["pod"], f"{where}.pod")
    if not isinstance(pod, Pod):
        raise InputError(f"{where}.pod", "not a Pod")
    if "expect" not in step:
        raise InputError(where, "a pod without what to expect")
    return PodStep(pod, convert(step["expect"], Expectation, f"{where}.expect"))


def _group_step(step: Mapping[str, Any], where: str) -> GroupStep:
    group = step.get("group") or {}
    pods = _objects(group.get("pods"), f"{where}.group.pods")
    return GroupStep(
        _objects(group.get("create"), f"{where}.group.create")
        + _objects(step.get("create"), f"{where}.create")
        + _objects(step.get("replace"), f"{where}.replace"),
        _objects(step.get("delete"), f"{where}.delete"),
        tuple(pod for pod in pods if isinstance(pod, Pod)),
        convert(step["expect"], GroupExpectation, f"{where}.expect"),
    )
