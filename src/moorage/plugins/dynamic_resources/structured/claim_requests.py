"""The requests of a claim, prepared for the search: with their alternatives, and the selectors of both claim
and class.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from moorage.api.devices import (
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaim,
)
from moorage.api.quantity import Quantity
from moorage.api.taints import tolerates
from moorage.cel.budget import WorkBudget
from moorage.cel.program import CompileError, compile_selector
from moorage.cel.values import CelError
from moorage.cluster.object_tables import ObjectTable
from moorage.plugins.dynamic_resources.structured.constraints import constraint
from moorage.plugins.dynamic_resources.structured.device_kinds import DeviceKind, Reading, SelectorResult
from moorage.plugins.dynamic_resources.structured.device_rules import DeviceRules
from moorage.plugins.dynamic_resources.structured.pools import DeviceEntry

EXACT_COUNT = "ExactCount"
ALL = "All"

_MAX_REASON_LENGTH = 1024
"""Maximum length of the error of a selector, in characters; expressions can make long texts."""

_REQUEST_WORK, _SELECTOR_WORK = 24, 4
"""Cost of preparing a request or one of its alternatives, and one of its selectors, in units of work."""

_EVALUATION_WORK, _FACT_WORK = 48, 4
"""Work of evaluating a selector for a device, beside its CEL cost, and for each of the device's facts."""

_MISSING_KEY_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue()) "
    "or guarding the check with has() for optional fields"
)

_KEEPING_AWAY = frozenset(("NoSchedule", "NoExecute"))


class AllocationError(Exception):
    """A claim, a class or a selector is invalid: the attempt fails on all nodes."""


@dataclass(frozen=True, slots=True)
class RequestSelector:
    """One selector, and its origin for messages: `class gpu: selector #0`."""

    origin: str
    expression: str

    def accepts(self, entry: DeviceEntry, work: WorkBudget, reading: Reading, rules: DeviceRules) -> bool:
        """Whether a device is selected; AllocationError if the evaluation fails."""
        kind = entry.kind
        selector_result = kind.selector_result(self.expression) or self._evaluate(kind, work)
        reading.add(selector_result.reads)
        if isinstance(selector_result.answer, CelError):
            raise AllocationError(self._error(entry, str(selector_result.answer), rules))
        return selector_result.answer

    def _error(self, entry: DeviceEntry, reason: str, rules: DeviceRules) -> str:
        if not rules.selector_errors_name_device:
            return f"{self.origin}: CEL runtime error: {reason}"
        hint = _MISSING_KEY_HINT if "no such key:" in reason else ""
        return f"{self.origin} on device {entry.id}: CEL runtime error: {reason}{hint}"

    def _evaluate(self, kind: DeviceKind, work: WorkBudget) -> SelectorResult:
        """The result for a kind; kinds that the selector cannot distinguish are evaluated once."""
        try:
            selector = compile_selector(self.expression, work)
        except CompileError as error:
            raise AllocationError(f"{self.origin}: CEL compile error: {error}") from None
        projection = kind.projection_for(selector.reads)
        known = kind.shared_result(self.expression, projection)
        if known is not None:
            return known
        work.spend(_EVALUATION_WORK + _FACT_WORK * kind.facts.size)
        answer: bool | CelError
        try:
            answer = selector.matches(kind.facts, work)
        except CelError as error:
            answer = CelError(
                str(error)[:_MAX_REASON_LENGTH]
            )  # a new one: errors remember where they were raised
        selector_result = SelectorResult(answer, selector.reads)
        kind.store_result(self.expression, projection, selector_result)
        return selector_result


@dataclass(frozen=True, slots=True, eq=False)
class Alternative:
    """One way to satisfy a request; the only one, without a name, where a request has no alternatives."""

    request: str
    name: str
    place: int
    """How many alternatives are preferred to this one."""
    device_class: DeviceClass
    choices: tuple[RequestSelector, ...]
    all: bool
    count: int
    admin: bool
    tolerations: tuple[DeviceToleration, ...]
    capacity: Mapping[str, Quantity]

    @property
    def selector_work(self) -> int:
        """The work of checking a device that was evaluated before."""
        return 3 + len(self.choices)

    @property
    def full_name(self) -> str:
        """How results and settings refer to it."""
        return f"{self.request}/{self.name}" if self.name else self.request

    @property
    def own_name(self) -> str:
        """How messages refer to it."""
        return self.name or self.request

    def accepts(self, entry: DeviceEntry, work: WorkBudget, reading: Reading, rules: DeviceRules) -> bool:
        """Whether the selectors of class and request choose a device."""
        return all(choice.accepts(entry, work, reading, rules) for choice in self.choices)

    def tolerates(self, taints: tuple[DeviceTaint, ...]) -> bool:
        """Whether all taints with an effect on allocation are tolerated."""
        return all(
            any(tolerates(toleration, taint) for toleration in self.tolerations)
            for taint in taints
            if taint.effect in _KEEPING_AWAY
        )


@dataclass(frozen=True, slots=True, eq=False)
class ClaimRequest:
    """A claim to allocate, and its requests, each with its alternatives in order of preference."""

    claim: ResourceClaim
    requests: tuple[tuple[Alternative, ...], ...]


def claim_request(claim: ResourceClaim, classes: ObjectTable[DeviceClass], work: WorkBudget) -> ClaimRequest:
    """A claim prepared for the search; AllocationError if its requests are invalid."""
    for request in claim.spec.devices.requests:
        work.spend(_REQUEST_WORK * (1 + len(request.first_available)))
        for each in (request.exactly, *request.first_available):
            work.spend(0 if each is None else len(each.selectors) * _SELECTOR_WORK)
    requests = tuple(_alternatives(claim, request, classes) for request in claim.spec.devices.requests)
    for number, source in enumerate(claim.spec.devices.constraints):
        if constraint(source) is None:
            raise AllocationError(
                f"claim {claim.key}, constraint #{number}: empty constraint (unsupported constraint type?)"
            )
    return ClaimRequest(claim, requests)


def _alternatives(
    claim: ResourceClaim, request: DeviceRequest, classes: ObjectTable[DeviceClass]
) -> tuple[Alternative, ...]:
    if request.first_available:
        return tuple(
            _alternative(claim, request.name, each.name, place, each, classes)
            for place, each in enumerate(request.first_available)
        )
    if request.exactly is None:
        raise AllocationError(f"resource claim {claim.key}, request {request.name}: unknown request type")
    return (_alternative(claim, request.name, "", 0, request.exactly, classes),)


def _alternative(
    claim: ResourceClaim,
    request: str,
    name: str,
    place: int,
    source: ExactDeviceRequest | DeviceSubRequest,
    classes: ObjectTable[DeviceClass],
) -> Alternative:
    origin = f"claim {claim.key}, request {name or request}"
    for number, selector in enumerate(source.selectors):
        if selector.cel is None:
            raise AllocationError(
                f"{origin}, selector #{number}: CEL expression empty (unsupported selector type?)"
            )
    if not source.device_class_name:
        raise AllocationError(f"{origin}: missing device class name (unsupported request type?)")
    device_class = classes.get("", source.device_class_name)
    if device_class is None:
        raise AllocationError(
            f"{origin}: could not retrieve device class {source.device_class_name}: "
            f'deviceclass.resource.k8s.io "{source.device_class_name}" not found'
        )
    if source.allocation_mode not in (EXACT_COUNT, ALL):
        raise AllocationError(f"{origin}: unsupported count mode {source.allocation_mode}")
    return Alternative(
        request=request,
        name=name,
        place=place,
        device_class=device_class,
        choices=(
            *_choices(f"class {device_class.name}", device_class.spec.selectors),
            *_choices(f"claim {claim.key}", source.selectors),
        ),
        all=source.allocation_mode == ALL,
        count=source.count,
        admin=isinstance(source, ExactDeviceRequest) and source.admin_access,
        tolerations=source.tolerations,
        capacity={} if source.capacity is None else source.capacity.requests,
    )


def _choices(origin: str, selectors: tuple[DeviceSelector, ...]) -> list[RequestSelector]:
    return [
        RequestSelector(
            f"{origin}: selector #{number}", "" if selector.cel is None else selector.cel.expression
        )
        for number, selector in enumerate(selectors)
    ]
