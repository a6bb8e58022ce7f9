"""Recording a cluster in the same process, also over watches that break; the server's time is virtual."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from moorage.api.decode import InputError
from moorage.client.client import Client
from moorage.client.kinds import POD
from moorage.http.transport import Request, Response
from moorage.simulation.traces.pods import TracePod
from moorage.simulation.traces.recorder import PodRecorder, check_access, new_informer
from moorage.simulation.traces.registry import read_trace_pods
from moorage.simulation.traces.trace_files import write_trace
from tests.client.faults import Faults, FaultyTransport
from tests.client.harness import ClientHarness, in_harness, settled

ALWAYS_BROKEN = Faults(unreachable=1.0)
CUT = Faults(cut=0.5)


def pod(name: str, cpu: str = "100m", priority: int = 0, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu, "nvidia.com/gpu": "1"}, "limits": {"nvidia.com/gpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [{"name": "main", "image": "app", "resources": resources}], **spec},
    }


class Recording:
    """A recorder of a server, behind a network that can break."""

    def __init__(self, harness: ClientHarness) -> None:
        self.harness = harness
        self.network = FaultyTransport(harness.server.api, harness.clock, Faults(), 1)
        client = Client(self.network, harness.server.token)
        self.informer = new_informer(client, harness.clock)
        self.recorder = PodRecorder(self.informer, harness.clock.utc_now)

    async def create(self, name: str, **given: Any) -> None:
        await self.harness.client.create(POD, "default", pod(name, **given))
        await settled()

    async def bind(self, name: str) -> None:
        body = {"target": {"kind": "Node", "name": "n1"}, "metadata": {"name": name}}
        await self.harness.client.call("POST", f"{POD.path('default', name)}/binding", body=body)
        await settled()

    async def finish(self, name: str) -> None:
        """All containers have ended just now."""
        ended = self.harness.clock.utc_now().strftime("%Y-%m-%dT%H:%M:%SZ")
        state = {"terminated": {"exitCode": 0, "finishedAt": ended}}
        container = {"name": "main", "image": "app", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": "Succeeded", "containerStatuses": [{**container, "state": state}]}
        path = f"{POD.path('default', name)}/status"
        await self.harness.client.call(
            "PATCH", path, body={"status": status}, content_type="application/merge-patch+json"
        )
        await settled()

    async def delete(self, name: str) -> None:
        await self.harness.client.delete(POD, "default", name, grace_seconds=0)
        await settled()

    def pods(self) -> dict[str, TracePod]:
        return {each.name: each for each in self.recorder.pods()}


@asynccontextmanager
async def recording(harness: ClientHarness) -> AsyncIterator[Recording]:
    made = Recording(harness)
    watching = asyncio.ensure_future(made.informer.run())
    try:
        await settled()
        yield made
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        made.recorder.close()


def times(each: TracePod) -> tuple[float, float | None, float]:
    return each.at_seconds, each.duration_seconds, each.age_seconds


def test_pods_are_recorded_with_their_times_and_requests(tmp_path: Path) -> None:
    async def scenario(harness: ClientHarness) -> None:
        before = Recording(harness)
        for name in ("old", "over"):
            await before.create(name)
            await before.bind(name)
        await before.finish("over")
        await harness.passes(50)
        async with recording(harness) as made:
            await harness.passes(10)
            await made.create("new", cpu="250m", priority=7)
            await made.create("waits")
            await harness.passes(5)
            await made.bind("new")
            await harness.passes(20)
            await made.finish("new")
            await made.delete("waits")
            await harness.passes(5)
            await made.delete("new")
            await made.create("new")
            await made.delete("old")
        assert (made.recorder.count, made.recorder.running_count) == (4, 1)
        pods = made.pods()
        assert {name: times(each) for name, each in pods.items()} == {
            "old": (0, 40, 50),
            "new": (10, 20, 0),
            "waits": (10, 25, 0),
            "new-2": (40, None, 0),
        }, "one that had ended before the start is left out"
        assert pods["new"].requests == (("cpu", "250m"), ("nvidia.com/gpu", "1"))
        path = tmp_path / "t.jsonl"
        in_order = sorted(pods.values(), key=lambda each: each.at_seconds)
        write_trace(path, ".jsonl", in_order, made.recorder.resources)
        assert [times(each) for each in read_trace_pods(path)] == [times(each) for each in in_order]

    in_harness(scenario)


def test_a_broken_watch_loses_neither_pods_nor_times() -> None:
    async def scenario(harness: ClientHarness) -> None:
        async with recording(harness) as made:
            for number in range(10):
                made.network.faults = CUT
                await made.create(f"pod-{number}")
                await harness.passes(2)
                made.network.faults = ALWAYS_BROKEN
                await made.bind(f"pod-{number}")
                await harness.passes(40, step=1.0)
                await made.finish(f"pod-{number}")
                made.network.faults = Faults()
                await harness.passes(60, step=1.0)
                await made.delete(f"pod-{number}")
        assert made.network.injected["cut"] > 0
        assert made.network.injected["unreachable"] > 0
        assert {name: times(each) for name, each in made.pods().items()} == {
            f"pod-{number}": (102 * number, 40, 0) for number in range(10)
        }

    in_harness(scenario)


class Forbidding:
    """A server on which something is not permitted."""

    def __init__(self, verb: str) -> None:
        self._verb = verb

    async def handle(self, request: Request) -> Response:
        verb = "watch" if "watch=" in request.query else "list"
        if verb == self._verb:
            body = b'{"kind":"Status","status":"Failure","reason":"Forbidden","code":403,"message":"no"}'
            return Response(403, body)
        return Response(200, b'{"kind":"PodList","metadata":{},"items":[]}')


@pytest.mark.parametrize("verb", ["list", "watch"])
def test_a_missing_permission_is_one_line_with_the_rule(verb: str) -> None:
    with pytest.raises(InputError) as error:
        asyncio.run(check_access(Client(Forbidding(verb))))
    rule = f'{{apiGroups: [""], resources: ["pods"], verbs: ["{verb}"]}}'
    assert str(error.value) == f"no permission to {verb} pods (no); add to a ClusterRole: {rule}"
