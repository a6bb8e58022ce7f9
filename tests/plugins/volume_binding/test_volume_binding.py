"""VolumeBinding's filter: claims that are bound, claims that should be, and claims that wait for a node."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.base import Object
from moorage.api.pod import Pod
from moorage.cluster.cache import Cache
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.nodes import Nodes
from moorage.framework.interface.status import SKIP, Code, PluginError
from moorage.plugins.volume_binding.plugin import (
    NO_SPACE,
    NODE_AFFINITY_CONFLICT,
    NOTHING_TO_BIND,
    UNBOUND_IMMEDIATE,
    VOLUME_MISSING,
)
from tests.builders import ZONE, expression, make_node
from tests.plugins.volumes.volume_objects import (
    BETA_ZONE,
    DRIVER,
    EPHEMERAL,
    affinity,
    ask,
    capacity,
    claim,
    csi_driver,
    csi_node,
    in_zone,
    passing,
    pod_with,
    pod_with_sources,
    storage_class,
    volume,
    volume_binding,
    zone_nodes,
)

SELECTED_NODE = "volume.kubernetes.io/selected-node"
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"


def answer_for(pod: Pod, *objects: Object) -> Any:
    """What is said of node a in zone a, and of node b in zone b."""
    return ask(volume_binding(), pod, Cache([*zone_nodes(a="a", b="b"), *objects]))


# Claims that end the attempt

REFUSALS: dict[str, tuple[Pod, list[Object], str]] = {
    "no claim": (pod_with("c"), [], 'persistentvolumeclaim "c" not found'),
    "an ephemeral volume without a claim yet": (
        pod_with_sources(EPHEMERAL),
        [],
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-v0"',
    ),
    "an ephemeral volume's name taken by another claim": (
        pod_with_sources(EPHEMERAL, uid="u"),
        [claim("pod-v0", volume="v", owner_uid="other")],
        "PVC default/pod-v0 was not created for pod default/pod (pod is not owner)",
    ),
    "a lost claim": (
        pod_with("c"),
        [claim("c", volume="v", phase="Lost")],
        'persistentvolumeclaim "c" bound to non-existent persistentvolume "v"',
    ),
    "a claim on its way out": (
        pod_with("c"),
        [claim("c", deleted=True)],
        'persistentvolumeclaim "c" is being deleted',
    ),
    "unbound without a class": (pod_with("c"), [claim("c", storage_class=None)], UNBOUND_IMMEDIATE),
    "unbound with a class that is gone": (pod_with("c"), [claim("c")], UNBOUND_IMMEDIATE),
    "unbound with a class that does not wait": (
        pod_with("c"),
        [claim("c"), storage_class(waits=False)],
        UNBOUND_IMMEDIATE,
    ),
    "with a volume's name, but not bound": (
        pod_with("c"),
        [claim("c", volume="v", complete=False), storage_class(), volume("v")],
        UNBOUND_IMMEDIATE,
    ),
    "a missing claim comes before an unbound one": (
        pod_with("c", "d"),
        [claim("c", storage_class=None)],
        'persistentvolumeclaim "d" not found',
    ),
}


@pytest.mark.parametrize(("pod", "objects", "message"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals(pod: Pod, objects: list[Object], message: str) -> None:
    assert answer_for(pod, *objects) == message


def test_refusals_are_final_and_pods_without_claims_are_skipped() -> None:
    nodes = Nodes(Cache([make_node("a")]).snapshot())
    status = volume_binding().pre_filter(CycleState(), pod_with("c"), nodes)
    assert status is not None
    assert status.code is Code.UNRESOLVABLE
    for pod in (pod_with(), pod_with_sources({"emptyDir": {}})):
        assert volume_binding().pre_filter(CycleState(), pod, nodes) is SKIP


# Bound claims

BOUND: dict[str, tuple[list[Object], dict[str, tuple[str, ...]]]] = {
    "a volume for everybody": ([volume("v")], {"a": (), "b": ()}),
    "a volume in a zone": (
        [volume("v", nodeAffinity=in_zone("a"))],
        {"a": (), "b": (NODE_AFFINITY_CONFLICT,)},
    ),
    "a volume in two zones": ([volume("v", nodeAffinity=in_zone("a", "b"))], {"a": (), "b": ()}),
    "a volume in either of two places": (
        [
            volume(
                "v",
                nodeAffinity=affinity(
                    [expression(ZONE, "In", "a"), expression("disk", "Exists")], [expression(ZONE, "In", "b")]
                ),
            )
        ],
        {"a": (NODE_AFFINITY_CONFLICT,), "b": ()},
    ),
    "a volume away from a zone": (
        [volume("v", nodeAffinity=affinity([expression(ZONE, "NotIn", "a")]))],
        {"a": (NODE_AFFINITY_CONFLICT,), "b": ()},
    ),
    "an affinity without terms": (
        [volume("v", nodeAffinity=affinity())],
        {"a": (NODE_AFFINITY_CONFLICT,), "b": (NODE_AFFINITY_CONFLICT,)},
    ),
    "an affinity without anything required": ([volume("v", nodeAffinity={})], {"a": (), "b": ()}),
    "conditions on fields are not looked at": (
        [
            volume(
                "v",
                nodeAffinity={
                    "required": {
                        "nodeSelectorTerms": [{"matchFields": [expression("metadata.name", "In", "a")]}]
                    }
                },
            )
        ],
        {"a": (), "b": ()},
    ),
    "no volume": ([], {"a": (VOLUME_MISSING,), "b": (VOLUME_MISSING,)}),
}


@pytest.mark.parametrize(("objects", "expected"), BOUND.values(), ids=BOUND.keys())
def test_bound_claims(objects: list[Object], expected: dict[str, tuple[str, ...]]) -> None:
    assert answer_for(pod_with("c"), claim("c", volume="v"), *objects) == expected


def test_the_first_bound_claim_with_a_problem_gives_the_reason() -> None:
    claims = [claim("c", volume="v"), claim("d", volume="gone")]
    here = volume("v", nodeAffinity=in_zone("a"))
    expected = {"a": (VOLUME_MISSING,), "b": (NODE_AFFINITY_CONFLICT,)}
    assert answer_for(pod_with("c", "d"), *claims, here) == expected
    assert answer_for(pod_with("d", "c"), *claims, here) == {"a": (VOLUME_MISSING,), "b": (VOLUME_MISSING,)}


def test_the_ephemeral_volume_of_a_pod() -> None:
    owned = claim("pod-v0", volume="v", owner_uid="u")
    answer = answer_for(pod_with_sources(EPHEMERAL, uid="u"), owned, volume("v", nodeAffinity=in_zone("b")))
    assert passing(answer) == {"b"}


EBS: dict[str, Any] = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
EBS_ZONE = "topology.ebs.csi.aws.com/zone"


def test_an_in_tree_volume_is_where_its_csi_driver_says_on_nodes_that_have_it() -> None:
    nodes = [
        make_node("old", labels={ZONE: "a"}),
        make_node("old-elsewhere", labels={ZONE: "b"}),
        make_node("new", labels={EBS_ZONE: "a"}),
        make_node("new-elsewhere", labels={ZONE: "a", EBS_ZONE: "b"}),
        make_node("other-driver", labels={ZONE: "a"}),
    ]
    csi_nodes = [
        csi_node("new", migrated="kubernetes.io/gce-pd,kubernetes.io/aws-ebs"),
        csi_node("new-elsewhere", migrated="kubernetes.io/aws-ebs"),
        csi_node("other-driver", migrated="kubernetes.io/gce-pd"),
    ]
    item = volume("v", nodeAffinity=in_zone("a"), **EBS)
    answer = ask(volume_binding(), pod_with("c"), Cache([*nodes, *csi_nodes, item, claim("c", volume="v")]))
    assert passing(answer) == {"old", "new", "other-driver"}


def test_an_in_tree_volume_that_cannot_be_translated_fails_where_it_must_be() -> None:
    broken = volume("v", awsElasticBlockStore={"volumeID": "aws://zone/no-volume"}, labels={BETA_ZONE: "a"})
    objects = [*zone_nodes(a="a"), broken, claim("c", volume="v")]
    assert passing(ask(volume_binding(), pod_with("c"), Cache(objects))) == {"a"}
    nodes = Nodes(Cache([*objects, csi_node("a", migrated="kubernetes.io/aws-ebs")]).snapshot())
    with pytest.raises(PluginError, match=r"could not translate pv: .*Invalid format for AWS volume"):
        volume_binding().filter(CycleState(), pod_with("c"), nodes)


# Claims that wait: existing volumes

TAKEN: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "a volume that will do": ({}, {}, True),
    "a larger volume": ({}, {"size": "2Gi"}, True),
    "a smaller volume": ({"size": "2Gi"}, {}, False),
    "a size written in another way": ({"size": "1024Mi"}, {"size": "1Gi"}, True),
    "another class": ({}, {"storage_class": "other"}, False),
    "more access modes than asked for": ({}, {"accessModes": ["ReadWriteMany", "ReadWriteOnce"]}, True),
    "other access modes": ({}, {"accessModes": ["ReadWriteMany"]}, False),
    "one of two access modes": ({"accessModes": ["ReadWriteOnce", "ReadWriteMany"]}, {}, False),
    "a block device for a file system": ({}, {"volumeMode": "Block"}, False),
    "a file system by name": ({"volumeMode": "Filesystem"}, {}, True),
    "a block device for one": ({"volumeMode": "Block"}, {"volumeMode": "Block"}, True),
    "labels that match": (
        {"selector": {"matchLabels": {"disk": "ssd"}}},
        {"labels": {"disk": "ssd"}},
        True,
    ),
    "labels that do not": (
        {"selector": {"matchLabels": {"disk": "ssd"}}},
        {"labels": {"disk": "hdd"}},
        False,
    ),
    "the attributes class": (
        {"volumeAttributesClassName": "fast"},
        {"volumeAttributesClassName": "fast"},
        True,
    ),
    "another attributes class": ({}, {"volumeAttributesClassName": "fast"}, False),
    "an empty attributes class is none": ({"volumeAttributesClassName": ""}, {}, True),
    "a volume on its way out": ({}, {"deleted": True}, False),
    "a volume that is not available yet": ({}, {"phase": "Pending"}, False),
    "a released volume": ({}, {"phase": "Released", "claim": "other"}, False),
    "another claim's volume": ({}, {"claim": "other"}, False),
    "a volume kept for the claim": ({}, {"claim": "c", "phase": "Pending"}, True),
    "a volume kept for an earlier claim of the name": (
        {"uid": "new"},
        {"claim": "c", "claim_uid": "old"},
        False,
    ),
    "a volume kept for this very claim": ({"uid": "u"}, {"claim": "c", "claim_uid": "u"}, True),
    "kept, whatever its labels and access modes": (
        {"selector": {"matchLabels": {"disk": "ssd"}}, "accessModes": ["ReadWriteMany"]},
        {"claim": "c"},
        True,
    ),
    "kept, but too small": ({"size": "2Gi"}, {"claim": "c"}, False),
    "kept, but a block device": ({}, {"claim": "c", "volumeMode": "Block"}, False),
    "kept, but of another class": ({}, {"claim": "c", "storage_class": "other"}, False),
}


@pytest.mark.parametrize(("asked", "offered", "passes"), TAKEN.values(), ids=TAKEN.keys())
def test_which_volumes_a_claim_takes(asked: dict[str, Any], offered: dict[str, Any], passes: bool) -> None:
    answer = answer_for(pod_with("c"), storage_class(), claim("c", **asked), volume("v", **offered))
    reasons = () if passes else (NOTHING_TO_BIND,)
    assert answer == {"a": reasons, "b": reasons}


def test_storage_classes_by_annotation() -> None:
    asking = claim("c", storage_class="ignored", annotations={BETA_CLASS: "late"})
    assert passing(answer_for(pod_with("c"), storage_class(), asking, volume("v"))) == {"a", "b"}


def test_volumes_are_taken_where_they_can_be_reached() -> None:
    answer = answer_for(pod_with("c"), storage_class(), claim("c"), volume("v", nodeAffinity=in_zone("b")))
    assert answer == {"a": (NOTHING_TO_BIND,), "b": ()}


def test_a_volume_kept_for_a_claim_excludes_all_others() -> None:
    kept = volume("kept", claim="c", nodeAffinity=in_zone("b"))
    answer = answer_for(pod_with("c"), storage_class(), claim("c"), volume("v"), kept)
    assert answer == {"a": (NOTHING_TO_BIND,), "b": ()}


def test_two_claims_need_two_volumes() -> None:
    claims = [storage_class(), claim("c"), claim("d")]
    both = volume("v"), volume("w", nodeAffinity=in_zone("b"))
    assert answer_for(pod_with("c", "d"), *claims, *both) == {"a": (NOTHING_TO_BIND,), "b": ()}


def test_small_claims_leave_large_volumes_to_large_ones() -> None:
    claims = [storage_class(), claim("large", "5Gi"), claim("small", "1Gi")]
    volumes = [volume("v", "5Gi"), volume("w", "2Gi")]
    assert passing(answer_for(pod_with("large", "small"), *claims, *volumes)) == {"a", "b"}


def test_bound_and_waiting_claims_give_their_reasons_together() -> None:
    theirs = volume("v", claim="c", phase="Bound", nodeAffinity=in_zone("b"))
    objects = [storage_class(), claim("c", volume="v"), theirs, claim("d")]
    answer = answer_for(pod_with("c", "d"), *objects)
    assert answer == {"a": (NODE_AFFINITY_CONFLICT, NOTHING_TO_BIND), "b": (NOTHING_TO_BIND,)}


def test_a_malformed_selector_fails_the_attempt() -> None:
    broken = claim("c", selector={"matchExpressions": [{"key": "k", "operator": "Like", "values": ["v"]}]})
    nodes = Nodes(Cache([*zone_nodes(a="a"), storage_class(), broken]).snapshot())
    with pytest.raises(PluginError, match="error creating internal label selector for claim: default/c: "):
        volume_binding().filter(CycleState(), pod_with("c"), nodes)


# Claims that wait: new volumes


def provisioned(zones: tuple[str, ...] = ()) -> Object:
    return storage_class(provisioner=DRIVER, zones=zones)


PROVISIONED: dict[str, tuple[list[Object], dict[str, tuple[str, ...]]]] = {
    "anywhere": ([provisioned()], {"a": (), "b": ()}),
    "nowhere, by hand only": ([storage_class()], {"a": (NOTHING_TO_BIND,), "b": (NOTHING_TO_BIND,)}),
    "nowhere, no provisioner": (
        [storage_class(provisioner="")],
        {"a": (NOTHING_TO_BIND,), "b": (NOTHING_TO_BIND,)},
    ),
    "in a zone": ([provisioned(("a",))], {"a": (), "b": (NOTHING_TO_BIND,)}),
    "in two zones": ([provisioned(("a", "b"))], {"a": (), "b": ()}),
    "a driver that does not report": (
        [provisioned(), csi_driver(storage_capacity=False), capacity("x", "1Mi", "a")],
        {"a": (), "b": ()},
    ),
    "a driver that reports nothing": ([provisioned(), csi_driver()], {"a": (NO_SPACE,), "b": (NO_SPACE,)}),
    "room in a zone": (
        [provisioned(), csi_driver(), capacity("x", "1Gi", "a"), capacity("y", "1Mi", "b")],
        {"a": (), "b": (NO_SPACE,)},
    ),
    "room in pieces": (
        [provisioned(), csi_driver(), capacity("x", "10Gi", "a", largest="1Mi")],
        {"a": (NO_SPACE,), "b": (NO_SPACE,)},
    ),
    "the largest volume is what counts": (
        [provisioned(), csi_driver(), capacity("x", "1Mi", "a", largest="1Gi")],
        {"a": (), "b": (NO_SPACE,)},
    ),
    "a report without an amount": (
        [provisioned(), csi_driver(), capacity("x", None, "a")],
        {"a": (NO_SPACE,), "b": (NO_SPACE,)},
    ),
    "a report of no node": (
        [provisioned(), csi_driver(), capacity("x", "10Gi", None)],
        {"a": (NO_SPACE,), "b": (NO_SPACE,)},
    ),
    "a report of another class": (
        [provisioned(), csi_driver(), capacity("x", "10Gi", "a", storage_class="other")],
        {"a": (NO_SPACE,), "b": (NO_SPACE,)},
    ),
    "the class speaks before the driver": (
        [provisioned(("a",)), csi_driver()],
        {"a": (NO_SPACE,), "b": (NOTHING_TO_BIND,)},
    ),
}


@pytest.mark.parametrize(("objects", "expected"), PROVISIONED.values(), ids=PROVISIONED.keys())
def test_where_volumes_can_be_made(objects: list[Object], expected: dict[str, tuple[str, ...]]) -> None:
    assert answer_for(pod_with("c"), claim("c"), *objects) == expected


def test_an_existing_volume_needs_no_space() -> None:
    objects = [provisioned(), csi_driver(), volume("v", nodeAffinity=in_zone("a")), claim("c")]
    assert answer_for(pod_with("c"), *objects) == {"a": (), "b": (NO_SPACE,)}


def test_a_claim_without_a_size_needs_no_space() -> None:
    unsized = claim("c", resources={})
    assert passing(answer_for(pod_with("c"), provisioned(), csi_driver(), unsized)) == {"a", "b"}


def test_a_claim_stays_with_the_node_it_was_to_be_made_for() -> None:
    chosen = claim("c", annotations={SELECTED_NODE: "b"})
    existing = volume("v")
    answer = answer_for(pod_with("c"), provisioned(), chosen, existing)
    assert answer == {"a": (NOTHING_TO_BIND,), "b": ()}
    full = answer_for(pod_with("c"), provisioned(), csi_driver(), chosen, existing)
    assert full == {"a": (NOTHING_TO_BIND,), "b": (NO_SPACE,)}


def test_claims_that_stay_with_two_nodes_go_nowhere() -> None:
    claims = [claim("c", annotations={SELECTED_NODE: "a"}), claim("d", annotations={SELECTED_NODE: "b"})]
    answer = answer_for(pod_with("c", "d"), provisioned(), *claims)
    assert answer == {"a": (NOTHING_TO_BIND,), "b": (NOTHING_TO_BIND,)}


def test_the_first_claim_that_gets_nothing_gives_the_reason() -> None:
    objects = [
        provisioned(("a",)),
        storage_class("roomless", DRIVER),
        csi_driver(),
        capacity("x", "10Gi", "a"),
        claim("small", "1Gi", storage_class="roomless"),
        claim("large", "2Gi"),
    ]
    answer = answer_for(pod_with("large", "small"), *objects)
    assert answer == {"a": (NO_SPACE,), "b": (NO_SPACE,)}
