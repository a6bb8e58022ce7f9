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
from tests.scheduler.running import SchedulerHarness, in_harness

CLAIM: Manifest = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]}},
}
GIVEN: Manifest = {
    "devices": {"results": [{"request": "one", "driver": "gpu.example.com", "pool": "p", "device": "d0"}]}
}


async def _stored_claim(harness: SchedulerHarness) -> Manifest:
    return await harness.client.get(RESOURCE_CLAIM, "default", "gpu")


async def _claim(harness: SchedulerHarness) -> ResourceClaim:
    return convert(await harness.client.create(RESOURCE_CLAIM, "default", CLAIM), ResourceClaim)


def _status(*pods: str, allocation: Manifest = GIVEN) -> ResourceClaimStatus:
    consumers = tuple(ResourceClaimConsumer(resource="pods", name=name, uid=f"uid-{name}") for name in pods)
    return ResourceClaimStatus(allocation=convert(allocation, AllocationResult), reserved_for=consumers)


def _users(claim: Manifest) -> list[str]:
    return [each["name"] for each in claim["status"].get("reservedFor", [])]


def test_a_claim_is_protected_and_written() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        claim = protected(await _claim(harness))
        await ResourceClaimWriter(harness.client).write_status(claim, _status("a"))
        stored = await _stored_claim(harness)
        assert stored["metadata"]["finalizers"] == [FINALIZER]
        assert _users(stored) == ["a"]
        assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "d0"

    in_harness(scenario)


def test_two_pods_that_share_a_claim_do_not_push_each_other_out() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        writer = ResourceClaimWriter(harness.client)
        first = await writer.write_status(await _claim(harness), _status("a"))
        await writer.write_status(first, _status("a", "b"))
        # A writer that knows only the first consumer adds itself, and later removes itself.
        third = await writer.write_status(first, _status("a", "c"))
        assert _users(await _stored_claim(harness)) == ["a", "b", "c"]
        await writer.write_status(first, _status())
        assert _users(await _stored_claim(harness)) == ["b", "c"]
        assert third.status.reserved_for[-1].name == "c"

    in_harness(scenario)


def test_a_claim_that_got_other_devices_meanwhile_is_left_alone() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        writer = ResourceClaimWriter(harness.client)
        claim = await _claim(harness)
        other = {"devices": {"results": [{**GIVEN["devices"]["results"][0], "device": "d1"}]}}
        await writer.write_status(claim, _status("b", allocation=other))
        with pytest.raises(RequestError) as refused:
            await writer.write_status(claim, _status("a"))
        assert refused.value.is_conflict
        stored = await _stored_claim(harness)
        assert _users(stored) == ["b"]
        assert stored["status"]["allocation"]["devices"]["results"][0]["device"] == "d1"

    in_harness(scenario)


class Forgetful:
    """Does what it is asked, and forgets every other answer."""

    def __init__(self, harness: SchedulerHarness) -> None:
        self._harness = harness
        self.asked = 0

    async def handle(self, request: Request) -> Response:
        self.asked += 1
        response = await self._harness.line.handle(request)
        if self.asked % 2:
            raise AnswerLost("connection reset")
        return response


def test_what_is_written_twice_because_the_answer_was_lost_is_written_once() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        claim = protected(await _claim(harness))
        forgetful = Forgetful(harness)
        client = Client(RetryingTransport(forgetful, harness.clock, harness.random), harness.server.token)
        writing = harness.runs(ResourceClaimWriter(client).write_status(claim, _status("a")))
        await harness.passes(30)
        assert forgetful.asked > 4
        assert writing.result().status.reserved_for[0].name == "a"
        assert _users(await _stored_claim(harness)) == ["a"]

    in_harness(scenario)


def test_a_claim_is_deleted_whatever_happened_to_it() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        writer = ResourceClaimWriter(harness.client)
        stale = await _claim(harness)
        await writer.write_status(protected(stale), _status("a"))
        await writer.delete(stale)
        assert not await harness.exists(RESOURCE_CLAIM, "default", "gpu")
        await _claim(harness)
        await writer.delete(stale)  # Another one of that name is none of our business.
        assert await harness.exists(RESOURCE_CLAIM, "default", "gpu")

    in_harness(scenario)


def test_a_claim_that_vanishes_is_a_refusal() -> None:
    async def scenario(harness: SchedulerHarness) -> None:
        claim = await _claim(harness)
        await harness.client.delete(RESOURCE_CLAIM, "default", "gpu")
        with pytest.raises(RequestError) as refused:
            await ResourceClaimWriter(harness.client).write_status(claim, _status("a"))
        assert refused.value.is_not_found

    in_harness(scenario)
