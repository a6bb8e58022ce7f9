"""LimitRanger."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.admission.plugin import CLAIMS
from moorage.admission.plugins.limit_ranger import check_claim, check_pod, set_defaults
from moorage.api.manifests import Manifest
from tests.admission.harness import World, asking, container, named, pod, refused, update, write

ANNOTATION = "kubernetes.io/limit-ranger"


def limits(*items: Manifest, name: str = "lr", namespace: str = "here") -> Manifest:
    return named(name, namespace, spec={"limits": list(items)})


def item(kind: str = "Container", **fields: Any) -> Manifest:
    return {"type": kind, **fields}


def harness(*items: Manifest) -> World:
    return World(limit_ranges=[limits(*items)])


DEFAULTS = harness(
    item(default={"cpu": "1", "memory": "1Gi"}, defaultRequest={"memory": "512Mi", "cpu": "100m"})
)


def test_containers_get_what_they_leave_out() -> None:
    attributes = write(
        pod(asking("a", cpu="2", limits={"cpu": "3"}), container("b"), initContainers=[container("i")])
    )
    set_defaults(attributes, DEFAULTS)
    first, second = attributes.obj["spec"]["containers"]
    assert first["resources"] == {
        "requests": {"cpu": "2", "memory": "512Mi"},
        "limits": {"cpu": "3", "memory": "1Gi"},
    }
    everything = {
        "requests": {"cpu": "100m", "memory": "512Mi"},
        "limits": {"cpu": "1", "memory": "1Gi"},
    }
    assert second["resources"] == everything
    assert attributes.obj["spec"]["initContainers"][0]["resources"] == everything
    assert attributes.obj["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: memory request for container a; memory limit for container a; "
        "cpu, memory request for container b; cpu, memory limit for container b; "
        "cpu, memory request for init container i; cpu, memory limit for init container i"
    )


def test_a_pod_that_says_everything_is_left_alone() -> None:
    told = asking("a", cpu="1", memory="1", limits={"cpu": "1", "memory": "1"})
    attributes = write(pod(told))
    set_defaults(attributes, DEFAULTS)
    assert attributes.obj == pod(asking("a", cpu="1", memory="1", limits={"cpu": "1", "memory": "1"}))


@pytest.mark.parametrize(
    "ranges",
    [
        World(),
        World(limit_ranges=[limits(item(default={"cpu": "1"}), namespace="elsewhere")]),
        harness(item("Pod", default={"cpu": "1"})),
        harness(item(max={"cpu": "1"})),
    ],
)
def test_without_defaults_for_containers_nothing_is_set(ranges: World) -> None:
    attributes = write(pod())
    set_defaults(attributes, ranges)
    assert attributes.obj == pod()


SMALL = asking("c", cpu="100m", limits={"cpu": "200m"})


@pytest.mark.parametrize(
    ("rule", "given", "why"),
    [
        (item(min={"cpu": "50m"}, max={"cpu": "1"}), SMALL, None),
        (item(min={"cpu": "100m"}, max={"cpu": "200m"}, maxLimitRequestRatio={"cpu": "2"}), SMALL, None),
        (
            item(min={"cpu": "150m"}),
            SMALL,
            "minimum cpu usage per Container is 150m, but request is 100m",
        ),
        (
            item(min={"memory": "1Mi"}),
            SMALL,
            "minimum memory usage per Container is 1Mi.  No request is specified",
        ),
        (
            item(min={"cpu": "1"}),
            asking("c", cpu="1", limits={"cpu": "500m"}),
            "minimum cpu usage per Container is 1, but limit is 500m",
        ),
        (
            item(max={"cpu": "150m"}),
            SMALL,
            "maximum cpu usage per Container is 150m, but limit is 200m",
        ),
        (
            item(max={"memory": "1Gi"}),
            SMALL,
            "maximum memory usage per Container is 1Gi.  No limit is specified",
        ),
        (
            item(max={"cpu": "1"}),
            asking("c", cpu="2", limits={"cpu": "1"}),
            "maximum cpu usage per Container is 1, but request is 2",
        ),
        (
            item(maxLimitRequestRatio={"cpu": "1500m"}),
            SMALL,
            "cpu max limit to request ratio per Container is 1500m, but provided ratio is 2.000000",
        ),
        (
            item(maxLimitRequestRatio={"memory": "2"}),
            SMALL,
            "memory max limit to request ratio per Container is 2, "
            "but no request is specified or request is 0",
        ),
        (
            item(maxLimitRequestRatio={"memory": "2"}),
            asking("c", memory="1Gi"),
            "memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0",
        ),
        (
            item(min={"cpu": "150m"}, max={"cpu": "150m"}),
            SMALL,
            "[minimum cpu usage per Container is 150m, but request is 100m, "
            "maximum cpu usage per Container is 150m, but limit is 200m]",
        ),
    ],
)
def test_containers_are_bounded(rule: Manifest, given: Manifest, why: str | None) -> None:
    for spec in ({"containers": [given]}, {"containers": [], "initContainers": [given]}):
        attributes = write(named("p", "here", spec=spec))
        if why is None:
            check_pod(attributes, harness(rule))
        else:
            error = refused(check_pod, attributes, harness(rule))
            assert error.message == f'pods "p" is forbidden: {why}'
            assert error.code == 403


def test_equal_problems_are_reported_once() -> None:
    error = refused(check_pod, write(pod(SMALL, {**SMALL, "name": "d"})), harness(item(min={"cpu": "150m"})))
    assert error.message.endswith("forbidden: minimum cpu usage per Container is 150m, but request is 100m")


def side(name: str, **requests: Any) -> Manifest:
    return {**asking(name, **requests), "restartPolicy": "Always"}


@pytest.mark.parametrize(
    ("given", "requested"),
    [
        (pod(asking("a", memory="1Gi"), asking("b", memory="512Mi")), "1536Mi"),
        (pod(asking("a", memory="1Gi"), initContainers=[asking("i", memory="3Gi")]), "3Gi"),
        (pod(asking("a", memory="1Gi"), initContainers=[side("s", memory="3Gi")]), "4Gi"),
        (
            pod(
                asking("a", memory="1Gi"), initContainers=[side("s", memory="1Gi"), asking("i", memory="3Gi")]
            ),
            "4Gi",
        ),
        (pod(asking("a", memory="1Gi"), resources={"requests": {"memory": "6Gi"}}), "6Gi"),
        (pod(asking("a", memory="1Gi"), overhead={"memory": "6Gi"}), None),
    ],
)
def test_pods_are_bounded_as_a_whole(given: Manifest, requested: str | None) -> None:
    rule = harness(item("Pod", maxLimitRequestRatio={"memory": "1"}))
    most = harness(item("Pod", min={"memory": "100Gi"}))
    said = refused(check_pod, write(given), most).message
    assert said.endswith(f"minimum memory usage per Pod is 100Gi, but request is {requested or '1Gi'}")
    assert "no limit is specified or limit is 0" in refused(check_pod, write(given), rule).message


def claim(size: str) -> Manifest:
    return named("c", "here", spec={"resources": {"requests": {"storage": size}}})


@pytest.mark.parametrize(
    ("size", "why"),
    [
        ("2Gi", None),
        ("1Gi", None),
        ("512Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 512Mi"),
        ("6Gi", "maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi"),
    ],
)
def test_claims_are_bounded(size: str, why: str | None) -> None:
    rule = harness(item("PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "5Gi"}))
    for attributes in (write(claim(size), CLAIMS), update(claim(size), claim("1Gi"), CLAIMS)):
        if why is None:
            check_claim(attributes, rule)
        else:
            error = refused(check_claim, attributes, rule)
            assert error.message == f'persistentvolumeclaims "c" is forbidden: {why}'


def test_what_is_going_is_not_bothered() -> None:
    rule = harness(
        item("PersistentVolumeClaim", max={"storage": "1Gi"}), item(default={"cpu": "1"}, max={"cpu": "1"})
    )
    going = claim("9Gi")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    check_claim(update(claim("9Gi"), going, CLAIMS), rule)
    resize = update(pod(), going, subresource="resize")
    set_defaults(resize, rule)
    check_pod(resize, rule)
    assert resize.obj == pod()
