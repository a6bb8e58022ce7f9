"""The table of what differs between the versions of Kubernetes that moorage can emulate.

A version is one `KubernetesVersion`: its number, its feature gates, and a named field for each difference
that no gate controls. Plugins read it from `handle.version`; everything else is given it. To follow
Kubernetes to a new version, add an instance at the end, and a field for each new difference. `moorage config
defaults --emulated-version` prints the table.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, Final, NamedTuple

from moorage.emulation.feature_gates import FeatureGates, Features, set_gates

_COMPONENT: Final = "kube"


class VersionError(ValueError):
    """A version that cannot be emulated."""


def _difference(meaning: str) -> Any:
    """A field of the table; `meaning` says what is so if it is true."""
    return field(metadata={"meaning": meaning})


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesVersion:
    """What kube-scheduler does in one minor version, with the feature gates that were set."""

    number: str
    """The release whose behaviour it is, such as 1.36.4."""
    gates: FeatureGates
    """All feature gates, and which of them are on."""
    features: Features
    """The feature gates that change moorage's behaviour."""

    newer_device_rules: bool = _difference(
        "DynamicResources has the rules of v1.37: messages do not say that no claim was deallocated"
    )
    reported_preemption: bool = _difference("the message of a pod that preempts says so")
    counted_image_volumes: bool = _difference("ImageLocality counts image volumes among a pod's images")
    resolved_namespace_selectors: bool = _difference(
        "in terms of pod affinity, NotIn and DoesNotExist select only namespaces that exist"
    )
    node_name_first: bool = _difference("NodeName filters before NodeUnschedulable")
    target_pod_events: bool = _difference(
        "updates of a waiting pod itself are events of TargetPod, of other waiting pods of UnscheduledPod"
    )
    entity_metrics: bool = _difference("metrics count what is queued: pods outside of groups, and groups")
    pod_group_post_filter: bool = _difference("profiles have the extension point podGroupPostFilter")

    @property
    def minor(self) -> str:
        """Major and minor version, such as 1.36."""
        return self.number.rpartition(".")[0]

    @property
    def previous_minor(self) -> str:
        """The minor version before: the default minimum compatibility version."""
        major, minor = self.minor.split(".")
        return f"{major}.{int(minor) - 1}"

    def with_gates(self, given: Mapping[str, bool]) -> KubernetesVersion:
        """This version with some feature gates set; GateError if that is invalid."""
        gates = set_gates(self.minor, given)
        return replace(self, gates=gates, features=gates.features())


def _default_gates(minor: str) -> dict[str, Any]:
    gates = set_gates(minor, {})
    return {"gates": gates, "features": gates.features()}


V1_36: Final = KubernetesVersion(
    number="1.36.4",
    **_default_gates("1.36"),
    newer_device_rules=False,
    reported_preemption=False,
    counted_image_volumes=False,
    resolved_namespace_selectors=False,
    node_name_first=False,
    target_pod_events=False,
    entity_metrics=False,
    pod_group_post_filter=False,
)

V1_37: Final = KubernetesVersion(
    number="1.37.0",
    **_default_gates("1.37"),
    newer_device_rules=True,
    reported_preemption=True,
    counted_image_volumes=True,
    resolved_namespace_selectors=True,
    node_name_first=True,
    target_pod_events=True,
    entity_metrics=True,
    pod_group_post_filter=True,
)

KUBERNETES_VERSIONS: Final = {version.minor: version for version in (V1_36, V1_37)}
"""The versions that can be emulated, by minor version, the oldest first."""

DEFAULT_VERSION: Final = V1_37
"""The version that is emulated if nothing else is known, and the one that `moorage` claims to be."""


def parse_version(texts: Iterable[str]) -> KubernetesVersion | None:
    """The version that flags choose (`1.36`, `v1.36` or `kube=1.36`); None if there are none.

    VersionError if it is not one of the table.
    """
    chosen = None
    for text in texts:
        chosen = KUBERNETES_VERSIONS[version_number(text, KUBERNETES_VERSIONS)]
    return chosen


def version_number(text: str, possible: Collection[str]) -> str:
    """The minor version of a flag's value; VersionError if it is not a possible one."""
    component, _, number = text.rpartition("=")
    if component not in ("", _COMPONENT):
        raise VersionError(f"component not registered: {component}")
    if (minor := number.removeprefix("v")) not in possible:
        raise VersionError(f"{text}: only {' or '.join(possible)} is possible")
    return minor


def nearest_version(major: str, minor: str) -> KubernetesVersion:
    """The version to emulate for an API server with a version; the default one if that is no number.

    An API server that is older than the table gets its oldest version, a newer one its newest.
    """
    digits = "".join(character for character in minor if character.isdecimal())  # Providers write `36+`.
    if not (major.isdecimal() and digits):
        return DEFAULT_VERSION
    asked = (int(major), int(digits))
    older = [each for each in KUBERNETES_VERSIONS.values() if _numbers(each) <= asked]
    return older[-1] if older else V1_36


def _numbers(version: KubernetesVersion) -> tuple[int, int]:
    major, minor = version.minor.split(".")
    return int(major), int(minor)


class Difference(NamedTuple):
    """A line of the table."""

    name: str
    meaning: str
    """Empty for a feature gate."""
    values: Mapping[str, bool]
    """By minor version."""


def differences(version: KubernetesVersion) -> Iterator[Difference]:
    """What differs between `version`, with the gates that were set, and the others of the table."""
    columns = {**KUBERNETES_VERSIONS, version.minor: version}
    for each in fields(KubernetesVersion):
        if "meaning" in each.metadata:
            yield _line(each, each.metadata["meaning"], columns)
    gates = {minor: each.gates.enabled for minor, each in columns.items()}
    named = {name.lower(): name for each in columns.values() for name in each.gates.known}
    for each in fields(Features):
        name = named[each.name.replace("_", "")]
        values = {minor: enabled.get(name, False) for minor, enabled in gates.items()}
        if len(set(values.values())) > 1:
            yield Difference(name, "", values)


def _line(each: Field[Any], meaning: str, columns: Mapping[str, KubernetesVersion]) -> Difference:
    return Difference(each.name, meaning, {minor: getattr(v, each.name) for minor, v in columns.items()})
