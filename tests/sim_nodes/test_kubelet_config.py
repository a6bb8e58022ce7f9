"""Kubelets and nodes as a KubeletConfiguration wants them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from moorage.api.decode import InputError
from moorage.client.kinds import NODE
from moorage_cluster.cli.kubelets import read_kubelets
from moorage_cluster.nodes.kubelet_config import Kubelets, configured
from moorage_cluster.nodes.settings import KubeletSettings, NodeTemplate
from tests.sim_nodes.harness import NodesHarness

HEAD = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
TEMPLATE = NodeTemplate(cpu="4", memory="8Gi", ephemeral_storage="100Gi")


def kubelets(template: NodeTemplate = TEMPLATE, **fields: Any) -> Kubelets:
    return configured({**HEAD, **fields}, template, lambda field: field)


def allocatable(found: Kubelets) -> dict[str, str]:
    """What a node has for pods that was made as it is wanted."""
    with NodesHarness(found.template, eviction_hard=found.settings.eviction_hard) as harness:
        left: dict[str, str] = harness.get(NODE, "node-0")["status"]["allocatable"]
        return left


def test_without_anything_all_is_as_before() -> None:
    assert kubelets() == Kubelets(KubeletSettings(), TEMPLATE, [])


def test_the_system_keeps_its_default_beside_kubernetes() -> None:
    reserved = kubelets(kubeReserved={"cpu": "200m"}).template.reserved
    assert reserved == {"cpu": "300m", "memory": "256Mi"}


def test_what_is_reserved_and_kept_free_is_not_allocatable() -> None:
    found = kubelets(
        kubeReserved={"cpu": "200m", "memory": "1Gi", "ephemeral-storage": "5Gi", "pid": "100"},
        systemReserved={"cpu": "300m", "memory": "500Mi"},
        evictionHard={"memory.available": "524Mi", "nodefs.available": "25%"},
        maxPods=30,
    )
    assert allocatable(found) == {
        "cpu": "3500m",
        "memory": "6Gi",
        "ephemeral-storage": "70Gi",
        "pods": "30",
    }


@pytest.mark.parametrize(
    ("fields", "memory"),
    [
        pytest.param({}, "8078Mi", id="the default threshold"),
        pytest.param({"evictionHard": {"nodefs.available": "5%"}}, "8178Mi", id="another one alone"),
        pytest.param(
            {"evictionHard": {"nodefs.available": "5%"}, "mergeDefaultEvictionSettings": True},
            "8078Mi",
            id="another one with the defaults",
        ),
        pytest.param({"evictionHard": {"memory.available": "0%"}}, "8178Mi", id="none"),
    ],
)
def test_memory_that_hard_eviction_keeps_free(fields: dict[str, Any], memory: str) -> None:
    assert allocatable(kubelets(systemReserved={"memory": "14Mi"}, **fields))["memory"] == memory


@pytest.mark.parametrize(
    ("fields", "pods"), [({"podsPerCore": 10}, 40), ({"podsPerCore": 10, "maxPods": 20}, 20)]
)
def test_pods_per_core(fields: dict[str, Any], pods: int) -> None:
    assert kubelets(**fields).template.pods == pods


def test_settings_of_evictions_and_heartbeats() -> None:
    found = kubelets(
        evictionSoft={"memory.available": "1Gi"},
        evictionSoftGracePeriod={"memory.available": "1m30s"},
        evictionMinimumReclaim={"memory.available": "100Mi"},
        evictionPressureTransitionPeriod="30s",
        evictionMaxPodGracePeriod=15,
        nodeLeaseDurationSeconds=20,
        nodeStatusReportFrequency="1m",
        registerWithTaints=[{"key": "new", "effect": "NoSchedule"}],
    )
    assert found.settings == KubeletSettings(
        eviction_soft="memory.available<1Gi",
        eviction_soft_grace_period="memory.available=1m30s",
        eviction_minimum_reclaim="memory.available=100Mi",
        pressure_transition_seconds=30.0,
        eviction_max_pod_grace_seconds=15,
        lease_seconds=20,
        status_seconds=60.0,
    )
    assert found.template.taints == ({"key": "new", "effect": "NoSchedule"},)


def test_a_soft_threshold_evicts_after_its_grace_period() -> None:
    found = kubelets(
        NodeTemplate(memory="1Gi", reserved={}),
        evictionSoft={"memory.available": "500Mi"},
        evictionSoftGracePeriod={"memory.available": "1m"},
        evictionPressureTransitionPeriod="30s",
    )
    chosen = {name: getattr(found.settings, name) for name in KubeletSettings.__slots__}
    with NodesHarness(found.template, **{**chosen, "jitter": 0.0}) as harness:
        harness.pod("a", says={"usage": "memory=600Mi"})
        harness.advance(50)
        assert harness.node_conditions()["MemoryPressure"] == "True"
        assert harness.phase("a") == "Running"
        harness.advance(40)
        assert harness.status("a")["reason"] == "Evicted"
        harness.advance(40)
        assert harness.node_conditions()["MemoryPressure"] == "False"


def test_fields_without_effect_are_named() -> None:
    assert kubelets(cgroupDriver="systemd", featureGates={"A": True}).ignored == [
        "cgroupDriver",
        "featureGates",
    ]


def test_flags_win_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    document = {"evictionHard": {"memory.available": "1Gi", "pid.available": "5%"}, "maxPods": 20}
    file.write_text(yaml.safe_dump(HEAD | document))
    flags = {"evictionHard": "nodefs.available<1Gi", "maxPods": None, "systemReserved": "cpu=1,"}
    found = read_kubelets(file, flags, TEMPLATE)
    assert found.settings.eviction_hard == "nodefs.available<1Gi"
    assert (found.template.pods, found.template.reserved) == (20, {"cpu": "1"})


def test_complaints_name_the_file_or_the_flag(tmp_path: Path) -> None:
    file = tmp_path / "kubelet.yaml"
    file.write_text(yaml.safe_dump(HEAD | {"kubeReserved": {"cpu": "much"}}))
    with pytest.raises(InputError) as of_file:
        read_kubelets(file, {}, TEMPLATE)
    assert of_file.value.where == f"{file}: kubeReserved"
    assert of_file.value.reason.startswith('failed to parse quantity "much" for "cpu" resource')
    with pytest.raises(InputError) as of_flag:
        read_kubelets(None, {"evictionMinimumReclaim": "x=1"}, TEMPLATE)
    assert str(of_flag.value) == "--eviction-minimum-reclaim: unsupported eviction signal x"
