"""What-if: changes are the same as if they had been made, and texts can neither break nor tell anything."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.pod import Pod
from moorage.emulation.kubernetes_version import V1_36
from moorage.explain.document import as_document
from moorage.explain.explanation import explain
from moorage.explain.loading import fill
from moorage.ui.what_if.changes import CLUSTER_CHANGES, ApplySuggestion, NodeShape, SetWeight
from moorage.ui.what_if.documents import (
    Answer,
    Differences,
    OtherPod,
    OtherPods,
    Problems,
    ReasonDifference,
    ScoreDifference,
    Text,
    TextProblem,
    Texts,
    WhatIf,
)
from tests.builders import HOSTNAME, Manifest, container, make, node, owner, pod
from tests.ui.what_if_cluster import EVALUATION, Asker

SECRET = "hunter2"
BIG = {"cpu": "16", "memory": "32Gi", "pods": "110"}
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def labelled(name: str, **fields: Any) -> Manifest:
    return node(name, labels={HOSTNAME: name, "disk": "hdd"}, **fields)


def image(requests: dict[str, str], **fields: Any) -> list[Manifest]:
    return [container(requests, image="registry.example/app:1", **fields)]


OBJECTS: list[Manifest] = [
    labelled("a"),
    labelled("b", taints=["team=x:NoSchedule"]),
    labelled("c", unschedulable=True, allocatable=BIG),
    pod("agent", uid="agent", on="a", requests={"cpu": "1"}, owners=[owner("DaemonSet", "agent")]),
    pod("web-0", uid="web-0", on="a", requests={"cpu": "2"}),
    pod("web-1", uid="web-1", on="c", requests={"cpu": "1"}),
    pod("huge", uid="huge", containers=image({"cpu": "12"})),
    pod("waiting", uid="waiting", containers=image({"cpu": "1", "memory": "1Gi"})),
]


def changed(name: str, change: Callable[[Manifest], None]) -> list[Manifest]:
    """The objects with one changed."""
    objects = deepcopy(OBJECTS)
    change(next(each for each in objects if each["metadata"]["name"] == name))
    return objects


def without(*names: str) -> list[Manifest]:
    return [each for each in deepcopy(OBJECTS) if each["metadata"]["name"] not in names]


def new_like_c() -> Manifest:
    new = labelled("new-node-like-c", allocatable=BIG)
    return new


def drained() -> list[Manifest]:
    objects = without("web-0")
    objects[0]["spec"]["unschedulable"] = True
    return objects


CHANGES: list[tuple[Manifest, list[Manifest]]] = [
    ({"kind": "addNode", "like": "c"}, [*OBJECTS, new_like_c()]),
    (
        {"kind": "addNode", "like": "a", "count": 2},
        [
            *OBJECTS,
            *(labelled(f"new-node-like-a{end}") for end in ("", "-2")),
            *(pod(f"agent{end}", on=f"new-node-like-a{end}", requests={"cpu": "1"}) for end in ("", "-2")),
        ],
    ),
    (
        {"kind": "addNode", "shape": {"allocatable": {"cpu": "32"}, "labels": {"disk": "ssd"}}},
        [
            *OBJECTS,
            node(
                "new-node-1",
                labels={HOSTNAME: "new-node-1", "disk": "ssd"},
                allocatable={"cpu": "32", "pods": "110"},
            ),
        ],
    ),
    ({"kind": "removeNode", "node": "a"}, without("a", "agent", "web-0")),
    ({"kind": "drain", "node": "a"}, drained()),
    ({"kind": "cordon", "node": "a"}, changed("a", lambda each: each["spec"].update(unschedulable=True))),
    ({"kind": "uncordon", "node": "c"}, changed("c", lambda each: each["spec"].update(unschedulable=False))),
    (
        {"kind": "taint", "node": "a", "key": "k", "effect": "PreferNoSchedule"},
        changed("a", lambda each: each["spec"].update(taints=[{"key": "k", "effect": "PreferNoSchedule"}])),
    ),
    (
        {"kind": "untaint", "node": "b", "key": "team"},
        changed("b", lambda each: each["spec"].update(taints=[])),
    ),
    (
        {"kind": "label", "node": "a", "key": "disk", "value": None},
        changed("a", lambda each: each["metadata"]["labels"].pop("disk")),
    ),
]


def explained(objects: Sequence[Manifest], name: str) -> Any:
    """The explanation of a pod in a cluster that is so."""
    version = EVALUATION.version(V1_36)
    cluster = EVALUATION.cluster(EVALUATION.configuration(version), version)
    made = [make(each) for each in objects]
    [asked] = [each for each in made if isinstance(each, Pod) and each.name == name]
    fill(cluster, made, asked)
    return json.loads(json.dumps(as_document(explain(cluster, asked))))


@pytest.mark.parametrize(
    ("change", "objects"), CHANGES, ids=lambda each: each.get("kind") if isinstance(each, dict) else ""
)
@pytest.mark.parametrize("name", ["waiting", "huge"])
def test_a_change_is_as_if_it_had_been_made(change: Manifest, objects: list[Manifest], name: str) -> None:
    answer = Asker(OBJECTS).what_if(change, of=f"default/{name}")

    real = explained(objects, name)
    for part in ("feasible", "rejected", "allRejections", "victims", "nominatedNode"):
        assert answer["then"].get(part) == real.get(part), part
    now = explained(OBJECTS, name)
    assert {key: value for key, value in answer["now"].items() if key != "notes"} == now


def test_without_a_change_nothing_differs() -> None:
    asker = Asker(OBJECTS)
    text = asker.get("pods/default/waiting/manifest")["text"]

    for answer in (asker.what_if(), asker.what_if(pod=text), asker.what_if(pod=text, of="")):
        assert answer["problems"] == []
        assert answer["then"]["feasible"] == answer["now"]["feasible"]
        differences = answer["differences"]
        assert differences["node"] == {"before": "a", "after": "a"}
        assert (differences["reasons"], differences["others"]) == ([], None)
        assert all(
            each["nodes"]["a"]["before"] == each["nodes"]["a"]["after"] for each in differences["scores"]
        )


def test_the_pods_that_lose_their_node_and_those_that_wait_are_evaluated() -> None:
    asker = Asker(OBJECTS)

    drained = asker.what_if({"kind": "drain", "node": "c"})["differences"]["others"]
    added = asker.what_if({"kind": "addNode", "like": "c"})["differences"]["others"]

    assert drained["items"] == [{"pod": "default/web-1", "node": "c", "before": 1, "after": 1}]
    assert added["items"] == [{"pod": "default/huge", "node": "", "before": 0, "after": 1}]


def test_every_suggestion_does_what_it_says() -> None:
    asker = Asker(OBJECTS)
    suggested = asker.what_if(of="default/huge")["now"]["help"]

    assert len(suggested) > 1
    for each in suggested:
        answer = asker.what_if({"kind": "suggestion", "text": each["text"]}, of="default/huge")
        assert sorted(row["node"] for row in answer["then"]["feasible"]) == each["nodes"]


def test_a_pod_that_loses_its_node_does_not_count_against_itself() -> None:
    """It alone fills its node."""
    full = pod("full", uid="full", on="c", requests={"cpu": "16"})
    objects = [labelled("c", allocatable=BIG), full, pod("waiting", uid="waiting", requests={"cpu": "1"})]

    answer = Asker(objects).what_if({"kind": "drain", "node": "c"}, {"kind": "uncordon", "node": "c"})

    assert answer["differences"]["others"]["items"] == [
        {"pod": "default/full", "node": "c", "before": 1, "after": 1}
    ]
    assert answer["differences"]["node"] == {"before": None, "after": "c"}


def test_another_weight_moves_a_pod() -> None:
    preferred = {
        "weight": 1,
        "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
    }
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preferred]}}
    objects = [
        labelled("a", allocatable=BIG),
        node("b", labels={HOSTNAME: "b", "disk": "ssd"}, taints=["soft:PreferNoSchedule"], allocatable=BIG),
        pod("waiting", uid="waiting", requests={"cpu": "1"}, affinity=affinity),
    ]

    answer = Asker(objects).what_if({"kind": "weight", "plugin": "NodeAffinity", "weight": 9})

    assert answer["differences"]["node"] == {"before": "a", "after": "b"}
    [row] = [each for each in answer["differences"]["scores"] if each["plugin"] == "NodeAffinity"]
    assert row["weight"] == {"before": 2, "after": 9}
    assert row["nodes"]["b"] == {"before": 200, "after": 900}


def test_an_edited_pod_keeps_its_priority_and_runtime() -> None:
    text = pod("waiting", uid="waiting", containers=image({"cpu": "2"}), priority=7, runtime_class_name="vm")
    asker = Asker([labelled("a"), {**text, "spec": {**text["spec"], "overhead": {"cpu": "1"}}}])

    edited = asker.get("pods/default/waiting/manifest")["text"].replace("cpu: '2'", "cpu: '4'")
    answer = asker.what_if(pod=edited)

    assert answer["problems"] == []
    assert answer["differences"]["node"] == {"before": "a", "after": None}


def test_values_that_may_be_secret_are_never_shown() -> None:
    hidden = image(
        {"cpu": "1"},
        args=[SECRET],
        command=[SECRET],
        env=[{"name": "A", "value": SECRET}],
        working_dir=SECRET,
    )
    first = [{**hidden[0], "name": "first"}]
    volumes = [{"name": "v", "secret": {"secretName": SECRET}}]
    secretive = pod("waiting", uid="waiting", containers=hidden, init_containers=first, volumes=volumes)
    secretive["metadata"]["annotations"] = {"password": SECRET}
    asker = Asker([labelled("a"), secretive])

    text = asker.get("pods/default/waiting/manifest")

    assert SECRET not in json.dumps([text, asker.what_if(), asker.what_if(pod=text["text"])])
    assert asker.post("what-if/validate", pod=text["text"]) == {"problems": []}


# Texts


BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
HOSTILE = [
    "",
    "a: [",
    "[]",
    "null",
    "text",
    "[" * 10_000,
    BOMB,
    "x" * 300_000,
    "- a\n" * 30_000,
    "a: 1\n---\nb: 2",
    "!!python/object/apply:os.system [ls]",
    "kind: Pod\nkind: Pod",
    "1: 2\nnull: 3",
    "\x00",
    "kind: Pod\napiVersion: v1",
    "kind: Pod\napiVersion: v1\nmetadata: []\nspec: []",
    "kind: Pod\napiVersion: v1\nmetadata: {name: 1}\nspec: {}",
    "kind: Pod\napiVersion: v1\nmetadata: {name: a, namespace: [x]}\nspec: {}",
    "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {containers: 1, priority: x}",
    "kind: Pod\napiVersion: v1\nmetadata: {name: a}\nspec: {priority: 99999999999999999999}",
    f"{CONFIG}profiles: 1",
    f"{CONFIG}profiles: [{{plugins: {{score: {{enabled: [{{name: 1}}]}}}}}}]",
    f"{CONFIG}extenders: [{{urlPrefix: 'http://evil.example', filterVerb: filter}}]",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_that_cannot_be_used_is_a_problem(text: str) -> None:
    asker = Asker(OBJECTS)

    found = asker.post("what-if/validate", pod=text, config=text)["problems"]

    assert {each["of"] for each in found} == {"pod", "config"}
    assert asker.what_if(pod=text)["problems"] == [each for each in found if each["of"] == "pod"]
    assert asker.what_if(config=text)["problems"] == [each for each in found if each["of"] == "config"]


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["Always", "1", "cpu"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["name", "containers", "resources", "requests", "cpu", "key", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
FIELDS = [
    "containers",
    "affinity",
    "tolerations",
    "priority",
    "overhead",
    "volumes",
    "runtimeClassName",
    "nodeName",
]


@settings(max_examples=25, deadline=None)
@given(st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, max_size=4))
def test_no_pod_fails(spec: dict[str, Any]) -> None:
    text = yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec})

    answer = Asker(OBJECTS[:1]).post("what-if", pod=text)

    assert answer["problems"] or answer["then"]


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"[]",
        b"{}",
        b'{"of": 1}',
        b'{"of": "default/none"}',
        b'{"of": "waiting"}',
        b'{"of": "default/../nodes"}',
        b'{"of": "default/waiting", "changes": [{"kind": "explode"}]}',
        b'{"of": "default/waiting", "changes": [{"kind": "drain", "node": "none"}]}',
        b'{"of": "default/waiting", "changes": [{"kind": "addNode"}]}',
        b'{"of": "default/waiting", "changes": [{"kind": "addNode", "like": "a", "count": 1000000}]}',
        b'{"of": "default/waiting", "changes": [{"kind": "addNode", "shape": {"allocatable": {"cpu": ""}}}]}',
        b'{"of": "default/waiting", "changes": [{"kind": "taint", "node": "a", "key": "k", "effect": "No"}]}',
        b'{"of": "default/waiting", "changes": [{"kind": "weight", "plugin": "None", "weight": 1}]}',
        b'{"of": "default/waiting", "changes": [{"kind": "suggestion", "text": "none"}]}',
        b'{"of": "default/waiting", "changes": ['
        + b",".join([b'{"kind": "cordon", "node": "a"}'] * 51)
        + b"]}",
        b'{"of": "' + b"x" * 2_000_000 + b'"}',
        b"[" * 100_000,
    ],
    ids=lambda body: body[:70].decode(),
)
def test_a_question_that_cannot_be_answered_is_refused(body: bytes) -> None:
    status, answer = Asker(OBJECTS).answered("what-if", body)

    assert status == 422
    assert answer["message"]
    assert "\n" not in answer["message"]


def test_problems_say_where() -> None:
    good = Asker(OBJECTS).get("pods/default/waiting/manifest")["text"]
    lines = good.splitlines()
    place = next(number for number, line in enumerate(lines, 1) if "cpu:" in line)
    bad = good.replace("cpu: '1'", "cpu: many")

    [problem] = Asker(OBJECTS).post("what-if/validate", pod=bad)["problems"]

    assert problem["path"] == "spec.containers[0].resources.requests.cpu"
    assert problem["line"] == place


@pytest.mark.parametrize("field", ["unknown: 1", "status: {phase: Running}"])
def test_only_a_status_is_left_out(field: str) -> None:
    good = Asker(OBJECTS).get("pods/default/waiting/manifest")["text"]

    found = Asker(OBJECTS).post("what-if/validate", pod=f"{good}{field}\n")["problems"]

    assert [each["path"] for each in found] == ([] if "status" in field else ["unknown"])


@pytest.mark.parametrize("name", ["antigravity:fly", "plugins/mine.py", "this:Zen.of"])
@pytest.mark.parametrize("point", ["multiPoint", "score"])
def test_a_configuration_loads_no_code(name: str, point: str) -> None:
    profile = {"plugins": {point: {"enabled": [{"name": name}]}}}
    text = CONFIG + yaml.safe_dump({"profiles": [profile]})

    answer = Asker(OBJECTS).what_if(config=text)

    assert [each["of"] for each in answer["problems"]] == ["config"]
    assert "plugins cannot be loaded from the page" in answer["problems"][0]["message"]
    assert {"antigravity", "this"}.isdisjoint(sys.modules)


def test_the_configuration_in_force_can_be_edited() -> None:
    asker = Asker(OBJECTS)
    text = asker.get("what-if/configuration")["text"]

    same = asker.what_if(config=text)["differences"]
    assert (same["reasons"], same["opened"], same["others"]["items"]) == ([], [], [])
    without_fit = text.replace("      - name: NodeResourcesFit\n        weight: 1\n", "")
    assert without_fit != text
    answer = asker.what_if(config=without_fit, of="default/huge")
    assert answer["problems"] == []
    assert answer["differences"]["reasons"]


API_PAGE = (Path(__file__).parents[2] / "docs/reference/page-api.md").read_text()


@pytest.mark.parametrize(
    "document",
    [
        *(WhatIf, Texts, Text, TextProblem, Problems, Answer, Differences, ReasonDifference),
        *(ScoreDifference, OtherPods, OtherPod, *CLUSTER_CHANGES, NodeShape, SetWeight, ApplySuggestion),
    ],
)
def test_every_field_and_kind_is_described(document: type[msgspec.Struct]) -> None:
    described = set(re.findall(r"`(\w+)`", API_PAGE))

    tag = document.__struct_config__.tag
    names = {each.encode_name for each in msgspec.structs.fields(document)}
    assert (names | ({tag} if tag else set())) - described == set()


def test_the_question_in_the_documents_is_answered() -> None:
    [question] = re.findall(r'^\{"of".*$', API_PAGE, re.MULTILINE)
    objects = [labelled("node-0"), pod("huge", uid="huge", requests={"cpu": "12"})]

    assert Asker(objects).post("what-if", **json.loads(question))["differences"]["feasible"]["after"] == 0
