"""Where LoadAware reads usage: metrics.k8s.io and Prometheus, with good and bad answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

import pytest

from moorage import ConnectionFailed, RequestError
from moorage.optional_plugins.load_aware.readings import UsageReadings, reading_of
from tests.http.sockets import CHUNKED, Asked, Behaviour, SocketServer, Writer, answer, chunk, serving
from tests.optional_plugins.load_aware.measuring import GIB, NOW, Scene, manifest, node, running

PROFILE = "default-scheduler"


class MetricsServer:
    """A client whose metrics.k8s.io answers what it is told."""

    def __init__(self, *items: Any) -> None:
        self.answer: Sequence[Any] | Exception | None = items

    async def list(self, kind: Any) -> Any:
        assert kind.path() == "/apis/metrics.k8s.io/v1beta1/nodes"
        if isinstance(self.answer, Exception):
            raise self.answer
        return None if self.answer is None else list(self.answer)


def read(scene: Scene) -> dict[str, tuple[int, int]]:
    usage = reading_of(scene.handle.objects, PROFILE)
    return {name: (each.cpu, each.memory) for name, each in usage.items()}


def in_loop(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def scene_of(client: Any, **args: Any) -> Scene:
    return Scene([node("a"), node("b")], args, client)


# metrics.k8s.io


def test_usage_is_read_from_metrics_k8s_io() -> None:
    async def scenario() -> None:
        bare = manifest("b", "7", "2Gi")
        del bare["kind"], bare["apiVersion"]
        scene = scene_of(MetricsServer(manifest("a", "123456789n", "1Ki"), bare))
        await scene.poll()
        assert read(scene) == {"a": (124, 1024), "b": (7000, 2 * GIB)}

    in_loop(scenario)


BAD_ITEMS: dict[str, Any] = {
    "no object": 7,
    "no timestamp": {**manifest("b"), "timestamp": None},
    "no time": {**manifest("b"), "timestamp": "noon"},
    "a usage that is no number": {**manifest("b"), "usage": {"cpu": "much", "memory": "1"}},
    "a negative usage": {**manifest("b"), "usage": {"cpu": "-1", "memory": "1"}, "window": "x"},
    "no window": {**manifest("b"), "window": "soon"},
    "too old": manifest("b", at=-181.0),
}


@pytest.mark.parametrize("item", BAD_ITEMS.values(), ids=BAD_ITEMS)
def test_a_node_whose_usage_cannot_be_read_has_none(item: Any) -> None:
    async def scenario() -> None:
        scene = scene_of(MetricsServer(manifest("a"), item))
        await scene.poll()
        assert read(scene) == {"a": (1000, GIB)}

    in_loop(scenario)


FAILURES: dict[str, tuple[Exception, str]] = {
    "there is no metrics-server": (
        RequestError(404, "NotFound", "the server could not find it"),
        "nodes.metrics.k8s.io: it is not served",
    ),
    "it may not be read": (
        RequestError(403, "Forbidden", "not allowed"),
        "nodes.metrics.k8s.io: not allowed",
    ),
    "no connection": (ConnectionFailed("refused"), "nodes.metrics.k8s.io: refused"),
}


@pytest.mark.parametrize(("error", "reason"), FAILURES.values(), ids=FAILURES)
def test_a_failure_is_logged_once_and_the_last_usage_counts_until_it_is_too_old(
    error: Exception, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        server = MetricsServer(manifest("a"), manifest("b"))
        scene = scene_of(server, maxAge="1m")
        caplog.set_level("INFO", "moorage.load_aware")
        await scene.poll()
        server.answer = error
        for seconds, nodes in ((59, 2), (1, 2), (1, 0), (1, 0)):
            scene.clock.advance(seconds)
            await scene.poll()
            assert len(read(scene)) == nodes
        server.answer = [manifest("a", at=62.0), manifest("b", at=62.0)]
        await scene.poll()
        assert len(read(scene)) == 2

    in_loop(scenario)
    assert [message.removeprefix("LoadAware: ") for message in caplog.messages] == [
        f"reading the usage of nodes failed: {reason}; the last usage counts for up to 1m0s",
        "2 of 2 nodes have no usage of the last 1m0s: they count with requests",
        "the usage of nodes is read again",
        "all nodes have usage",
    ]


@pytest.mark.parametrize("answer", [KeyError("items"), None], ids=["no list", "nothing"])
def test_an_answer_that_is_no_list_is_a_failure(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        server = MetricsServer()
        server.answer = answer
        await scene_of(server).poll()

    in_loop(scenario)
    assert "nodes.metrics.k8s.io: the answer is no list" in caplog.text


def test_usage_of_a_node_whose_clock_is_ahead_gets_old_from_now_on() -> None:
    async def scenario() -> None:
        server = MetricsServer(manifest("a", at=7200.0))
        scene = scene_of(server, maxAge="1m")
        await scene.poll()
        server.answer = ConnectionFailed("lost")
        for seconds, nodes in ((60, 1), (1, 0)):
            scene.clock.advance(seconds)
            await scene.poll()
            assert len(read(scene)) == nodes

    in_loop(scenario)


def test_usage_that_is_the_same_changes_nothing() -> None:
    async def scenario() -> None:
        scene = scene_of(MetricsServer(manifest("a")))
        await scene.poll()
        version = scene.handle.objects.of(UsageReadings).version
        await scene.poll()
        assert scene.handle.objects.of(UsageReadings).version == version

    in_loop(scenario)


def test_pods_are_tried_again_when_a_node_has_cooled_down() -> None:
    async def scenario() -> None:
        server = MetricsServer(manifest("a", "9"), manifest("b", "9"))
        scene = scene_of(server)

        async def reads(*items: Any) -> int:
            server.answer = items
            scene.cache.snapshot()
            scene.announced.clear()
            await scene.poll()
            scene.cache.snapshot()
            return len(scene.announced)

        assert await reads(manifest("a", "9"), manifest("b", "9")) == 0, "they are hot now"
        assert await reads(manifest("a", "8500m"), manifest("b", "9")) == 0, "they still are"
        assert await reads(manifest("a", "7"), manifest("b", "9")) == 1
        assert await reads(manifest("a", "1"), manifest("b", "9")) == 0, "it was cool before"
        assert await reads(manifest("a", "1")) == 1, "nothing is known of the other one any more"

    in_loop(scenario)


def test_a_pod_that_is_gone_may_help_if_it_was_estimated() -> None:
    async def scenario() -> None:
        scene = scene_of(MetricsServer(manifest("a", "9")))
        await scene.poll()
        (hint,) = (each for each in scene.plugin.events() if each.event.resource == "Pod")
        waiting = running("waiting", "")
        assert hint.helps(waiting, running("new", "a", None), None)
        assert hint.helps(waiting, running("young", "a", -20.0), None)
        assert not hint.helps(waiting, running("old", "a"), None)
        assert not hint.helps(waiting, running("elsewhere", "b", None), None)

    in_loop(scenario)


# Prometheus


def vector(*values: tuple[str, str], at: float = 0.0) -> bytes:
    series = [{"metric": {"node": name}, "value": [NOW.timestamp() + at, value]} for name, value in values]
    return json.dumps({"status": "success", "data": {"resultType": "vector", "result": series}}).encode()


async def good(server: SocketServer, asked: Asked, writer: Writer) -> None:
    cpu, memory = vector(("a", "2.5"), ("b", "1")), vector(("a", "3e9"))
    writer.write(answer(cpu if "cpu" in asked.line else memory))


def test_usage_is_read_from_prometheus(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")

    async def scenario() -> None:
        async with serving(good) as server:
            prometheus = {"url": f"{server.url}/prom/", "tokenFile": str(token), "window": "2m"}
            scene = scene_of(MetricsServer(), prometheus=prometheus)
            await scene.poll()
            assert read(scene) == {"a": (2500, 3_000_000_000)}, "b has no memory"
            assert len(server.asked) == 2
            assert server.asked[0].line.startswith("GET /prom/api/v1/query?query=sum+by+%28node%29")
            assert "%5B120s%5D" in server.asked[0].line
            assert server.asked[0].header("authorization") == ["Bearer secret"]
            usage = reading_of(scene.handle.objects, PROFILE)["a"]
            assert usage.end - usage.begin == 120 * 10**6

    in_loop(scenario)


def answering(data: bytes) -> Behaviour:
    async def behave(server: SocketServer, asked: Asked, writer: Writer) -> None:
        writer.write(data)

    return behave


async def endless(server: SocketServer, asked: Asked, writer: Writer) -> None:
    writer.write(CHUNKED)
    for _ in range(17):
        writer.write(chunk(b" " * (1 << 20)))
        await writer.drain()


BAD_ANSWERS: dict[str, tuple[Behaviour, str]] = {
    "an error of the server": (answering(answer(b"oh", "500 Oops")), "status 500: 'oh'"),
    "a redirection": (answering(answer(b"", "302 Found", location="/")), "status 302"),
    "no JSON": (answering(answer(b"<html>")), "the answer is not JSON: '<html>'"),
    "deep JSON": (answering(answer(b"[" * 100_000)), "the answer is not JSON"),
    "another object": (answering(answer(b'{"status": "success"}')), "the answer is not one of Prometheus"),
    "no object": (answering(answer(b"[]")), "the answer is not one of Prometheus"),
    "no list": (
        answering(answer(b'{"status": "success", "data": {"resultType": "vector", "result": 7}}')),
        "the answer is not one of Prometheus",
    ),
    "a query that is wrong": (
        answering(answer(b'{"status": "error", "error": "parse error"}')),
        "parse error",
    ),
    "a matrix": (
        answering(answer(b'{"status": "success", "data": {"resultType": "matrix", "result": []}}')),
        "a query gave a matrix, not an instant vector",
    ),
    "no HTTP": (answering(b"hello\r\n\r\n"), "the server does not speak HTTP"),
    "too large": (endless, "the answer is larger than 16777216 bytes"),
}


@pytest.mark.parametrize(("behaviour", "reason"), BAD_ANSWERS.values(), ids=BAD_ANSWERS)
def test_a_bad_answer_is_no_usage(
    behaviour: Behaviour, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with serving(behaviour) as server:
            scene = scene_of(MetricsServer(), prometheus={"url": server.url})
            await scene.poll()
            assert read(scene) == {}

    in_loop(scenario)
    assert reason in caplog.text


BAD_SERIES: dict[str, Any] = {
    "another label": {"metric": {"instance": "b"}, "value": [0, "1"]},
    "no number": {"metric": {"node": "b"}, "value": [NOW.timestamp(), "NaN"]},
    "infinity": {"metric": {"node": "b"}, "value": [NOW.timestamp(), "+Inf"]},
    "a time far away": {"metric": {"node": "b"}, "value": [1e300, "1"]},
    "no value": {"metric": {"node": "b"}},
    "no series": 7,
}


@pytest.mark.parametrize("series", BAD_SERIES.values(), ids=BAD_SERIES)
def test_a_series_that_cannot_be_read_is_left_out(series: Any) -> None:
    async def scenario() -> None:
        decoded = json.loads(vector(("a", "1")))
        decoded["data"]["result"].append(series)
        async with serving(answering(answer(json.dumps(decoded).encode()))) as server:
            scene = scene_of(MetricsServer(), prometheus={"url": server.url})
            await scene.poll()
            assert read(scene) == {"a": (1000, 1)}

    in_loop(scenario)


def test_a_slow_server_is_not_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        has_come = asyncio.Event()

        async def slow(server: SocketServer, asked: Asked, writer: Writer) -> None:
            writer.write(CHUNKED + chunk(b"{"))
            has_come.set()
            await server.released.wait()

        async with serving(slow) as server:
            scene = scene_of(MetricsServer(), prometheus={"url": server.url}, timeout="5s")
            polling = asyncio.ensure_future(scene.poll())
            await has_come.wait()
            scene.clock.advance(5)
            await polling

    in_loop(scenario)
    assert "reading the usage of nodes failed: it took longer than 5 s" in caplog.text


def test_a_server_that_is_not_there(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        async with serving(good) as server:
            url = server.url
        await scene_of(MetricsServer(), prometheus={"url": url}).poll()
        prometheus = {"url": "https://127.0.0.1:1", "caFile": str(tmp_path / "none")}
        await scene_of(MetricsServer(), prometheus=prometheus).poll()

    in_loop(scenario)
    first, second = (each for each in caplog.messages if "failed" in each)
    assert "cannot be reached" in first
    assert "none: No such file or directory" in second
