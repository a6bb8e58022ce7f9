"""Every metric: kube-scheduler's, moorage's own, and those that plugins register."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final

from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS
from moorage.services.metric_table import HEALTH_METRICS, OWN_METRICS, metrics_of
from moorage.services.metric_values import Kind, MetricSpec
from tools.docs.markdown import code, escaped
from tools.interface.observed import labels_of
from tools.interface.source import Place, places, texts

_PLUGIN_METHODS: Final[Mapping[str, Kind]] = MappingProxyType({"counter": "counter", "gauge": "gauge"})
"""The methods of `Handle.metrics` that register a metric, and its type."""


def page() -> str:
    """The page."""
    parts = [
        "# Metrics",
        "What `/metrics` has, with the names, types, labels and buckets of kube-scheduler, so that "
        "dashboards fit. A histogram also has a bucket `+Inf`.",
        "## kube-scheduler's",
        _listed(_of_kube_scheduler()),
        "## At /metrics/slis",
        _listed((spec, "") for spec in HEALTH_METRICS.values()),
        "## moorage's own",
        _listed((spec, "") for spec in OWN_METRICS.values()),
        "## Of optional plugins",
        _listed(plugin_metrics(places("metrics.counter(", "metrics.gauge("))),
    ]
    return "\n\n".join(parts) + "\n"


def _of_kube_scheduler() -> Iterator[tuple[MetricSpec, str]]:
    """The metrics of all emulated versions with all their gates, and where a metric is not."""
    found: dict[str, tuple[MetricSpec, list[str]]] = {}
    for minor, version in KUBERNETES_VERSIONS.items():
        for name, spec in metrics_of(version.with_gates({"AllAlpha": True, "AllBeta": True})).items():
            found.setdefault(name, (spec, []))[1].append(f"v{minor}")
    for _, (spec, versions) in sorted(found.items()):
        yield spec, "" if len(versions) == len(KUBERNETES_VERSIONS) else f"Only in {', '.join(versions)}."


def plugin_metrics(among: Iterable[Place]) -> Iterator[tuple[MetricSpec, str]]:
    """The metrics that calls of `Handle.metrics` register."""
    for place in among:
        match place.node:
            case ast.Call(func=ast.Attribute(value=owner, attr=kind), args=[name, text, *rest]):
                if kind in _PLUGIN_METHODS and ast.unparse(owner).split(".")[-1] == "metrics":
                    (named,), (help_text,) = texts(place, name), texts(place, text)
                    spec = MetricSpec(
                        named, _PLUGIN_METHODS[kind], "", tuple(labels_of(place, rest)), help_text
                    )
                    yield spec, f"Registered in `{place.module.name}`."


def _listed(found: Iterable[tuple[MetricSpec, str]]) -> str:
    """A list of metrics, each with its type, labels and buckets."""
    return "\n\n".join(_entry(*each) for each in found)


def _entry(spec: MetricSpec, note: str) -> str:
    facts = [spec.kind, spec.stability.lower()]
    if spec.labels:
        facts.append(f"by {', '.join(map(code, spec.labels))}")
    gate = f"Only with the feature gate `{spec.gate}`." if spec.gate else ""
    buckets = f"Buckets: {', '.join(f'{each:.10g}' for each in spec.buckets)}." if spec.buckets else ""
    lines = [escaped(" ".join(filter(None, (spec.help, gate, note)))), buckets]
    head = f"{code(spec.name)}\n: {', '.join(filter(None, facts))}"
    return "\n\n".join([head, *(f"  {line}" for line in lines if line)])
