from __future__ import annotations

import pytest

from moorage_cluster.nodes.ranking import Candidate, eviction_order

BEST_EFFORT = Candidate("best-effort", 0, 200, 0)
BURSTABLE = Candidate("burstable", 0, 250, 100)
GUARANTEED = Candidate("guaranteed", 0, 300, 300)


@pytest.mark.parametrize(
    ("resource", "pods", "order"),
    [
        pytest.param(
            "memory",
            [GUARANTEED, BURSTABLE, BEST_EFFORT],
            ["best-effort", "burstable", "guaranteed"],
            id="three-qos-classes",
        ),
        pytest.param(
            "memory",
            [Candidate("best-effort", 0, 100, 0), Candidate("burstable", 0, 500, 100)],
            ["burstable", "best-effort"],
            id="the-class-itself-does-not-count",
        ),
        pytest.param(
            "memory",
            [Candidate("low-within-request", 0, 90, 100), Candidate("high-above-request", 1000, 101, 100)],
            ["high-above-request", "low-within-request"],
            id="above-request-comes-before-priority",
        ),
        pytest.param(
            "memory",
            [Candidate("far-above", 10, 900, 100), Candidate("hardly-above", 5, 101, 100)],
            ["hardly-above", "far-above"],
            id="priority-comes-before-how-far-above",
        ),
        pytest.param(
            "memory",
            [Candidate("near-request", 0, 90, 100), Candidate("far-below", 0, 10, 100)],
            ["near-request", "far-below"],
            id="below-the-request-the-nearest-goes-first",
        ),
        pytest.param(
            "memory",
            [
                Candidate("system", 2_000_000_000, 900, 0),
                Candidate("node-critical", 2_000_001_000, 900, 0),
                BURSTABLE,
            ],
            ["burstable"],
            id="critical-pods-never-go",
        ),
        pytest.param(
            "memory",
            [Candidate("almost-critical", 1_999_999_999, 900, 0), GUARANTEED],
            ["almost-critical", "guaranteed"],
            id="almost-critical-is-not-critical",
        ),
        pytest.param(
            "memory",
            [BEST_EFFORT, Candidate("unknown", 1000, None)],
            ["unknown", "best-effort"],
            id="of-which-nothing-is-known",
        ),
        pytest.param(
            "memory",
            [Candidate("negative", -10, 50, 0), Candidate("none", 0, 900, 0)],
            ["negative", "none"],
            id="negative-priority",
        ),
        pytest.param(
            "ephemeral-storage",
            [Candidate("within", 0, 50, 100), Candidate("above", 0, 150, 100)],
            ["above", "within"],
            id="disk",
        ),
        pytest.param(
            "inodes",
            [Candidate("few-files", 0, 10, 0, 0), Candidate("many-files-large-request", 0, 20, 0, 1000)],
            ["few-files", "many-files-large-request"],
            id="inodes-less-the-disk-request",
        ),
        pytest.param(
            "pids",
            [Candidate("many", 10, 900), Candidate("few", 0, 1), Candidate("some", 0, 5)],
            ["some", "few", "many"],
            id="processes-by-priority-then-number",
        ),
    ],
)
def test_eviction_order(resource: str, pods: list[Candidate], order: list[str]) -> None:
    assert [pod.key for pod in eviction_order(resource, pods)] == order
    assert [pod.key for pod in eviction_order(resource, reversed(pods))] == order
