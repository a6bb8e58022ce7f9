from __future__ import annotations

import itertools
from typing import Any

import pytest

from moorage_cluster.nodes.containers import ContainerRun, Role, Running, Terminated, Waiting
from moorage_cluster.nodes.simulated_program import Program
from moorage_cluster.nodes.simulated_workload import SimulatedWorkload
from moorage_cluster.nodes.usage import usage_model


def container(
    policy: str = "Always",
    role: Role = Role.MAIN,
    seconds: float | None = 5.0,
    exit_code: int = 1,
    usage: str = "",
    **spec: object,
) -> ContainerRun:
    ids = itertools.count()
    resources = {"limits": {"memory": "200Mi"}}
    program = Program(usage_model(usage, resources), seconds, exit_code)
    return ContainerRun(
        {"name": "main", "image": "app", **spec},
        role,
        SimulatedWorkload(program, has_readiness=role is not Role.INIT, stop_seconds=lambda: 1.0),
        policy,
        "a_default(1)",
        lambda: f"id-{next(ids)}",
    )


def run(subject: ContainerRun, until: float, since: float = 0.0) -> list[float]:
    """The moments at which something happens."""
    if subject.start_at is None and not subject.has_begun:
        subject.start_at = since
    moments = []
    while (due := subject.due) is not None and due <= until:
        moments.append(due)
        subject.step(due)
    return moments


def test_pauses_double_up_to_five_minutes() -> None:
    subject = container(seconds=5)
    moments = run(subject, until=1500)
    starts, ends = moments[::2], moments[1::2]
    pauses = [start - end for start, end in zip(starts[1:], ends, strict=False)]
    assert pauses == [1, 10, 20, 40, 80, 160, 300, 300, 300]


def test_a_container_that_waits_to_run_again_says_so() -> None:
    subject = container(seconds=5)
    run(subject, until=11)
    assert subject.restarts == 1
    assert subject.state == Waiting(
        "CrashLoopBackOff", "back-off 10s restarting failed container=main pod=a_default(1)"
    )
    assert subject.last == Terminated(1, "Error", "", 6.0, 11.0, "id-1")
    run(subject, until=21)
    assert (subject.state, subject.restarts, subject.container_id) == (Running(21.0), 2, "id-2")


def test_after_running_long_enough_the_pauses_begin_again() -> None:
    moments = run(container(seconds=601), until=1900)
    assert moments == [0, 601, 602, 1203, 1204, 1805, 1806]
    moments = run(container(seconds=599), until=1900)
    assert moments == [0, 599, 600, 1199, 1209, 1808, 1828]


@pytest.mark.parametrize(
    ("policy", "exit_code", "role", "spec", "restarts"),
    [
        pytest.param("Always", 0, Role.MAIN, {}, True, id="always"),
        pytest.param("OnFailure", 0, Role.MAIN, {}, False, id="on-failure-succeeded"),
        pytest.param("OnFailure", 1, Role.MAIN, {}, True, id="on-failure-failed"),
        pytest.param("Never", 1, Role.MAIN, {}, False, id="never"),
        pytest.param("Always", 0, Role.INIT, {}, False, id="init-succeeded"),
        pytest.param("Always", 1, Role.INIT, {}, True, id="init-failed"),
        pytest.param("Never", 1, Role.INIT, {}, False, id="init-failed-never"),
        pytest.param("Never", 0, Role.SIDECAR, {"restartPolicy": "Always"}, True, id="sidecar"),
        pytest.param("Always", 1, Role.MAIN, {"restartPolicy": "Never"}, False, id="own-policy"),
        pytest.param(
            "Never",
            42,
            Role.MAIN,
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}
                ],
            },
            True,
            id="rule-for-the-exit-code",
        ),
        pytest.param(
            "Never",
            42,
            Role.MAIN,
            {
                "restartPolicy": "Never",
                "restartPolicyRules": [
                    {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [42]}}
                ],
            },
            False,
            id="rule-for-other-exit-codes",
        ),
    ],
)
def test_containers_that_restart(
    policy: str, exit_code: int, role: Role, spec: dict[str, Any], restarts: bool
) -> None:
    subject = container(policy, role, 5, exit_code, **spec)
    run(subject, until=7)
    assert (subject.restarts == 1) is restarts
    assert (subject.ended is None) is restarts


def test_memory_above_the_limit_kills() -> None:
    subject = container("Never", seconds=None, usage="memory=100Mi+10Mi/s")
    run(subject, until=100)
    assert subject.state == Terminated(137, "OOMKilled", "", 0.0, 10.0, "id-0")


def test_a_program_that_ends_before_its_memory_does_is_not_killed() -> None:
    subject = container("Never", seconds=9, exit_code=0, usage="memory=100Mi+10Mi/s")
    run(subject, until=100)
    assert subject.state == Terminated(0, "Completed", "", 0.0, 9.0, "id-0")
