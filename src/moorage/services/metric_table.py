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
    """The metrics of each section of the file, by name."""
    sections: dict[str, dict[str, MetricSpec]] = {}
    section = ""
    for line in files(__package__).joinpath("metrics.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
            sections[section] = {}
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
                is_optional=section == "optional",
            )
    return sections


_SECTIONS: Final = _read()

_COMMON: Final[Mapping[str, MetricSpec]] = {**_SECTIONS["metrics"], **_SECTIONS["optional"]}
_RENAMED: Final = "scheduler_resourceclaim_creates_total"
"""A metric that has another name since there are metrics of entities."""

HEALTH_METRICS: Final[Mapping[str, MetricSpec]] = _SECTIONS["health"]
"""The metrics at `/metrics/slis`, by name."""

OWN_METRICS: Final[Mapping[str, MetricSpec]] = _SECTIONS["own"]
"""Moorage's own metrics at `/metrics`, by name."""


def metrics_of(version: KubernetesVersion) -> Mapping[str, MetricSpec]:
    """The metrics at `/metrics` in a version, by name."""
    if not version.entity_metrics:
        return _COMMON
    kept = {name: spec for name, spec in _COMMON.items() if name != _RENAMED}
    return {**kept, **_SECTIONS["entities"]}
