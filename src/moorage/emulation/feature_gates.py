"""Feature gates of kube-scheduler: their defaults in a version, the values that were set, and the result.

Most gates concern other components, or behaviour that moorage has as Kubernetes has it by default. Those that
change moorage's behaviour are in `Features`; `ComponentFlagz` and `ComponentStatusz` enable two pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Final, NamedTuple

_ALL_ALPHA, _ALL_BETA = "AllAlpha", "AllBeta"
_SPECIAL: Final = {_ALL_ALPHA: "ALPHA", _ALL_BETA: "BETA"}
"""Gates that set all others of a stage that are not set themselves."""
_SERVED: Final = ("ComponentFlagz", "ComponentStatusz")
_LOGGING: Final = ("LoggingAlphaOptions", "LoggingBetaOptions")
_MERGED: Final = {"GangScheduling": "GenericWorkload"}
"""Gates that are part of another one in versions that do not have them."""
_OF_GROUPS: Final = frozenset(
    (
        "generic_workload",
        "gang_scheduling",
        "topology_aware_workload_scheduling",
        "pod_group_preemption_policy",
        "composite_pod_group",
    )
)
"""The features of groups of pods."""
_OLDER_GROUPS: Final = "GangScheduling"
"""A gate of versions whose groups have another API, which moorage does not follow: no effect there."""
_COMPONENT: Final = "kube"
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


class GateError(ValueError):
    """Unknown feature gates, or invalid values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """The feature gates that change moorage's behaviour; each field is the gate's name in snake case.

    A gate that a version does not have is off.
    """

    storage_capacity_scoring: bool
    """VolumeBinding may score nodes by free storage, so its `shape` is allowed and has a default."""

    volume_limit_scaling: bool
    """NodeVolumeLimits rejects nodes without a CSI driver that asks for it."""

    dra_scheduler_filter_timeout: bool
    """DynamicResources may end the search for devices on a node after `filterTimeout`."""

    dra_device_binding_conditions: bool
    """DynamicResources may wait for devices to become ready, for `bindingTimeout` at most."""

    dra_resource_claim_device_status: bool
    """Drivers report on devices in a claim's status; binding conditions need it."""

    dra_workload_resource_claims: bool
    """The pods of a group may share the claims of their group."""

    node_declared_features: bool
    """The plugin NodeDeclaredFeatures is a default plugin."""

    generic_workload: bool
    """Pods of a PodGroup are scheduled together."""

    gang_scheduling: bool
    """The plugin GangScheduling is a default plugin."""

    topology_aware_workload_scheduling: bool
    """The plugins TopologyPlacementGenerator and PodGroupPodsCount are default plugins."""

    pod_group_preemption_policy: bool
    """A PodGroup's `preemptionPolicy` counts, not that of its pods."""

    composite_pod_group: bool
    """Groups may consist of groups."""

    @property
    def device_binding(self) -> bool:
        """Whether DynamicResources waits for binding conditions: that needs two gates."""
        return self.dra_device_binding_conditions and self.dra_resource_claim_device_status


class Gate(NamedTuple):
    """A feature gate of a version."""

    name: str
    stage: str
    """ALPHA, BETA, GA or DEPRECATED."""
    is_on: bool
    """The default."""
    is_locked: bool
    needs: tuple[str, ...]

    @property
    def label(self) -> str:
        """The stage's label in metrics."""
        return "" if self.stage == "GA" else self.stage


@cache
def known_gates(minor: str) -> Mapping[str, Gate]:
    """All gates of a minor version, by name."""
    return {gate.name: gate for gate in _read(f"feature_gates_{minor}.txt")}


def _read(file: str) -> Iterator[Gate]:
    for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            head, _, needs = line.partition(" needs ")
            name, stage, default, *locked = head.split()
            yield Gate(name, stage, default == "on", bool(locked), tuple(needs.split()))


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The gates of a version, the values that were set, and the value of each gate."""

    known: Mapping[str, Gate]
    given: Mapping[str, bool]
    enabled: Mapping[str, bool]

    def may_set(self, name: str, is_on: bool) -> bool:
        """Whether the version has a gate, and lets it be set to this value."""
        gate = self.known.get(name)
        return gate is not None and (is_on is gate.is_on or not gate.is_locked)

    def features(self) -> Features:
        """The gates that change behaviour."""
        values = {name.lower(): is_on for name, is_on in self.enabled.items()}
        values |= {
            name.lower(): self.enabled[other] for name, other in _MERGED.items() if name not in self.known
        }
        heeded = self._heeded()
        return Features(
            **{
                field.name: field.name in heeded and values.get(field.name.replace("_", ""), False)
                for field in fields(Features)
            }
        )

    def _heeded(self) -> set[str]:
        """The features that gates of this version can switch on."""
        names = {field.name for field in fields(Features)}
        return names - _OF_GROUPS if _OLDER_GROUPS in self.known else names

    def without_effect(self) -> list[str]:
        """Gates that were set to other than their default and have no effect here."""
        heeded = {name.replace("_", "") for name in self._heeded()}
        heeded |= {name.lower() for name in (*_SERVED, *_LOGGING)}
        return [
            name
            for name, is_on in self.given.items()
            if name.lower() not in heeded and is_on is not self.known[name].is_on
        ]


def parse_gates(texts: Iterable[str]) -> dict[str, bool]:
    """The values in flags (`A=true,B=false`, possibly `kube:A=true`); GateError if one is no such text."""
    given: dict[str, bool] = {}
    prefixes: set[str] = set()
    for text in texts:
        for pair in filter(None, text.split(",")):
            component, colon, bare = pair.rpartition(":")
            prefixes.add(colon and component)
            given |= _pair(bare)
    if unknown := sorted(prefixes - {"", _COMPONENT}):
        raise GateError(f"component not registered: {unknown[0]}")
    if len(prefixes) > 1:
        raise GateError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        )
    return given


def _pair(text: str) -> dict[str, bool]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise GateError(f"missing bool value for {name}")
    if value not in (*_TRUE, *_FALSE):
        raise GateError(f"invalid value of {name}={value}: neither true nor false")
    return {name: value in _TRUE}


def set_gates(minor: str, given: Mapping[str, bool]) -> FeatureGates:
    """All gates of a minor version, with some of them set; GateError if that is invalid."""
    known = known_gates(minor)
    for name, is_on in given.items():
        _check_setting(known.get(name), name, is_on)
    enabled = {name: gate.is_on for name, gate in known.items()}
    for special, stage in _SPECIAL.items():
        if special in given:
            enabled |= {name: given[special] for name, gate in known.items() if gate.stage == stage}
    enabled |= {name: is_on for name, is_on in given.items() if name not in _SPECIAL}
    enabled |= {special: given.get(special, False) for special in _SPECIAL}
    for name, gate in known.items():
        if gate.needs and enabled[name] and (missing := [each for each in gate.needs if not enabled[each]]):
            listed = " ".join(missing)
            raise GateError(f"{name} is enabled, but depends on features that are disabled: [{listed}]")
    return FeatureGates(known, dict(given), enabled)


def _check_setting(gate: Gate | None, name: str, is_on: bool) -> None:
    if gate is None:
        raise GateError(f"unrecognized feature gate: {name}")
    if gate.is_locked and is_on is not gate.is_on:
        values = f"{is_on}, feature is locked to {gate.is_on}".lower()
        raise GateError(f"cannot set feature gate {name} to {values}")
