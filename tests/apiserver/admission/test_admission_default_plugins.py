"""The plugins of a server: which writes they handle, and what a pod gets from all of them."""

from __future__ import annotations

from random import Random

import pytest

from moorage.admission.attributes import Operation
from moorage.admission.chain import Chain
from moorage.admission.plugin import Call
from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.admission.default_plugins import default_plugins
from tests.admission.harness import World, asking, named, namespace, pod, refused, write

PLUGINS = default_plugins(Random(1))


def seen_by(operation: Operation, storage: str, subresource: str = "") -> list[str]:
    call = Call(operation, storage, subresource)
    return [plugin.name for plugin in PLUGINS if any(each.covers(call) for each in plugin.handles)]


@pytest.mark.parametrize(
    ("operation", "storage", "subresource", "names"),
    [
        (
            "CREATE",
            "/pods",
            "",
            [
                "NamespaceLifecycle",
                "LimitRanger",
                "ServiceAccount",
                "Priority",
                "DefaultTolerationSeconds",
                "RuntimeClass",
                "PodTopologyLabels",
                "LimitRanger",
                "ResourceQuota",
            ],
        ),
        ("UPDATE", "/pods", "", ["Priority", "DefaultTolerationSeconds", "ResourceQuota"]),
        ("UPDATE", "/pods", "status", []),
        ("UPDATE", "/pods", "resize", ["LimitRanger", "LimitRanger", "ResourceQuota"]),
        ("UPDATE", "/pods", "ephemeralcontainers", ["ServiceAccount"]),
        ("CREATE", "/pods", "binding", ["NamespaceLifecycle", "PodTopologyLabels"]),
        ("CREATE", "/pods", "eviction", ["NamespaceLifecycle"]),
        ("DELETE", "/pods", "", []),
        ("DELETE", "/namespaces", "", ["NamespaceLifecycle"]),
        ("CREATE", "/nodes", "", ["NamespaceLifecycle", "TaintNodesByCondition", "ResourceQuota"]),
        ("UPDATE", "/nodes", "", []),
        (
            "CREATE",
            "/persistentvolumeclaims",
            "",
            [
                "NamespaceLifecycle",
                "DefaultStorageClass",
                "StorageObjectInUseProtection",
                "LimitRanger",
                "ResourceQuota",
            ],
        ),
        (
            "UPDATE",
            "/persistentvolumeclaims",
            "",
            ["LimitRanger", "PersistentVolumeClaimResize", "ResourceQuota"],
        ),
        ("UPDATE", "scheduling.k8s.io/priorityclasses", "", ["Priority"]),
        ("CREATE", "example.com/widgets", "", ["NamespaceLifecycle", "ResourceQuota"]),
    ],
)
def test_a_write_calls_only_the_plugins_that_handle_it(
    operation: Operation, storage: str, subresource: str, names: list[str]
) -> None:
    assert seen_by(operation, storage, subresource) == names


def cluster(**more: list[Manifest]) -> World:
    return World(namespaces=[namespace()], accounts=[named("default", "here")], **more)


def test_a_plain_pod_passes_and_is_filled_in() -> None:
    attributes = write(pod(asking("c", cpu="1")))
    Chain(default_plugins(Random(1))).admit(attributes, cluster())
    spec = attributes.obj["spec"]
    assert spec["priority"] == 0
    assert spec["serviceAccountName"] == "default"
    assert len(spec["tolerations"]) == 2
    assert len(spec["volumes"]) == 1


def test_quotas_see_what_limit_ranges_have_filled_in() -> None:
    ranges = named(
        "lr",
        "here",
        spec={"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}, "default": {"cpu": "2"}}]},
    )
    limit = named("q", "here", spec={"hard": {"cpu": "1"}})
    error = refused(
        Chain(default_plugins(Random(1))).admit, write(pod()), cluster(limit_ranges=[ranges], quotas=[limit])
    )
    assert error.message.endswith("exceeded quota: q, requested: cpu=2, used: cpu=0, limited: cpu=1")


def test_all_changes_come_before_the_first_judgement() -> None:
    ranges = named("lr", "here", spec={"limits": [{"type": "Container", "max": {"cpu": "1"}}]})
    given = pod(asking("c", cpu="2", limits={"cpu": "2"}), priorityClassName="nope")
    error = refused(Chain(default_plugins(Random(1))).admit, write(given), cluster(limit_ranges=[ranges]))
    assert "no PriorityClass with name nope was found" in error.message
