from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

import pytest

from moorage.api.manifests import Manifest
from moorage.clock import VirtualClock
from moorage_cluster.processes.probes import Prober, ProbeResult
from moorage_cluster.processes.probing import Probing
from tests.http.sockets import Asked, SocketServer, Writer, answer, serving

_TURNS = 20


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        pytest.param([True, True], [False, True], id="two in a row pass"),
        pytest.param([True, False, True, True], [False, False, False, True], id="a failure between"),
        pytest.param([True, True, False, False, True, True, False, False, False],
                     [False, True, True, True, True, True, True, True, False], id="three in a row fail"),
    ],
)  # fmt: skip
def test_several_in_a_row_count(results: list[bool], expected: list[bool]) -> None:
    probe = ProbeResult.of({"successThreshold": 2, "failureThreshold": 3}, passes_at_first=False)
    seen = []
    for passed in results:
        probe.add(passed)
        seen.append(probe.has_passed)
    assert seen == expected


class Probed:
    """A container whose probes say what they are told to, second by second."""

    def __init__(self, container: Manifest, problems: dict[str, Iterable[str]]) -> None:
        self.clock = VirtualClock()
        self.seen: list[tuple[float, object]] = []
        self._problems = {kind: iter(answers) for kind, answers in problems.items()}
        self._container = {"name": "main", **container}

    async def _check(self, probe: Manifest) -> str:
        problem = next(self._problems[probe["kind"]])
        self.seen.append((self.clock.now(), f"{probe['kind']} {problem or 'passed'}"))
        return problem

    async def _run(self, seconds: int) -> None:
        prober = Prober(
            self._container,
            self.clock,
            self._check,
            lambda started, ready: self.seen.append((self.clock.now(), (started, ready))),
            lambda kind, probe: self.seen.append((self.clock.now(), f"kill: {kind}")),
            lambda problem: None,
        )
        task = asyncio.ensure_future(prober.run())
        for _ in range(4 * seconds + 1):
            for _ in range(_TURNS):
                await asyncio.sleep(0)
            self.clock.advance(0.25)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    def within(self, seconds: int) -> list[tuple[float, object]]:
        asyncio.run(self._run(seconds))
        return self.seen


def probe(kind: str, **fields: Any) -> Manifest:
    return {"kind": kind, "periodSeconds": 5, "failureThreshold": 2, **fields}


def test_without_probes_a_container_is_ready_at_once() -> None:
    assert Probed({}, {}).within(5) == [(0, (True, True))]


def test_readiness_is_probed_more_often_until_it_is_there() -> None:
    container = {"readinessProbe": probe("readiness", initialDelaySeconds=1)}
    probed = Probed(container, {"readiness": ["no", "no", "", "no", "no", ""]})
    assert probed.within(17) == [
        (0, (True, False)),
        (1, "readiness no"),
        (1.5, "readiness no"),
        (2, "readiness passed"),
        (2, (True, True)),
        (7, "readiness no"),
        (12, "readiness no"),
        (12, (True, False)),
        (17, "readiness passed"),
        (17, (True, True)),
    ]


def test_a_container_that_does_not_live_is_killed() -> None:
    container = {"livenessProbe": probe("liveness")}
    probed = Probed(container, {"liveness": ["", "no", "no"]})
    assert probed.within(30) == [
        (0, (True, True)),
        (0, "liveness passed"),
        (5, "liveness no"),
        (10, "liveness no"),
        (10, "kill: liveness"),
    ]


def test_others_wait_for_the_startup_probe() -> None:
    container = {"startupProbe": probe("startup"), "livenessProbe": probe("liveness")}
    probed = Probed(container, {"startup": ["no", ""], "liveness": [""] * 9})
    assert probed.within(6) == [
        (0, "startup no"),
        (5, "startup passed"),
        (5, (True, True)),
        (5, "liveness passed"),
    ]
    failing = Probed(container, {"startup": ["no", "no"], "liveness": []})
    assert failing.within(9) == [(0, "startup no"), (5, "startup no"), (5, "kill: startup")]


# -- real ones


async def _answer(server: SocketServer, asked: Asked, writer: Writer) -> None:
    is_well = asked.line.startswith("GET /well?x=1 ")
    writer.write(answer(status="200 OK" if is_well else "500 No"))


async def _exit_code(words: object) -> tuple[int, bytes]:
    if words == ["missing"]:
        raise FileNotFoundError("missing: no such file")
    return (0, b"") if words == ["true"] else (1, b"complaint\n")


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ({"httpGet": {"path": "/well?x=1", "port": "web"}}, ""),
        ({"httpGet": {"path": "/ill", "port": "web"}}, "HTTP probe failed with statuscode: 500"),
        ({"tcpSocket": {"port": "web"}}, ""),
        ({"tcpSocket": {"port": 1}}, "dial tcp 127.0.0.1:1: connect: "),
        ({"exec": {"command": ["true"]}}, ""),
        ({"exec": {"command": ["false"]}}, "complaint\n"),
        ({"exec": {"command": ["missing"]}}, "missing: no such file"),
        ({"tcpSocket": {"port": "other"}}, "invalid literal"),
    ],
)
def test_a_probe_is_made(action: Manifest, expected: str) -> None:
    async def run() -> str:
        async with serving(_answer) as server:
            container = {"ports": [{"name": "web", "containerPort": urlsplit(server.url).port}]}
            return await Probing(container, "127.0.0.1", _exit_code).check({**action, "timeoutSeconds": 30})

    problem = asyncio.run(run())
    assert problem.startswith(expected) if expected else problem == ""
