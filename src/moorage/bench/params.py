"""Operations with their parameters filled in, checked as far as they can be before they run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from moorage.api.files import load_documents
from moorage.bench.ops import (
    Barrier,
    Churn,
    CreateAny,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreatePodSets,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Op,
    Sleep,
    StartCollectingMetrics,
    UpdateAny,
)
from moorage.config.duration import parse_duration

SCHEDULED: Final = "Scheduled"
ATTEMPTED: Final = "Attempted"
"""The stage that a barrier waits for."""


class BadOp(Exception):  # noqa: N818 -- named after what it is
    """An invalid operation, with the reason."""


class Params:
    """A workload's parameters, and which of them have been used."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        self._used: set[str] = set()

    def whole(self, reference: str) -> int:
        """The number that `$name` stands for."""
        value = self._value(reference)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadOp(f"parameter {reference[1:]} is {value!r}, expected a number")
        return int(value)

    def text(self, reference: str) -> str:
        """The text that `$name` stands for."""
        value = self._value(reference)
        if not isinstance(value, str):
            raise BadOp(f"parameter {reference[1:]} is {value!r}, expected text")
        return value

    def truth(self, reference: str) -> bool:
        """Whether what `$name` stands for is true."""
        value = self._value(reference)
        if not isinstance(value, bool):
            raise BadOp(f"parameter {reference[1:]} is {value!r}, expected true or false")
        return value

    def of_template(self, value: Any) -> Any:
        """A template's parameter: the value itself, or what `$name` or `$name|default` stands for."""
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        reference, has_default, default = value.partition("|")
        if has_default and reference[1:] not in self._values:
            return load_documents(default, reference)[0] if default.strip() else None
        return self._value(reference)

    def _value(self, reference: str) -> Any:
        if not reference.startswith("$"):
            raise BadOp(f"{reference!r} is not the name of a parameter, which begins with $")
        name = reference[1:]
        if name not in self._values:
            raise BadOp(f"parameter {name} is undefined")
        self._used.add(name)
        return self._values[name]

    def unused(self) -> list[str]:
        """Unused parameters, most likely misspelt."""
        return sorted(set(self._values) - self._used)


def resolved(op: Op, params: Params) -> list[Op]:
    """An operation with its parameters filled in; sets of pods become one operation each."""
    op = _filled(op, params)
    _check(op)
    if not isinstance(op, CreatePodSets):
        return [op]
    pods = op.create_pods_op
    one = CreatePods(**{name: getattr(pods, name) for name in CreatePods.__struct_fields__})
    sets = [replace(one, namespace=f"{op.namespace_prefix}-{index}") for index in range(op.count)]
    return [each for some in sets for each in resolved(some, params)]


def _filled(op: Op, params: Params) -> Op:
    values: dict[str, Any] = {}
    if getattr(op, "count_param", ""):
        values["count"] = params.whole(op.count_param)  # type: ignore[union-attr]
    if isinstance(op, CreatePods):
        values |= _filled_pods(op, params)
    if template_params := getattr(op, "template_params", None):
        values["template_params"] = {key: params.of_template(each) for key, each in template_params.items()}
    if isinstance(op, CreateResourceDriver) and op.max_claims_per_node_param:
        values["max_claims_per_node"] = params.whole(op.max_claims_per_node_param)
    if isinstance(op, CreatePods | Sleep) and op.duration_param:
        values["duration"] = params.text(op.duration_param)
    if isinstance(op, Barrier) and not op.stage_requirement:
        values["stage_requirement"] = SCHEDULED
    return replace(op, **values) if values else op


def _filled_pods(op: CreatePods, params: Params) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if op.count_multiplier_param:
        count = params.whole(op.count_param) if op.count_param else op.count
        values["count"] = count * params.whole(op.count_multiplier_param)
    if op.signature_batch_size_param:
        values["signature_batch_size"] = params.whole(op.signature_batch_size_param)
    if op.steady_state_param:
        values["steady_state"] = params.truth(op.steady_state_param)
    return values


def _check(op: Op) -> None:
    count = getattr(op, "count", None)
    if count is not None and count < 0:
        raise BadOp(f"count is {count}, which is negative")
    match op:
        case CreateNodes():
            _check_nodes(op)
        case CreatePods():
            _check_pods(op)
        case DeletePods(delete_pods_per_second=rate) | UpdateAny(update_per_second=rate) if rate < 0:
            raise BadOp(f"{rate} a second is negative")
        case DeletePods(namespace=""):
            raise BadOp("namespace is missing")
        case CreateResourceClaims(namespace="") | CreatePodGroups(namespace=""):
            raise BadOp("namespace is missing")
        case (
            CreateAny(template_path="")
            | UpdateAny(template_path="")
            | CreateResourceClaims(template_path="")
            | CreatePodGroups(template_path="")
        ):
            raise BadOp("templatePath is missing")
        case CreatePodGroups(count=0):
            raise BadOp("count is 0: there must be a group")
        case CreateResourceDriver():
            _check_driver(op)
        case Churn():
            _check_churn(op)
        case Barrier(stage_requirement=stage) if stage not in (SCHEDULED, ATTEMPTED):
            raise BadOp(f"stageRequirement {stage!r} is neither {SCHEDULED} nor {ATTEMPTED}")
        case Sleep():
            seconds(op.duration)
        case StartCollectingMetrics(namespaces=[]):
            raise BadOp("namespaces is empty")


def _check_nodes(op: CreateNodes) -> None:
    labels = op.label_node_prepare_strategy
    if labels is not None and not labels.label_values:
        raise BadOp("labelNodePrepareStrategy.labelValues is empty")


def _check_pods(op: CreatePods) -> None:
    if op.collect_metrics and op.skip_wait_to_completion:
        raise BadOp("collectMetrics and skipWaitToCompletion cannot both be true")
    if op.signature_batch_size < 0:
        raise BadOp(f"signatureBatchSize is {op.signature_batch_size}, which is negative")
    if op.steady_state and op.skip_wait_to_completion:
        raise BadOp("skipWaitToCompletion and steadyState cannot both be true")
    if op.steady_state and seconds(op.duration) <= 0:
        raise BadOp("a steady state needs a duration")
    if (op.persistent_volume_template_path is None) != (op.persistent_volume_claim_template_path is None):
        raise BadOp("templates of volumes and of claims are only of use together")


def _check_driver(op: CreateResourceDriver) -> None:
    if not op.driver_name:
        raise BadOp("driverName is missing")
    if not op.nodes:
        raise BadOp("nodes is missing")
    if op.max_claims_per_node < 0:
        raise BadOp(f"maxClaimsPerNode is {op.max_claims_per_node}, which is negative")


def _check_churn(op: Churn) -> None:
    if op.mode not in ("create", "recreate"):
        raise BadOp(f"mode {op.mode!r} is neither create nor recreate")
    if op.number < 0 or (op.mode == "recreate" and op.number == 0):
        raise BadOp(f"number is {op.number}, which is too small")
    if op.interval_milliseconds < 0:
        raise BadOp(f"intervalMilliseconds is {op.interval_milliseconds}, which is negative")
    if not op.template_paths:
        raise BadOp("templatePaths is empty")


def seconds(duration: str) -> float:
    """A duration in Go's notation as seconds."""
    try:
        return float(parse_duration(duration or "0s"))
    except ValueError as error:
        raise BadOp(f"duration {duration!r}: {error}") from None
