"""The arguments of LoadAware, and what is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage import Duration, Struct, WebService

RESOURCES: Final = ("cpu", "memory")
"""The resources whose use counts, in the order of columns."""
MAX_SHAPE_SCORE: Final = 10
"""Shapes score from 0 to 10, as those of RequestedToCapacityRatio do."""
_MAX_WEIGHT: Final = 100
_MAX_ESTIMATE: Final = 1000
_NODE_CPU: Final = 'sum by (node) (rate(container_cpu_usage_seconds_total{id="/"}[$window]))'
_NODE_MEMORY: Final = 'sum by (node) (container_memory_working_set_bytes{id="/"})'


class Thresholds(Struct, forbid_unknown_fields=True):
    """From which share of a node's resource on, in percent, it is refused; null: never."""

    cpu: int | None = 80
    memory: int | None = 90


class Weights(Struct, forbid_unknown_fields=True):
    """How much each resource counts for the score."""

    cpu: int = 1
    memory: int = 1


class Estimates(Struct, forbid_unknown_fields=True):
    """What a pod will use of each resource, in percent of its request."""

    cpu: int = 85
    memory: int = 70


class ShapePoint(Struct, forbid_unknown_fields=True):
    """A point of the function from utilization, in percent, to score."""

    utilization: int
    score: int


class Prometheus(Struct, forbid_unknown_fields=True):
    """A Prometheus server, and what it is asked: the use of every node, in cores and in bytes."""

    url: str
    cpu_query: str = _NODE_CPU
    memory_query: str = _NODE_MEMORY
    node_label: str = "node"
    window: Duration = Duration(300)
    token_file: str = ""
    ca_file: str = ""


class LoadAwareArgs(Struct):
    """Where usage is read, which nodes are refused, and how nodes are scored."""

    interval: Duration = Duration(15)
    timeout: Duration = Duration(10)
    max_age: Duration = Duration(180)
    warm_up: Duration = Duration(30)
    prometheus: Prometheus | None = None
    thresholds: Thresholds = Thresholds()
    weights: Weights = Weights()
    estimates: Estimates = Estimates()
    limits_of_burstable: bool = False
    shape: tuple[ShapePoint, ...] = (
        ShapePoint(utilization=0, score=MAX_SHAPE_SCORE),
        ShapePoint(utilization=100, score=0),
    )

    def __post_init__(self) -> None:
        if problems := list(_problems(self)):
            raise ValueError("; ".join(problems))


def _problems(args: LoadAwareArgs) -> Iterator[str]:
    """Every argument that is not allowed."""
    if args.interval < 1:
        yield f"interval: {args.interval} is shorter than 1s"
    if args.timeout <= 0:
        yield f"timeout: {args.timeout} is not longer than 0s"
    if args.max_age < args.interval:
        yield f"maxAge: {args.max_age} is shorter than interval, {args.interval}"
    if args.warm_up < 0:
        yield f"warmUp: {args.warm_up} is negative"
    for name in RESOURCES:
        yield from _outside(f"thresholds.{name}", getattr(args.thresholds, name), 1, 100)
        yield from _outside(f"weights.{name}", getattr(args.weights, name), 0, _MAX_WEIGHT)
        yield from _outside(f"estimates.{name}", getattr(args.estimates, name), 0, _MAX_ESTIMATE)
    if args.weights.cpu == args.weights.memory == 0:
        yield "weights: all are 0"
    yield from _shape_problems(args.shape)
    if args.prometheus is not None:
        yield from _prometheus_problems(args.prometheus)


def _outside(name: str, number: int | None, least: int, most: int) -> Iterator[str]:
    if number is not None and not least <= number <= most:
        yield f"{name}: {number} is not in the range [{least}, {most}]"


def _shape_problems(shape: tuple[ShapePoint, ...]) -> Iterator[str]:
    if not shape:
        yield "shape: at least one point is needed"
    for index, point in enumerate(shape):
        yield from _outside(f"shape[{index}].utilization", point.utilization, 0, 100)
        yield from _outside(f"shape[{index}].score", point.score, 0, MAX_SHAPE_SCORE)
        if index and point.utilization <= shape[index - 1].utilization:
            yield f"shape[{index}].utilization: {point.utilization} is not larger than the one before"


def _prometheus_problems(prometheus: Prometheus) -> Iterator[str]:
    try:
        WebService(prometheus.url, ca_file=prometheus.ca_file)
    except ValueError as error:
        yield f"prometheus: {error}"
    for name, text in (
        ("cpuQuery", prometheus.cpu_query),
        ("memoryQuery", prometheus.memory_query),
        ("nodeLabel", prometheus.node_label),
    ):
        if not text:
            yield f"prometheus.{name}: it is empty"
    if prometheus.window < 1:
        yield f"prometheus.window: {prometheus.window} is shorter than 1s"
