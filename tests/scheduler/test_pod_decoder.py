"""Pods decoded with shared specs are what they are when decoded one by one."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from moorage.api.coscheduling import POD_GROUP_LABEL
from moorage.api.pod import Pod
from moorage.client.watch_events import read_event
from moorage.scheduler import pod_decoder
from moorage.scheduler.informers import decoder
from moorage.scheduler.pod_decoder import LabelledPodDecoder, PodDecoder

METADATA = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"}
CONTAINERS = [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}]
LAST = {"schedulerName": "other"}

SPECS: dict[str, Any] = {
    "without a node": {"containers": CONTAINERS, **LAST},
    "on a node": {"containers": CONTAINERS, "nodeName": "a", **LAST},
    "with the node last": {"containers": CONTAINERS, "nodeName": "a"},
    "on a node without a name": {"containers": CONTAINERS, "nodeName": "", **LAST},
    "with a label of that name": {"nodeSelector": {"nodeName": "b", "x": "y"}, **LAST},
    "with such a label and on a node": {"nodeSelector": {"nodeName": "b", "x": "y"}, "nodeName": "a", **LAST},
    "with the same label and node": {"nodeSelector": {"nodeName": "a", "x": "y"}, "nodeName": "a", **LAST},
    "on a node whose name is escaped": {"nodeName": 'a",', **LAST},
    "with a name in a text": {
        "containers": [{"name": "c", "image": '"nodeName":"b",'}],
        "nodeName": "a",
        **LAST,
    },
    "with nulls": {"containers": None, "nodeSelector": None, "nodeName": "a", **LAST},
    "null": None,
}
STATUSES: dict[str, Any] = {
    "pending": {"phase": "Pending"},
    "with nulls": {"phase": "Running", "conditions": None},
}


def encoded(spec: Any, status: Any = None, **labels: str) -> bytes:
    metadata = {**METADATA, "labels": labels} if labels else METADATA
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status or {}}
    return msgspec.json.encode(pod)


def decoded(pods: PodDecoder, raw: bytes) -> Pod:
    event = read_event(pods, "ADDED", raw)
    assert event.head is not None
    assert event.head.metadata.resource_version == "7"
    return pods.decode(event.head, raw)


@pytest.mark.parametrize("status", STATUSES)
def test_any_spec_is_decoded_as_it_is_without_others(status: str) -> None:
    pods, plain = PodDecoder(), decoder(Pod)
    for spec in [*SPECS.values(), *SPECS.values()]:
        raw = encoded(spec, STATUSES[status])
        assert decoded(pods, raw) == plain(raw), spec


def test_a_pod_that_is_bound_keeps_its_spec_but_for_the_node() -> None:
    pods = PodDecoder()
    before, bound = (decoded(pods, encoded(SPECS[case])) for case in ("without a node", "on a node"))
    assert bound.spec == replace(before.spec, node_name="a")
    assert bound.spec.containers is before.spec.containers, "decoded once"


def test_many_specs_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = PodDecoder()
    raw = [encoded({"nodeSelector": {"x": str(number)}}) for number in range(3)]
    monkeypatch.setattr(
        pod_decoder, "_MAX_KEPT_BYTES", len(msgspec.json.encode({"nodeSelector": {"x": "0"}})) * 2
    )
    first = decoded(pods, raw[0]).spec
    decoded(pods, raw[1])
    assert decoded(pods, raw[0]).spec is first
    decoded(pods, raw[2])
    assert decoded(pods, raw[0]).spec is first, "the least recently used one was dropped"
    decoded(pods, raw[1])
    decoded(pods, raw[2])
    assert decoded(pods, raw[0]).spec is not first


def group_name(pod: Pod) -> str | None:
    return None if pod.spec.scheduling_group is None else pod.spec.scheduling_group.pod_group_name


@pytest.mark.parametrize("case", SPECS)
def test_a_label_names_the_group_of_a_pod(case: str) -> None:
    pods, labels = LabelledPodDecoder(), {POD_GROUP_LABEL: "g"}
    member, single = (decoded(pods, encoded(SPECS[case], **each)) for each in (labels, {"app": "web"}))
    assert (group_name(member), group_name(single)) == ("g", None)
    assert replace(member.spec, scheduling_group=None) == single.spec
    assert group_name(decoded(PodDecoder(), encoded(SPECS[case], **labels))) is None


def test_a_group_that_only_the_spec_names_does_not_count() -> None:
    spec = {"schedulingGroup": {"podGroupName": "other"}}
    assert group_name(decoded(PodDecoder(), encoded(spec))) == "other"
    assert group_name(decoded(LabelledPodDecoder(), encoded(spec))) is None
    assert group_name(decoded(LabelledPodDecoder(), encoded(spec, **{POD_GROUP_LABEL: "g"}))) == "g"


def test_members_of_a_group_share_their_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pod_decoder, "_MAX_KEPT_SPECS", 2)
    pods, spec = LabelledPodDecoder(), SPECS["without a node"]
    one, other, another = (
        decoded(pods, encoded(spec, **{POD_GROUP_LABEL: name, "rank": rank}))
        for name, rank in (("g", "0"), ("g", "1"), ("h", "0"))
    )
    assert one.spec is other.spec
    assert one.spec is not another.spec
    for name in ("x", "y", "z"):
        decoded(pods, encoded(spec, **{POD_GROUP_LABEL: name}))
    assert len(pods._members) <= 2


def test_what_is_no_pod_is_no_event() -> None:
    assert read_event(PodDecoder(), "ADDED", b'{"metadata":{"name":7}}').head is None
