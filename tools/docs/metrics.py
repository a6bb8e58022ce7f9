"""Every metric: kube-scheduler's, moorage's own, and those that plugins register."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import moorage
from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS
from moorage.services.metric_table import HEALTH_METRICS, OWN_METRICS, metrics_of
from moorage.services.metric_values import Kind, MetricSpec
from tools.docs.markdown import code, escaped
from tools.docs.python_source import Module, modules, texts_of, words_of

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
        _listed(plugin_metrics(modules(Path(moorage.__path__[0]) / "optional_plugins", "metrics"))),
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


def plugin_metrics(among: Iterable[Module]) -> Iterator[tuple[MetricSpec, str]]:
    """The metrics that modules register with `Handle.metrics`."""
    for module in among:
        for call in module.calls:
            match call.func:
                case ast.Attribute(value=owner, attr=kind) if kind in _PLUGIN_METHODS:
                    if ast.unparse(owner).split(".")[-1] == "metrics":
                        where = f"Registered in `optional_plugins/{module.path.parent.name}`."
                        yield _registered(module, call, _PLUGIN_METHODS[kind]), where


def _registered(module: Module, call: ast.Call, kind: Kind) -> MetricSpec:
    """A metric as the arguments of a call say: name, help, labels."""
    given = dict(zip(("name", "help", "labels"), call.args, strict=False))
    (name,), (text,) = texts_of(module, given["name"]), texts_of(module, given["help"])
    labels = words_of(module, given["labels"]) if "labels" in given else ()
    return MetricSpec(name, kind, "", labels, text)


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
