"""The command: `python -m tests.apiserver.fuzzing --requests 100000 --seed 1 --seed 2`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import deque
from math import inf
from pathlib import Path

from moorage_cluster.apiserver.embedded import Settings
from tests.apiserver.client import WITH_GROUPS
from tests.apiserver.fuzzing.campaign import Campaign, batches
from tests.apiserver.fuzzing.overhttp import run_http
from tests.apiserver.fuzzing.reports import Report
from tests.apiserver.fuzzing.request import load, save
from tests.apiserver.fuzzing.runs import replay, run, shortened

_MAX_SAVED = 10
"""More requests than this are not saved before those that do not matter are left out."""
_SHORTENING_SECONDS = 20.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Send random requests to the API server and check all it does."
    )
    parser.add_argument("--requests", type=int, default=100_000, help="how many")
    parser.add_argument(
        "--seed",
        type=int,
        action="append",
        help="where chance begins; repeatable, they share the requests",
    )
    parser.add_argument("--processes", type=int, default=2, help="how many send requests at a time")
    parser.add_argument("--minutes", type=float, default=inf, help="begin no batch of requests after them")
    parser.add_argument(
        "--only", type=int, help="just this request, after those that went to its server before"
    )
    parser.add_argument("--corpus", type=Path, help="send the requests of this file instead")
    parser.add_argument("--http", action="store_true", help="over a socket, with HTTP that is damaged too")
    parser.add_argument("--rbac", action="store_true", help="with authorization=RBAC")
    parser.add_argument("--persistent", action="store_true", help="servers keep their objects in a directory")
    parser.add_argument("--save", type=Path, default=Path(), help="where failures are written to")
    chosen = parser.parse_args()
    chosen.seed = chosen.seed or [1]
    settings = Settings(authorization="RBAC" if chosen.rbac else "AlwaysAllow", version=WITH_GROUPS)
    if chosen.corpus or chosen.http or chosen.persistent or chosen.only is not None:
        return asyncio.run(_main(chosen, settings))
    return _campaign(chosen, settings)


def _campaign(chosen: argparse.Namespace, settings: Settings) -> int:
    chosen.save.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(deque(batches(chosen.seed, chosen.requests, settings)), chosen.save)
    campaign.run(chosen.processes, chosen.minutes * 60)
    for at, failure in enumerate(campaign.report.failures):
        path = chosen.save / f"fuzz-{at}.jsonl"
        shots = failure.shots
        if len(shots) > _MAX_SAVED:
            shots = asyncio.run(shortened(failure, settings, _SHORTENING_SECONDS))
        save(shots, path)
        _say(f"request {failure.number}, {failure.why}")
        _say(f"again: --corpus {path} ({len(shots)} requests)")
    _say(f"{campaign.report}\n{campaign.memory_verdict}")
    return 1 if campaign.report.failures else 0


async def _main(chosen: argparse.Namespace, settings: Settings) -> int:
    (seed,) = chosen.seed
    if chosen.corpus:
        shots = load(chosen.corpus)
        codes, why = await replay(shots, settings)
        for shot, code in zip(shots, codes, strict=False):
            _say(f"{shot}\n-> {code}\n")
        _say(f"{shots[len(codes)] if len(codes) < len(shots) else ''}\n-> {why}" if why else "All is well.")
        return 1 if why else 0
    if chosen.http:
        report = await run_http(seed, 0, chosen.requests - 1)
        for failure in report.failures:
            _say(f"seed {seed}, request {failure.number} {failure.why}\n{[*map(str, failure.shots)]}")
        _say(str(report))
        return 1 if report.failures else 0
    first, last = (0, chosen.requests - 1) if chosen.only is None else (chosen.only, chosen.only)
    report = await run(seed, first, last, _say, settings, persistent=chosen.persistent)
    await _save(report, seed, chosen.save, settings)
    _say(str(report))
    return 1 if report.failures else 0


async def _save(report: Report, seed: int, directory: Path, settings: Settings) -> None:
    """Write failures so that they can be sent again."""
    for failure in report.failures:
        path = directory / f"fuzz-{seed}-{failure.number}.jsonl"
        shots = await shortened(failure, settings)
        save(shots, path)
        _say(f"again: --seed {seed} --only {failure.number}, or --corpus {path} ({len(shots)} requests)")


def _say(text: str) -> None:
    sys.stdout.write(text.encode("utf-8", "backslashreplace").decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
