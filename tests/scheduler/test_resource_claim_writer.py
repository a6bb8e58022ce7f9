"""Statuses of device claims, into which several pods and drivers write."""

from __future__ import annotations

import pytest

from moorage.api.decode import convert
from moorage.api.devices import (
    AllocationResult,
    ResourceClaim,
    ResourceClaimConsumer,
    ResourceClaimStatus,
)
from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import RESOURCE_CLAIM
from moorage.client.retry import RetryingTransport
from moorage.http.errors import AnswerLost, RequestError
from moorage.http.transport import Request, Response
from moorage.plugins.dynamic_resources.pod_claims import FINALIZER, protected
from moorage.scheduler.resource_claim_writer import ResourceClaimWriter
from tests.scheduler.running import World, in_world

CLAIM: Manifest = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
}
GIVEN: Manifest = {
    "devices": {"results": [{"request": "one", "driver": "gpu.example.com", "pool": "p", "device": "d0"}]}
}


async def _stored_claim(world: World) -> Manifest:
    return await world.client.get(RESOURCE_CLAIM, "default", "gpu")


async def _claim(world: World) -> ResourceClaim:
    return convert(await world.client.create(RESOURCE_CLAIM, "default", CLAIM), ResourceClaim)


def _status(*pods: str, allocation: Manifest = GIVEN) -> ResourceClaimStatus:
    consumers = tuple(ResourceClaimConsumer(resource="pods", name=name, uid=f"uid-{name}") for name in pods)
    return ResourceClaimStatus(allocation=convert(allocation, AllocationResult), reserved_for=consumers)


def _users(claim: Manifest) -> list[str]:
    return [each["name"] for each in claim["status"].get("reservedFor", [])]


def test_a_claim_is_protected_and_written() -> None:
    async def scenario(world: World) -> None:
        claim = protected(await _claim(world))
        await ResourceClaimWriter(world.client).write_status(claim, _status("a"))
        stored = await _stored_claim(world)
        assert stored["metadata"]["finalizers"] == [FINALIZER]
        assert _users(stored) == ["a"]
        assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "d0"

    in_world(scenario)


def test_two_pods_that_share_a_claim_do_not_push_each_other_out() -> None:
    async def scenario(world: World) -> None:
        writer = ResourceClaimWriter(world.client)
        first = await writer.write_status(await _claim(world), _status("a"))
        await writer.write_status(first, _status("a", "b"))
        # A writer that knows only the first consumer adds itself, and later removes itself.
        third = await writer.write_status(first, _status("a", "c"))
        assert _users(await _stored_claim(world)) == ["a", "b", "c"]
        await writer.write_status(first, _status())
        assert _users(await _stored_claim(world)) == ["b", "c"]
        assert third.status.reserved_for[-1].name == "c"

    in_world(scenario)


def test_a_claim_that_got_other_devices_meanwhile_is_left_alone() -> None:
    async def scenario(world: World) -> None:
        writer = ResourceClaimWriter(world.client)
        claim = await _claim(world)
        other = {"devices": {"results": [{**GIVEN["devices"]["results"][0], "device": "d1"}]}}
        await writer.write_status(claim, _status("b", allocation=other))
        with pytest.raises(RequestError) as refused:
            await writer.write_status(claim, _status("a"))
        assert refused.value.is_conflict
        stored = await _stored_claim(world)
        assert _users(stored) == ["b"]
        assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "d1"

    in_world(scenario)


class Forgetful:
    """Does what it is asked, and forgets every other answer."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.asked = 0

    async def handle(self, request: Request) -> Response:
        self.asked += 1
        response = await self._world.line.handle(request)
        if self.asked % 2:
            raise AnswerLost("connection reset")
        return response


def test_what_is_written_twice_because_the_answer_was_lost_is_written_once() -> None:
    async def scenario(world: World) -> None:
        claim = protected(await _claim(world))
        forgetful = Forgetful(world)
        client = Client(RetryingTransport(forgetful, world.clock, world.random), world.server.token)
        writing = world.runs(ResourceClaimWriter(client).write_status(claim, _status("a")))
        await world.passes(30)
        assert forgetful.asked > 4
        assert writing.result().status.reserved_for[0].name == "a"
        assert _users(await _stored_claim(world)) == ["a"]

    in_world(scenario)


def test_a_claim_is_deleted_whatever_happened_to_it() -> None:
    async def scenario(world: World) -> None:
        writer = ResourceClaimWriter(world.client)
        stale = await _claim(world)
        await writer.write_status(protected(stale), _status("a"))
        await writer.delete(stale)
        assert not await world.exists(RESOURCE_CLAIM, "default", "gpu")
        await _claim(world)
        await writer.delete(stale)  # Another one of that name is none of our business.
        assert await world.exists(RESOURCE_CLAIM, "default", "gpu")

    in_world(scenario)


def test_a_claim_that_vanishes_is_a_refusal() -> None:
    async def scenario(world: World) -> None:
        claim = await _claim(world)
        await world.client.delete(RESOURCE_CLAIM, "default", "gpu")
        with pytest.raises(RequestError) as refused:
            await ResourceClaimWriter(world.client).write_status(claim, _status("a"))
        assert refused.value.is_not_found

    in_world(scenario)
