"""Probes: what they answer, word by word."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from moorage.http.transport import Request, Response
from moorage.services.health import election_check, health_routes, loop_check, shutdown_check, sync_check
from moorage.services.metrics import Metrics
from tests.services.test_metrics import shown


@dataclass
class State:
    """How the scheduler is."""

    election: str | None = None
    is_synced: bool = True
    is_ending: bool = False
    elects: bool = True
    loop: str | None = None


def ask(state: State, path: str, query: str = "", metrics: Metrics | None = None) -> tuple[int, str]:
    routes = health_routes(
        election_check(lambda: state.election) if state.elects else None,
        loop_check(lambda: state.loop),
        sync_check(lambda: state.is_synced),
        shutdown_check(lambda: state.is_ending),
        metrics or Metrics(),
    )
    response: Response = asyncio.run(routes[path](Request("GET", path, query)))  # type: ignore[arg-type]
    assert isinstance(response.body, bytes)
    assert response.content_type == "text/plain; charset=utf-8"
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    return response.status, response.body.decode()


STUCK = "the scheduling loop has not turned for 12.0 s"
LOST = "failed election to renew leadership on lease kube-scheduler"

CASES: dict[str, tuple[State, str, str, int, str]] = {
    "alive": (State(), "/livez", "", 200, "ok"),
    "alive, in words": (
        State(),
        "/livez",
        "verbose",
        200,
        "[+]ping ok\n[+]scheduling-loop ok\nlivez check passed\n",
    ),
    "alive whatever else": (State(LOST, False, True), "/livez", "", 200, "ok"),
    "healthy": (State(), "/healthz", "", 200, "ok"),
    "healthy, in words": (
        State(),
        "/healthz",
        "verbose=true",
        200,
        "[+]leaderElection ok\n[+]scheduling-loop ok\nhealthz check passed\n",
    ),
    "healthy without election": (
        State(elects=False),
        "/healthz",
        "verbose",
        200,
        "[+]ping ok\n[+]scheduling-loop ok\nhealthz check passed\n",
    ),
    "the lease is stale": (
        State(LOST),
        "/healthz",
        "",
        500,
        "[-]leaderElection failed: reason withheld\n[+]scheduling-loop ok\nhealthz check failed\n",
    ),
    "the reason, for who may know": (
        State(LOST),
        "/healthz/leaderElection",
        "",
        500,
        f"internal server error: {LOST}\n",
    ),
    "ready": (State(), "/readyz", "", 200, "ok"),
    "ready, in words": (
        State(),
        "/readyz",
        "verbose",
        200,
        "[+]leaderElection ok\n[+]scheduling-loop ok\n"
        "[+]shutdown ok\n[+]sched-handler-sync ok\nreadyz check passed\n",
    ),
    "not all is known yet": (
        State(is_synced=False),
        "/readyz",
        "",
        500,
        "[+]leaderElection ok\n[+]scheduling-loop ok\n"
        "[+]shutdown ok\n[-]sched-handler-sync failed: reason withheld\n"
        "readyz check failed\n",
    ),
    "which check": (
        State(is_synced=False),
        "/readyz/sched-handler-sync",
        "",
        500,
        "internal server error: handlers are not fully synchronized\n",
    ),
    "about to end": (
        State(is_ending=True),
        "/readyz/shutdown",
        "",
        500,
        "internal server error: process is shutting down\n",
    ),
    "one that is well": (State(is_ending=True), "/readyz/sched-handler-sync", "", 200, "ok"),
    "the loop is stuck": (
        State(loop=STUCK),
        "/livez",
        "",
        500,
        "[+]ping ok\n[-]scheduling-loop failed: reason withheld\nlivez check failed\n",
    ),
    "the loop is stuck, without election": (
        State(elects=False, loop=STUCK),
        "/healthz",
        "",
        500,
        "[+]ping ok\n[-]scheduling-loop failed: reason withheld\nhealthz check failed\n",
    ),
    "not ready with a stuck loop": (
        State(elects=False, loop=STUCK),
        "/readyz",
        "",
        500,
        "[-]scheduling-loop failed: reason withheld\n[+]shutdown ok\n[+]sched-handler-sync ok\n"
        "readyz check failed\n",
    ),
    "how long the loop has been stuck": (
        State(loop=STUCK),
        "/livez/scheduling-loop",
        "",
        500,
        f"internal server error: {STUCK}\n",
    ),
    "without one check": (
        State(is_synced=False),
        "/readyz",
        "exclude=sched-handler-sync&verbose",
        200,
        "[+]leaderElection ok\n[+]scheduling-loop ok\n"
        "[+]shutdown ok\n[+]sched-handler-sync excluded: ok\nreadyz check passed\n",
    ),
    "without a check that is not there": (
        State(elects=False),
        "/livez",
        "exclude=etcd&exclude=disk&verbose",
        200,
        "[+]ping ok\n[+]scheduling-loop ok\n"
        "warn: some health checks cannot be excluded: no matches for \"disk\",\"etcd\"\n"
        "livez check passed\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_answers(case: str) -> None:
    state, path, query, status, body = CASES[case]
    assert ask(state, path, query) == (status, body)


def test_without_election_there_is_no_check_of_it() -> None:
    with pytest.raises(KeyError):
        ask(State(elects=False), "/readyz/leaderElection")


def test_checks_are_counted() -> None:
    metrics = Metrics()
    ask(State(is_ending=True), "/readyz", metrics=metrics)
    ask(State(), "/readyz", metrics=metrics)
    ask(State(is_ending=True), "/readyz", metrics=metrics)
    samples = shown(metrics.health_text())
    assert samples["kubernetes_healthcheck"]["name=shutdown", "type=readyz"] == 0.0
    assert samples["kubernetes_healthcheck"]["name=sched-handler-sync", "type=readyz"] == 1.0
    counts = samples["kubernetes_healthchecks_total"]
    assert counts["name=shutdown", "status=error", "type=readyz"] == 2.0
    assert counts["name=shutdown", "status=success", "type=readyz"] == 1.0
