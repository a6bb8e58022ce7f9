from __future__ import annotations

from typing import Any

import pytest

from moorage.api.decode import convert
from moorage.api.pod import Pod
from moorage.api.quantity import format_quantity
from moorage.api.resource_requests import (
    SCORING_DEFAULTS,
    current_requests,
    have_equal_resources_in_status,
    pod_load,
    pod_requests,
    resources_in_status,
    scoring_requests,
    spec_requests,
)


def container(name: str = "c", restart: str | None = None, **requests: str) -> dict[str, Any]:
    return {"name": name, "restartPolicy": restart, "resources": {"requests": requests}}


def make(spec: dict[str, Any], status: dict[str, Any] | None = None) -> Pod:
    return convert({"kind": "Pod", "spec": spec, "status": status or {}}, Pod)


def shown(requests: dict[str, int]) -> dict[str, str]:
    return {name: format_quantity(amount) for name, amount in requests.items()}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"containers": []}, {}, id="nothing"),
        pytest.param(
            {"containers": [container(cpu="1"), container(cpu="500m", memory="1Gi")]},
            {"cpu": "1500m", "memory": "1Gi"},
            id="containers add up",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="3"), container(cpu="2", memory="1Gi")],
            },
            {"cpu": "3", "memory": "1Gi"},
            id="the largest init container counts",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(restart="Always", cpu="1"), container(cpu="3")],
            },
            {"cpu": "4"},
            id="an init container runs beside restartable ones before it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1")],
                "initContainers": [container(cpu="3"), container(restart="Always", cpu="1")],
            },
            {"cpu": "3"},
            id="but not beside restartable ones after it",
        ),
        pytest.param(
            {
                "containers": [container(cpu="2")],
                "initContainers": [
                    container(restart="Always", cpu="1"),
                    container(restart="Always", cpu="1"),
                ],
            },
            {"cpu": "4"},
            id="restartable init containers keep running",
        ),
        pytest.param(
            {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "64Mi"}},
            {"cpu": "1250m", "memory": "64Mi"},
            id="overhead comes on top",
        ),
        pytest.param(
            {
                "containers": [container(cpu="1", memory="1Gi")],
                "resources": {"requests": {"cpu": "500m", "example.com/gpu": "1"}},
                "overhead": {"cpu": "100m"},
            },
            {"cpu": "600m", "memory": "1Gi"},
            id="pod-level cpu replaces the sum, other resources cannot be set there",
        ),
    ],
)
def test_requests_of_a_pod(spec: dict[str, Any], expected: dict[str, str]) -> None:
    assert shown(pod_requests(make(spec))) == expected


RUNNING = {"containers": [container(cpu="2")]}


def resized(allocated: str, actual: str, *conditions: dict[str, str]) -> dict[str, Any]:
    return {
        "containerStatuses": [
            {
                "name": "c",
                "resources": {"requests": {"cpu": actual}},
                "allocatedResources": {"cpu": allocated},
            }
        ],
        "conditions": list(conditions),
    }


@pytest.mark.parametrize(
    ("status", "cpu_milli"),
    [
        pytest.param({}, 2000, id="not resized"),
        pytest.param(resized("1", "1"), 2000, id="growing: what it wants"),
        pytest.param(resized("3", "2500m"), 3000, id="shrinking: what it still has"),
        pytest.param(
            resized("1", "1500m", {"type": "PodResizePending", "reason": "Infeasible", "status": "True"}),
            1500,
            id="a resize that cannot be: what it has",
        ),
        pytest.param(
            resized("1", "1", {"type": "PodResizePending", "reason": "Deferred", "status": "True"}),
            2000,
            id="a resize that waits: what it wants",
        ),
    ],
)
def test_a_running_pod_counts_with_its_resize(status: dict[str, Any], cpu_milli: int) -> None:
    assert pod_load(make(RUNNING, status)).amounts["cpu"] == cpu_milli


def test_a_pending_pod_counts_with_what_it_wants() -> None:
    assert shown(pod_requests(make(RUNNING, resized("9", "9")))) == {"cpu": "2"}


@pytest.mark.parametrize(
    ("spec", "cpu_milli", "memory"),
    [
        pytest.param(
            {"containers": [container(), container()]}, 200, 400 << 20, id="a default for each container"
        ),
        pytest.param({"containers": [container(cpu="0")]}, 0, 200 << 20, id="an explicit zero stays zero"),
        pytest.param(
            {"containers": [container(cpu="1", memory="1Gi")]}, 1000, 1 << 30, id="no default needed"
        ),
        pytest.param(
            {"containers": [container()], "resources": {"requests": {"cpu": "1"}}},
            1000,
            200 << 20,
            id="pod-level cpu needs no default",
        ),
    ],
)
def test_scoring_counts_containers_without_requests_with_a_default(
    spec: dict[str, Any], cpu_milli: int, memory: int
) -> None:
    load = pod_load(make(spec))
    assert (load.scoring_cpu_milli, load.scoring_memory) == (cpu_milli, memory)


def test_defaults_stand_in_for_what_init_containers_do_not_say() -> None:
    pod = make({"containers": [container(cpu="10m")], "initContainers": [container()]})
    assert shown(pod_requests(pod, defaults=SCORING_DEFAULTS)) == {"cpu": "100m", "memory": "200Mi"}


@pytest.mark.parametrize(
    ("spec", "status"),
    [
        pytest.param({"containers": [container(cpu="1", memory="1")]}, {}, id="everything is named"),
        pytest.param({"containers": [container(cpu="1")]}, {}, id="memory is not named"),
        pytest.param(
            {
                "containers": [container(cpu="1", memory="1")],
                "initContainers": [container(cpu="2")],
            },
            {},
            id="an init container does not name memory",
        ),
        pytest.param(
            {"containers": [container(cpu="1", memory="1")], "resources": {"requests": {"cpu": "3"}}},
            {},
            id="pod-level cpu",
        ),
        pytest.param(RUNNING, resized("3", "3"), id="resized"),
        pytest.param(
            {"containers": [container(cpu="1", memory="1")]}, resized("3", "3"), id="resized, all is named"
        ),
    ],
)
def test_requests_that_plugins_share_are_those_of_the_pod(
    spec: dict[str, Any], status: dict[str, Any]
) -> None:
    pod = make(spec, status)
    assert spec_requests(pod) == pod_requests(pod)
    assert spec_requests(pod) is spec_requests(pod)
    assert current_requests(pod) == pod_requests(pod, use_status=True)
    assert scoring_requests(pod) == pod_requests(pod, pod_level=False, defaults=SCORING_DEFAULTS)


def test_only_resources_that_nodes_are_filled_with_count() -> None:
    pod = make(
        {
            "containers": [
                container(**{"cpu": "1", "hugepages-2Mi": "4Mi", "example.com/gpu": "1", "nonsense": "5"})
            ]
        }
    )
    assert pod_load(pod).amounts == {"cpu": 1000, "hugepages-2Mi": 4 << 20, "example.com/gpu": 1}


STATUSES: tuple[dict[str, Any], ...] = (
    {},
    {"phase": "Running"},
    {"conditions": [{"type": "Ready", "status": "True"}]},
    {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Deferred"}]},
    {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]},
    {"containerStatuses": [{"name": "c", "allocatedResources": {"cpu": "1"}}]},
    {"initContainerStatuses": [{"name": "c", "allocatedResources": {"cpu": "1"}}]},
    {"resources": {"requests": {"cpu": "1"}}},
    {"allocatedResources": {"cpu": "1"}},
)


@pytest.mark.parametrize("one", STATUSES, ids=str)
@pytest.mark.parametrize("other", STATUSES, ids=str)
def test_statuses_are_compared_by_what_requests_read_of_them(
    one: dict[str, Any], other: dict[str, Any]
) -> None:
    pod, later = make({}, one), make({}, other)
    equal = resources_in_status(pod) == resources_in_status(later)
    assert have_equal_resources_in_status(pod, later) is equal
