"""Feature gates: which there are, what may be set, and what that comes to."""

from __future__ import annotations

import pytest

from moorage.config.features import DEFAULT_FEATURES
from moorage.services.feature_gates import DEFAULT_GATES, GATES, GateError, parse_gates


def test_what_is_on_by_default_is_what_the_configuration_expects() -> None:
    assert DEFAULT_GATES.features() == DEFAULT_FEATURES
    assert DEFAULT_GATES.without_effect() == []
    assert len(GATES) == 241
    assert {gate.stage for gate in GATES.values()} == {"ALPHA", "BETA", "GA", "DEPRECATED"}
    assert all(other in GATES for gate in GATES.values() for other in gate.needs)


SET: dict[str, tuple[list[str], dict[str, bool]]] = {
    "one": (["StorageCapacityScoring=true"], {"StorageCapacityScoring": True}),
    "in Go's words": (["StorageCapacityScoring=T"], {"StorageCapacityScoring": True}),
    "several, with blanks": (
        ["StorageCapacityScoring = true , OpportunisticBatching=false"],
        {"StorageCapacityScoring": True, "OpportunisticBatching": False},
    ),
    "in several flags": (["ComponentFlagz=false", "ComponentStatusz=false"], {"ComponentFlagz": False}),
    "of a component": (["kube:ComponentFlagz=false"], {"ComponentFlagz": False}),
    "the last one counts": (["ComponentFlagz=false,ComponentFlagz=true"], {"ComponentFlagz": True}),
    "all that are beta": (
        ["AllBeta=false,ComponentFlagz=true"],
        {"ComponentStatusz": False, "ComponentFlagz": True, "DynamicResourceAllocation": True},
    ),
    "a locked one, as it is": (["DynamicResourceAllocation=true"], {"DynamicResourceAllocation": True}),
}


@pytest.mark.parametrize(("texts", "expected"), SET.values(), ids=SET.keys())
def test_gates_are_set(texts: list[str], expected: dict[str, bool]) -> None:
    enabled = parse_gates(texts).enabled
    assert {name: enabled[name] for name in expected} == expected


WRONG: dict[str, tuple[list[str], str]] = {
    "unknown": (["Nope=true"], "unrecognized feature gate: Nope"),
    "without a value": (["NodeSwap"], "missing bool value for NodeSwap"),
    "neither true nor false": (["NodeSwap=yes"], "invalid value of NodeSwap=yes: neither true nor false"),
    "locked": (
        ["DynamicResourceAllocation=false"],
        "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
    ),
    "without what it needs": (
        ["GangScheduling=true"],
        "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload]",
    ),
    "of another component": (["wardle:A=true"], "component not registered: wardle"),
    "with and without a component": (["kube:NodeSwap=true", "ComponentFlagz=true"], "do not mix use"),
}


@pytest.mark.parametrize(("texts", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_gates_that_cannot_be_set(texts: list[str], complaint: str) -> None:
    with pytest.raises(GateError) as error:
        parse_gates(texts)
    assert complaint in str(error.value)


def test_gates_that_change_nothing_here_are_reported() -> None:
    gates = parse_gates(["OpportunisticBatching=false,StorageCapacityScoring=true,ComponentFlagz=false"])
    assert gates.without_effect() == ["OpportunisticBatching"]
    assert gates.features().storage_capacity_scoring
