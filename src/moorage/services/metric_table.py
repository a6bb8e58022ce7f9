"""Every metric of kube-scheduler, and moorage's own, read from `metrics.txt`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Final, cast, get_args

from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.services.metric_values import Kind, MetricSpec


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Upper bounds of buckets that grow by a factor."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor  # Multiplied step by step: the last digits are those of Go programs.
    return tuple(bounds)


def _buckets(text: str) -> tuple[float, ...]:
    words = text.split()
    if words and words[0] == "exp":
        return exponential(float(words[1]), float(words[2]), int(words[3]))
    return tuple(map(float, words))


def _read() -> dict[str, dict[str, MetricSpec]]:
    """The metrics of each kind of section of the file, by name."""
    sections: dict[str, dict[str, MetricSpec]] = {}
    section, gate = "", ""
    for line in files(__package__).joinpath("metrics.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section, _, gate = line.strip("[]").partition(" ")
            sections.setdefault(section, {})
        elif line and not line.startswith("#"):
            name, kind, stability, labels, buckets, text = (part.strip() for part in line.split("|"))
            assert kind in get_args(Kind), line
            sections[section][name] = MetricSpec(
                name,
                cast(Kind, kind),
                stability,
                tuple(labels.split()),
                text,
                _buckets(buckets),
                gate,
            )
    return sections


_SECTIONS: Final = _read()

_COMMON: Final = _SECTIONS["metrics"]
_NEWER: Final = _SECTIONS["entities"]
"""Metrics since there are those of entities."""
_RENAMED: Final = "scheduler_resourceclaim_creates_total"
"""A metric that has another name since then."""
_HIDDEN: Final = "scheduler_preemption_goroutines_duration_seconds"
"""A metric that is deprecated since then, and therefore not registered."""

HEALTH_METRICS: Final[Mapping[str, MetricSpec]] = _SECTIONS["health"]
"""The metrics at `/metrics/slis`, by name."""

OWN_METRICS: Final[Mapping[str, MetricSpec]] = _SECTIONS["own"]
"""Moorage's own metrics at `/metrics`, by name."""


def declared_metrics(version: KubernetesVersion) -> Mapping[str, MetricSpec]:
    """All metrics of kube-scheduler that can be observed, by name, as a version declares them."""
    return {**_COMMON, **_NEWER} if version.entity_metrics else {**_NEWER, **_COMMON}


def metrics_of(version: KubernetesVersion) -> Mapping[str, MetricSpec]:
    """The metrics at `/metrics` in a version with its feature gates, by name; others are not shown."""
    left_out = {_RENAMED, _HIDDEN} if version.entity_metrics else _NEWER.keys() - _COMMON.keys()
    return {
        name: spec
        for name, spec in declared_metrics(version).items()
        if name not in left_out and _is_on(spec, version)
    }


def hidden_count(version: KubernetesVersion) -> int:
    """How many metrics a version hides."""
    return int(version.entity_metrics and _is_on(_COMMON[_HIDDEN], version))


def _is_on(spec: MetricSpec, version: KubernetesVersion) -> bool:
    return not spec.gate or version.gates.enabled.get(spec.gate, False)
