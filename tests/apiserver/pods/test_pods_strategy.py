from __future__ import annotations

from typing import Any

import pytest

from moorage.admission.pods.resources import qos_class
from moorage.api.manifests import Manifest
from tests.apiserver.pods.pod_builders import NOW_TEXT, a_container, a_pod, created, defaulted, strategy


def test_a_new_pod_is_pending() -> None:
    pod = a_pod()
    pod["status"] = {"phase": "Running", "nominatedNodeName": "n1"}
    made = created(pod)
    assert made["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    assert made["metadata"]["generation"] == 1


def test_a_gated_pod_says_so() -> None:
    assert created(a_pod(schedulingGates=[{"name": "a"}]))["status"]["conditions"] == [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
            "lastTransitionTime": NOW_TEXT,
        }
    ]


def test_label_keys_become_selectors() -> None:
    term = {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "web"}},
        "matchLabelKeys": ["hash", "absent"],
        "mismatchLabelKeys": ["tenant"],
    }
    bare = {"topologyKey": "zone", "matchLabelKeys": ["hash"]}
    pod = created(
        a_pod(
            meta={"labels": {"hash": "h", "tenant": "t"}},
            affinity={
                "podAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "podAffinityTerm": term}
                    ]
                },
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [bare]},
            },
            topologySpreadConstraints=[{"labelSelector": {}, "matchLabelKeys": ["hash"]}],
        )
    )
    spec = pod["spec"]
    preferred = spec["affinity"]["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"][0]
    is_hash = {"key": "hash", "operator": "In", "values": ["h"]}
    assert preferred["podAffinityTerm"]["labelSelector"] == {
        "matchLabels": {"app": "web"},
        "matchExpressions": [is_hash, {"key": "tenant", "operator": "NotIn", "values": ["t"]}],
    }
    assert spec["topologySpreadConstraints"][0]["labelSelector"] == {"matchExpressions": [is_hash]}
    (untouched,) = spec["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert untouched == bare


def test_fields_of_features_that_are_off_go() -> None:
    container = a_container(lifecycle={"stopSignal": "SIGHUP"})
    spec = created(a_pod(container))["spec"]
    assert "lifecycle" not in spec["containers"][0]


def test_a_pod_keeps_the_group_it_belongs_to() -> None:
    group = {"podGroupName": "g"}
    assert created(a_pod(a_container(), schedulingGroup=group))["spec"]["schedulingGroup"] == group


def limits(cpu: str = "1", memory: str = "1Gi") -> Manifest:
    return {"limits": {"cpu": cpu, "memory": memory}}


QOS: dict[str, tuple[Manifest, str]] = {
    "nothing": (a_pod(), "BestEffort"),
    "zero": (a_pod(a_container(resources={"requests": {"cpu": "0"}})), "BestEffort"),
    "others than cpu and memory": (
        a_pod(a_container(resources={"limits": {"ephemeral-storage": "1Gi"}})),
        "BestEffort",
    ),
    "limits of all": (a_pod(a_container(resources=limits())), "Guaranteed"),
    "limit of cpu": (a_pod(a_container(resources={"limits": {"cpu": "1"}})), "Burstable"),
    "requests below": (
        a_pod(a_container(resources={**limits(), "requests": {"cpu": "500m"}})),
        "Burstable",
    ),
    "equal, written otherwise": (
        a_pod(a_container(resources={**limits(), "requests": {"cpu": "1000m", "memory": "1024Mi"}})),
        "Guaranteed",
    ),
    "one container without": (a_pod(a_container(resources=limits()), a_container(name="b")), "Burstable"),
    "init container without": (
        a_pod(a_container(resources=limits()), initContainers=[a_container(name="i")]),
        "Burstable",
    ),
    "whole pod": (a_pod(resources=limits()), "Guaranteed"),
    "whole pod, only requests": (a_pod(resources={"requests": {"cpu": "1"}}), "Burstable"),
}


@pytest.mark.parametrize("name", QOS)
def test_qos_class(name: str) -> None:
    pod, expected = QOS[name]
    assert qos_class(defaulted(pod)) == expected
    assert created(pod)["status"]["qosClass"] == expected


@pytest.mark.parametrize(
    ("spec", "phase", "wanted", "seconds"),
    [
        ({"nodeName": "n"}, "Running", None, 30),
        ({"nodeName": "n", "terminationGracePeriodSeconds": 5}, "Running", None, 5),
        ({"nodeName": "n"}, "Running", 7, 7),
        ({"nodeName": "n"}, "Running", 0, 0),
        ({"nodeName": "n"}, "Running", -3, 1),
        ({}, "Pending", 7, 0),
        ({"nodeName": "n"}, "Succeeded", 7, 0),
        ({"nodeName": "n"}, "Failed", None, 0),
    ],
)
def test_grace(spec: dict[str, Any], phase: str, wanted: int | None, seconds: int) -> None:
    pod = created(a_pod(**spec))
    pod["status"]["phase"] = phase
    assert strategy().grace_seconds(pod, wanted) == seconds


def test_selectable_fields() -> None:
    pod = created(a_pod(nodeName="n1", hostNetwork=True, serviceAccountName="robot"))
    pod["status"] |= {"podIPs": [{"ip": "10.0.0.1"}], "nominatedNodeName": "n2"}
    assert strategy().selectable(pod) == {
        "spec.nodeName": "n1",
        "spec.restartPolicy": "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": "robot",
        "spec.hostNetwork": "true",
        "status.phase": "Pending",
        "status.podIP": "10.0.0.1",
        "status.nominatedNodeName": "n2",
    }
    assert strategy().selectable({}).keys() == strategy().selectable(pod).keys()


PORT = {"containerPort": 80, "name": "web"}
WARNINGS: dict[str, tuple[Manifest, list[str]]] = {
    "nothing": (a_pod(), []),
    "name with dots": (
        a_pod(meta={"name": "a.b"}),
        [
            "metadata.name: this is used in the Pod's hostname, which can result in surprising "
            "behavior; a DNS "
            "label is recommended: [must not contain dots]"
        ],
    ),
    "hidden variable": (
        a_pod(a_container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}])),
        [
            'spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when '
            "using apply"
        ],
    ),
    "variable built on itself": (
        a_pod(a_container(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "$(A)2"}])),
        [],
    ),
    "same port twice": (
        a_pod(a_container(ports=[PORT]), a_container(name="b", ports=[PORT])),
        [
            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
            'spec.containers[1].ports[0]: duplicate port name "web" with spec.containers[0].ports[0], '
            "services "
            "and probes that select ports by name will use spec.containers[0].ports[0]",
        ],
    ),
    "fraction of a byte": (
        a_pod(a_container(resources={"requests": {"memory": "100m"}})),
        [
            'spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, '
            "must be an "
            "integer"
        ],
    ),
    "negative grace": (
        a_pod(terminationGracePeriodSeconds=-1),
        [
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be "
            "treated "
            "as 1"
        ],
    ),
    "no selector": (
        a_pod(topologySpreadConstraints=[{"maxSkew": 1}]),
        ["spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod"],
    ),
    "old volume": (
        a_pod(volumes=[{"name": "a", "gitRepo": {"repository": "r"}}]),
        ["spec.volumes[0].gitRepo: deprecated in v1.11, and disabled by default in v1.33+"],
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(name: str) -> None:
    pod, expected = WARNINGS[name]
    made = created(pod)
    assert strategy().warnings(made, None) == expected
    assert strategy().warnings(made, made) == []
