"""Limits on what one pod can ask of a scheduling attempt."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from moorage.api.limits import POD_LIMITS, PodLimitError, check_pod, has_too_many_terms
from moorage.api.pod import Pod
from moorage.api.remembered import IdentityCache
from tests.builders import PREFERRED, REQUIRED, ZONE, container, expression, make_pod, pod_term, port, spread


def node_affinity(count: int, values: int = 1) -> dict[str, Any]:
    wanted = [str(number) for number in range(values)]
    terms = [{"matchExpressions": [expression("a", "In", *wanted)]} for _ in range(count)]
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}}


def pod_affinity(count: int, **fields: Any) -> dict[str, Any]:
    term = pod_term(ZONE, {"matchLabels": {"app": "a"}}, **fields)
    weighted = [{"weight": 1, "podAffinityTerm": term}]
    required = [term] * (count - 1)
    return {"affinity": {"podAntiAffinity": {REQUIRED: required}, "podAffinity": {PREFERRED: weighted}}}


def selecting(count: int) -> dict[str, Any]:
    selector = {"matchLabels": {f"k{number}": "v" for number in range(count)}}
    return {"affinity": {"podAffinity": {REQUIRED: [pod_term(ZONE, selector)]}}}


def requests(count: int, resources: int) -> list[dict[str, Any]]:
    return [container({f"example.com/{number % resources}": "1"}) for number in range(count)]


SHAPES: dict[str, Any] = {
    "labels": lambda n: {"labels": {f"k{number}": "" for number in range(n)}},
    "node affinity terms": node_affinity,
    "node selector requirements": lambda n: {"node_selector": {f"k{number}": "" for number in range(n)}},
    "values in node affinity terms": lambda n: node_affinity(1, n),
    "inter-pod affinity terms": pod_affinity,
    "labels and values in inter-pod affinity terms": selecting,
    "namespaces in inter-pod affinity terms": lambda n: pod_affinity(
        1, namespaces=[f"ns-{number}" for number in range(n)]
    ),
    "topology spread constraints": lambda n: {"topology_spread_constraints": [spread(ZONE, None)] * n},
    "labels and values in topology spread constraints": lambda n: {
        "topology_spread_constraints": [spread(ZONE, {"matchExpressions": [expression("k", "In", *"v" * n)]})]
    },
    "tolerations": lambda n: {"tolerations": [{"key": "k"}] * n},
    "containers": lambda n: {"containers": [container()] * (n - 1), "init_containers": [container()]},
    "resource requests": lambda n: {
        "containers": [container({f"example.com/{place}": "1" for place in range(50)})] * (n // 50)
        + [container({f"example.com/{place}": "1" for place in range(n % 50)})]
    },
    "different resources": lambda n: {"containers": requests(n, n)},
    "container ports": lambda n: {"containers": [container(ports=[port(1)] * n)]},
    "volumes with storage": lambda n: {
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}] * n
    },
}


def test_every_limit_has_a_shape_here() -> None:
    assert SHAPES.keys() == {limit.what for limit in POD_LIMITS}


@pytest.mark.parametrize("limit", POD_LIMITS, ids=lambda limit: limit.what)
def test_a_pod_at_a_limit_is_within_it_and_one_more_is_reported_in_numbers(limit: Any) -> None:
    check_pod(make_pod("p", **SHAPES[limit.what](limit.max_count)))
    found = limit.max_count + 1
    message = f"pod has {found} {limit.what}, which exceeds the limit of {limit.max_count}"
    with pytest.raises(PodLimitError, match=f"^{message}$"):
        check_pod(make_pod("p", **SHAPES[limit.what](found)))


def test_volumes_without_storage_and_repeated_resources_do_not_count() -> None:
    check_pod(make_pod("p", volumes=[{"name": f"v{number}"} for number in range(2000)]))
    check_pod(make_pod("p", containers=requests(1000, 100)))


class Counted(tuple[Any, ...]):
    """Terms that must not be looked at one by one."""

    def __iter__(self) -> Any:
        raise AssertionError("looked at")


def test_counting_ends_at_the_first_list_that_is_too_long() -> None:
    """Nothing inside of thirty thousand terms is looked at."""
    pod = make_pod("p", **pod_affinity(2))
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.pod_anti_affinity is not None
    terms = Counted(
        pod.spec.affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution * 30_000
    )
    affinity = type(pod.spec.affinity.pod_anti_affinity)(
        required_during_scheduling_ignored_during_execution=terms
    )
    spec = type(pod.spec)(affinity=type(pod.spec.affinity)(pod_anti_affinity=affinity))
    with pytest.raises(PodLimitError, match="30000 inter-pod affinity terms"):
        check_pod(Pod(spec=spec))
    assert has_too_many_terms(Pod(spec=spec))


def test_what_is_remembered_of_a_pod_goes_with_the_pod() -> None:
    asked: list[str] = []

    def name(pod: Pod) -> str:
        asked.append(pod.name)
        return pod.name

    remembered = IdentityCache(name)
    pod = make_pod("p")
    assert [remembered(pod), remembered(pod), remembered.get(pod)] == ["p"] * 3
    assert asked == ["p"]
    assert not gc.is_tracked(pod), "pods hold no circles: the garbage collector need not look at them"
    del pod
    assert len(remembered) == 0
