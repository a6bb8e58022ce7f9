"""Feature gates: which there are in a version, what may be set, and what that comes to."""

from __future__ import annotations

import pytest

from moorage.emulation.feature_gates import GateError, known_gates, parse_gates
from moorage.emulation.kubernetes_version import KUBERNETES_VERSIONS, V1_36, V1_37, KubernetesVersion

COUNTS = {"1.36": 241, "1.37": 253}


@pytest.mark.parametrize("minor", KUBERNETES_VERSIONS)
def test_the_gates_of_a_version(minor: str) -> None:
    gates = known_gates(minor)
    assert len(gates) == COUNTS[minor]
    assert {gate.stage for gate in gates.values()} == {"ALPHA", "BETA", "GA", "DEPRECATED"}
    assert all(other in gates for gate in gates.values() for other in gate.needs)
    assert KUBERNETES_VERSIONS[minor].gates.without_effect() == []


def set_to(version: KubernetesVersion, *texts: str) -> KubernetesVersion:
    return version.with_gates(parse_gates(texts))


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
    enabled = set_to(V1_36, *texts).gates.enabled
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
        ["TopologyAwareWorkloadScheduling=true"],
        "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: "
        "[GenericWorkload]",
    ),
    "of another component": (["wardle:A=true"], "component not registered: wardle"),
    "with and without a component": (["kube:NodeSwap=true", "ComponentFlagz=true"], "do not mix use"),
}


@pytest.mark.parametrize("version", [V1_36, V1_37], ids=lambda version: version.minor)
@pytest.mark.parametrize(("texts", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_gates_that_cannot_be_set(version: KubernetesVersion, texts: list[str], complaint: str) -> None:
    with pytest.raises(GateError) as error:
        set_to(version, *texts)
    assert complaint in str(error.value)


def test_a_version_has_its_own_gates() -> None:
    assert set_to(V1_36, "SchedulerQueueingHints=true,GenericWorkload=true,GangScheduling=true")
    for gone in ("SchedulerQueueingHints", "GangScheduling", "WorkloadAwarePreemption"):
        with pytest.raises(GateError, match=f"unrecognized feature gate: {gone}"):
            set_to(V1_37, f"{gone}=true")
    with pytest.raises(GateError, match=r"CompositePodGroup is enabled, .*: \[GenericWorkload Topology"):
        set_to(V1_37, "CompositePodGroup=true")
    with pytest.raises(GateError, match="unrecognized feature gate: CompositePodGroup"):
        set_to(V1_36, "CompositePodGroup=true")


def test_groups_of_pods_have_gates_that_are_off() -> None:
    features = V1_37.features
    assert not (features.generic_workload)
    assert not (features.gang_scheduling)
    assert not (features.composite_pod_group)
    on = "GenericWorkload=true,TopologyAwareWorkloadScheduling=true,PodGroupPreemptionPolicy=true,"
    features = set_to(V1_37, on + "CompositePodGroup=true,DRAWorkloadResourceClaims=true").features
    assert features.generic_workload
    assert features.gang_scheduling
    assert features.topology_aware_workload_scheduling
    assert features.pod_group_preemption_policy
    assert features.composite_pod_group
    assert features.dra_workload_resource_claims
    older = set_to(V1_36, "GenericWorkload=true,GangScheduling=true")
    assert not older.features.generic_workload
    assert not older.features.gang_scheduling
    assert older.gates.without_effect() == ["GenericWorkload", "GangScheduling"]


def test_gates_that_change_nothing_here_are_reported() -> None:
    version = set_to(V1_36, "OpportunisticBatching=false,StorageCapacityScoring=true,ComponentFlagz=false")
    assert version.gates.without_effect() == ["OpportunisticBatching"]
    assert version.features.storage_capacity_scoring
