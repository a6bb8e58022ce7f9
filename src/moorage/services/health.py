"""`/healthz`, `/livez` and `/readyz`: named checks, asked one by one or all together.

The answers are those of kube-scheduler: `ok`, or a line a check where something is wrong or `?verbose` asks
for it. Why a check failed is said only at its own path (`/readyz/shutdown`), which takes a permission. All
are given from outside the scheduler's loop: if it is stuck, probes fail instead of waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qs

from moorage.http.transport import Request, Response
from moorage.services import answers
from moorage.services.answers import Handler
from moorage.services.metrics import Metrics


class HealthCheck(NamedTuple):
    """A check: None is well, text is what is wrong."""

    name: str
    check: Callable[[], str | None]


PING = HealthCheck("ping", lambda: None)
"""Passes if there is an answer at all."""


def election_check(check: Callable[[], str | None]) -> HealthCheck:
    """A leader that has not renewed its lease for too long should have ended."""
    return HealthCheck("leaderElection", check)


def sync_check(is_synced: Callable[[], bool]) -> HealthCheck:
    """Before everything in the cluster is known there is nothing to schedule on."""
    return HealthCheck(
        "sched-handler-sync", lambda: None if is_synced() else "handlers are not fully synchronized"
    )


def loop_check(problem: Callable[[], str | None]) -> HealthCheck:
    """A scheduler whose loop does not turn schedules nothing, and has to be restarted."""
    return HealthCheck("scheduling-loop", problem)


def shutdown_check(is_shutting_down: Callable[[], bool]) -> HealthCheck:
    """Who is about to end is not ready for more."""
    return HealthCheck("shutdown", lambda: "process is shutting down" if is_shutting_down() else None)


def health_routes(
    election: HealthCheck | None,
    loop: HealthCheck,
    sync: HealthCheck,
    shutdown: HealthCheck,
    metrics: Metrics,
) -> dict[str, Handler]:
    """All paths for health checks, with the checks that kube-scheduler has at each, and that of the loop."""
    leader = [election] if election is not None else []
    return {
        **endpoint_routes("healthz", [*(leader or [PING]), loop], metrics),
        **endpoint_routes("livez", [PING, loop], metrics),
        **endpoint_routes("readyz", [*leader, loop, shutdown, sync], metrics),
    }


def endpoint_routes(name: str, checks: Sequence[HealthCheck], metrics: Metrics) -> dict[str, Handler]:
    """One path for all of some checks, and one for each."""

    async def all_checks(request: Request) -> Response:
        return _answer(name, checks, request.query, metrics)

    return {f"/{name}": all_checks, **{f"/{name}/{each.name}": _single(each) for each in checks}}


def _single(check: HealthCheck) -> Handler:
    async def answer(request: Request) -> Response:
        problem = check.check()
        if problem is None:
            return answers.text("ok")
        return answers.error(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error: {problem}")

    return answer


def _answer(name: str, checks: Sequence[HealthCheck], query: str, metrics: Metrics) -> Response:
    asked = parse_qs(query, keep_blank_values=True)
    excluded = set(asked.get("exclude", ()))
    lines = []
    is_well = True
    for each in checks:
        if each.name in excluded:
            lines.append(f"[+]{each.name} excluded: ok\n")
            continue
        passed = each.check() is None
        metrics.checked(each.name, name, passed)
        lines.append(f"[+]{each.name} ok\n" if passed else f"[-]{each.name} failed: reason withheld\n")
        is_well &= passed
    unknown = sorted(excluded - {each.name for each in checks})
    if unknown:
        quoted = ",".join(f'"{one}"' for one in unknown)
        lines.append(f"warn: some health checks cannot be excluded: no matches for {quoted}\n")
    if not is_well:
        return answers.error(HTTPStatus.INTERNAL_SERVER_ERROR, f"{''.join(lines)}{name} check failed")
    return answers.text(f"{''.join(lines)}{name} check passed\n" if "verbose" in asked else "ok")
