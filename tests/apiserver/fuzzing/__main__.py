"""The command: `python -m tests.apiserver.fuzzing --requests 100000 --seed 1`."""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from moorage.apiserver.embedded import Settings
from tests.apiserver.fuzzing.checks import Wrong
from tests.apiserver.fuzzing.overhttp import run_http
from tests.apiserver.fuzzing.request import load, save
from tests.apiserver.fuzzing.runs import Report, replay, run, shortened


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Send random requests to the API server and check all it does."
    )
    parser.add_argument("--requests", type=int, default=100_000, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="where chance begins")
    parser.add_argument(
        "--only", type=int, help="just this request, after those that went to its server before"
    )
    parser.add_argument("--corpus", type=Path, help="send the requests of this file instead")
    parser.add_argument("--http", action="store_true", help="over a socket, with HTTP that is damaged too")
    parser.add_argument("--rbac", action="store_true", help="with authorization=RBAC")
    parser.add_argument("--persistent", action="store_true", help="servers keep their objects in a directory")
    parser.add_argument("--save", type=Path, default=Path(), help="where failures are written to")
    chosen = parser.parse_args()
    return asyncio.run(_main(chosen))


async def _main(chosen: argparse.Namespace) -> int:
    settings = Settings(authorization="RBAC" if chosen.rbac else "AlwaysAllow")
    if chosen.corpus:
        shots = load(chosen.corpus)
        codes, why = await replay(shots, settings)
        for shot, code in zip(shots, codes, strict=False):
            _say(f"{shot}\n-> {code}\n")
        _say(f"{shots[len(codes)] if len(codes) < len(shots) else ''}\n-> {why}" if why else "All is well.")
        return 1 if why else 0
    if chosen.http:
        return await _over_http(chosen)
    first, last = (0, chosen.requests - 1) if chosen.only is None else (chosen.only, chosen.only)
    report = await run(chosen.seed, first, last, _say, settings, persistent=chosen.persistent)
    await _save(report, chosen.seed, chosen.save, settings)
    _say(str(report))
    return 1 if report.failures else 0


async def _over_http(chosen: argparse.Namespace) -> int:
    try:
        counts = await run_http(chosen.seed, chosen.requests)
    except Wrong as wrong:
        _say(str(wrong))
        return 1
    codes = ", ".join(f"{code}: {count}" for code, count in sorted(counts.items()))
    _say(f"{chosen.requests} requests over HTTP; {codes}; 0 failures")
    return 0


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


sys.exit(main())
