"""`/healthz`, `/livez` and `/readyz`: named checks, one by one or all together.

The responses are those of kube-scheduler: `ok`, or a line for each check if one fails or `?verbose` is set.
The reason of a failure is shown only at the check's own path (`/readyz/shutdown`), which needs authorization.
All checks run outside the scheduler's loop: if it is stuck, probes fail instead of waiting for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qs

from moorage.http.transport import Request, Response
from moorage.services import responses
from moorage.services.metrics import Metrics
from moorage.services.responses import Handler


class HealthCheck(NamedTuple):
    """A check: returns None if it passes, else the problem."""

    name: str
    check: Callable[[], str | None]


PING = HealthCheck("ping", lambda: None)
"""Passes if there is a response at all."""


def election_check(check: Callable[[], str | None]) -> HealthCheck:
    """Fails if a leader has not renewed its lease for too long without ending."""
    return HealthCheck("leaderElection", check)


def sync_check(is_synced: Callable[[], bool]) -> HealthCheck:
    """Fails until all informers are synced."""
    return HealthCheck(
        "sched-handler-sync", lambda: None if is_synced() else "handlers are not fully synchronized"
    )


def loop_check(problem: Callable[[], str | None]) -> HealthCheck:
    """Fails if the scheduling loop is stuck and the process has to be restarted."""
    return HealthCheck("scheduling-loop", problem)


def shutdown_check(is_shutting_down: Callable[[], bool]) -> HealthCheck:
    """Fails while the process is shutting down."""
    return HealthCheck("shutdown", lambda: "process is shutting down" if is_shutting_down() else None)


def health_routes(
    election: HealthCheck | None,
    loop: HealthCheck,
    sync: HealthCheck,
    shutdown: HealthCheck,
    metrics: Metrics,
) -> dict[str, Handler]:
    """All health paths, with kube-scheduler's checks for each, and the loop's."""
    leader = [election] if election is not None else []
    return {
        **endpoint_routes("healthz", [*(leader or [PING]), loop], metrics),
        **endpoint_routes("livez", [PING, loop], metrics),
        **endpoint_routes("readyz", [*leader, loop, shutdown, sync], metrics),
    }


def endpoint_routes(name: str, checks: Sequence[HealthCheck], metrics: Metrics) -> dict[str, Handler]:
    """A path for all of some checks, and one for each."""

    async def all_checks(request: Request) -> Response:
        return _answer(name, checks, request.query, metrics)

    return {f"/{name}": all_checks, **{f"/{name}/{each.name}": _single(each) for each in checks}}


def _single(check: HealthCheck) -> Handler:
    async def answer(request: Request) -> Response:
        problem = check.check()
        if problem is None:
            return responses.text("ok")
        return responses.error(HTTPStatus.INTERNAL_SERVER_ERROR, f"internal server error: {problem}")

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
        return responses.error(HTTPStatus.INTERNAL_SERVER_ERROR, f"{''.join(lines)}{name} check failed")
    return responses.text(f"{''.join(lines)}{name} check passed\n" if "verbose" in asked else "ok")
