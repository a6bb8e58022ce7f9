"""Leader election with virtual time: the lease, the leader at any time, and faults."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.client.kinds import CORE_EVENT, LEASE
from moorage.config.duration import Duration
from moorage.config.types import LeaderElection as Config
from moorage.http.transport import Request
from moorage.services.leader_election import ElectionConfigError, LeaderElector, LostLease, new_identity
from moorage.services.metrics import Metrics
from tests.apiserver.client import settled
from tests.services.faults import PausableClock, PausableLink, ServerHarness


class Candidate:
    """One scheduler's election, and what came of it."""

    def __init__(
        self, harness: ServerHarness, name: str, seed: int = 1, config: Config | None = None
    ) -> None:
        self.clock = PausableClock(harness.clock)
        self.link = PausableLink(harness.server.api, self.clock)
        self.metrics = Metrics()
        self.election = LeaderElector(
            harness.client(self.link),
            config or Config(),
            self.clock,
            Random(seed),
            name,
            metrics=self.metrics,
        )
        self.states: list[str] = []
        self.task = asyncio.ensure_future(
            self.election.run(lambda: self.states.append("started"), lambda: self.states.append("stopped"))
        )

    @property
    def leads(self) -> bool:
        return self.election.is_leading

    @property
    def is_lost(self) -> bool:
        return self.task.done() and isinstance(self.task.exception(), LostLease)

    @property
    def status(self) -> float:
        return self.metrics.leader_status.labels("kube-scheduler").value

    async def end(self) -> None:
        self.clock.resume()
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def lease(harness: ServerHarness) -> dict[str, Any]:
    return (await harness.client().get(LEASE, "kube-system", "kube-scheduler"))["spec"]


async def events(harness: ServerHarness) -> list[dict[str, Any]]:
    return await harness.client().list(CORE_EVENT, "kube-system")


def in_world(test: Callable[[ServerHarness], Any]) -> None:
    async def body() -> None:
        harness = ServerHarness()
        try:
            await test(harness)
        finally:
            harness.server.close()

    asyncio.run(body())


def test_the_first_candidate_takes_the_lease_and_tells() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "host-a_1")
        assert one.status == 0.0
        await settled()
        assert one.leads
        assert one.states == ["started"]
        assert one.status == 1.0
        assert await lease(harness) == {
            "holderIdentity": "host-a_1",
            "leaseDurationSeconds": 15,
            "acquireTime": "2026-03-01T12:00:00.000000Z",
            "renewTime": "2026-03-01T12:00:00.000000Z",
            "leaseTransitions": 0,
        }
        stored = await harness.client().get(LEASE, "kube-system", "kube-scheduler")
        [event] = await events(harness)
        about = event["involvedObject"]
        assert (about["kind"], about["apiVersion"]) == ("Lease", "coordination.k8s.io/v1")
        assert about["uid"] == stored["metadata"]["uid"]
        assert event["message"] == "host-a_1 became leader"
        assert event["reason"] == "LeaderElection"
        assert event["type"] == "Normal"
        assert event["source"] == {"component": "default-scheduler"}
        assert event["reportingComponent"] == "default-scheduler"
        assert event["count"] == 1
        assert event["metadata"]["name"].startswith("kube-scheduler.")
        await one.end()

    in_world(test)


def test_a_leader_renews_every_retry_period_without_reading() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(9)
        spec = await lease(harness)
        assert spec["renewTime"] == "2026-03-01T12:00:08.000000Z"
        assert spec["acquireTime"] == "2026-03-01T12:00:00.000000Z"
        methods = [method for method, path in one.link.requests if path.endswith("leases/kube-scheduler")]
        assert methods == ["GET", "PUT", "PUT", "PUT", "PUT"]
        assert one.leads
        await one.end()

    in_world(test)


def test_a_dead_leader_is_followed_after_the_lease_by_the_follower_s_clock() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(3)
        two = Candidate(harness, "b")
        await harness.pass_time(5)
        assert not two.leads
        assert two.election.leader == "a"
        await one.end()  # As killed: nothing is released.
        died = harness.clock.now()
        while not two.leads:
            assert harness.clock.now() - died < 15 + 2 * 4.4
            await harness.pass_time(0.25)
        assert harness.clock.now() - died > 12
        spec = await lease(harness)
        assert (spec["holderIdentity"], spec["leaseTransitions"]) == ("b", 1)
        assert spec["acquireTime"] == spec["renewTime"]
        await two.end()

    in_world(test)


def test_a_holder_whose_clock_is_years_off_is_not_followed_early() -> None:
    async def test(harness: ServerHarness) -> None:
        record = {
            "holderIdentity": "long-ago",
            "leaseDurationSeconds": 15,
            "acquireTime": "2001-01-01T00:00:00.000000Z",
            "renewTime": "2001-01-01T00:00:00.000000Z",
            "leaseTransitions": 4,
        }
        meta = {"name": "kube-scheduler", "namespace": "kube-system"}
        await harness.client().create(
            LEASE,
            "kube-system",
            {"apiVersion": LEASE.api_version, "kind": "Lease", "metadata": meta, "spec": record},
        )
        one = Candidate(harness, "a")
        await harness.pass_time(14.5)
        assert not one.leads
        await harness.pass_time(5)
        assert one.leads
        assert (await lease(harness))["leaseTransitions"] == 5
        await one.end()

    in_world(test)


def test_a_candidate_that_stops_gives_the_lease_back() -> None:
    async def test(harness: ServerHarness) -> None:
        one, two = Candidate(harness, "a"), Candidate(harness, "b", seed=2)
        await harness.pass_time(4)
        assert one.leads
        assert not two.leads
        one.election.stop()
        await settled()
        assert one.task.done()
        assert one.task.exception() is None
        assert one.states == ["started", "stopped"]
        assert one.status == 0.0
        spec = await lease(harness)
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) in [("", 1), ("b", 15)]
        await harness.pass_time(4.5)
        assert two.leads
        messages = [event["message"] for event in await events(harness)]
        assert sorted(messages) == ["a became leader", "a stopped leading", "b became leader"]
        await two.end()

    in_world(test)


def test_the_record_of_a_released_lease() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(3)
        one.election.stop()
        await settled()
        spec = await lease(harness)
        moment = "2026-03-01T12:00:03.000000Z"
        assert spec == {
            "holderIdentity": "",
            "leaseDurationSeconds": 1,
            "acquireTime": moment,
            "renewTime": moment,
            "leaseTransitions": 0,
        }

    in_world(test)


def test_a_candidate_that_stops_before_it_leads_releases_nothing() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(1)
        two = Candidate(harness, "b")
        await harness.pass_time(3)
        two.election.stop()
        await settled()
        assert two.states == ["stopped"]
        assert two.task.exception() is None
        assert (await lease(harness))["holderIdentity"] == "a"
        await one.end()

    in_world(test)


@pytest.mark.parametrize("outcome", ["refused", "500", "409", "lost"])
def test_a_lease_that_cannot_be_renewed_is_lost_before_it_expires(outcome: str) -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(5)
        renewed = 4.0
        one.link.plan = lambda request: outcome if request.method == "PUT" else ""
        await harness.pass_time(6)
        assert one.leads, "there is time to try again"
        if outcome == "lost":
            # What was carried out counts once the lease is read, but no answer ever says that it was renewed.
            renewed = harness.clock.now()
        while not one.task.done():
            assert harness.clock.now() < renewed + 15
            await harness.pass_time(0.25)
        assert one.is_lost
        assert one.states == ["started", "stopped"]
        assert not one.leads
        assert one.status == 0.0

    in_world(test)


def test_answers_that_never_come_are_not_waited_for() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(5)
        one.link.late_seconds = 1e6
        one.link.plan = lambda request: "late"
        await harness.pass_time(11)
        assert one.is_lost

    in_world(test)


def stall(one: Candidate, until: float) -> None:
    """Let no request through to the server before that time."""

    def plan(request: Request) -> str:
        one.link.late_seconds = max(until - one.clock.now(), 0.0)
        return "late"

    one.link.plan = plan


def test_a_server_that_stalls_for_8_s_does_not_cost_the_lease() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(5.75)
        stall(one, until=14.0)  # It is to be renewed at 6; the first attempt is given up at 11.
        await harness.pass_time(20)
        assert one.leads
        assert one.states == ["started"]
        assert (await lease(harness))["leaseTransitions"] == 0
        await one.end()

    in_world(test)


def test_a_server_that_stalls_longer_costs_the_lease_at_the_renew_deadline() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(5.75)
        stall(one, until=18.0)
        await harness.pass_time(10)
        assert (harness.clock.now(), one.leads) == (15.75, True)
        await harness.pass_time(0.25)
        assert one.is_lost
        assert not one.leads

    in_world(test)


def test_an_answer_that_is_no_lease_renews_nothing() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(5)
        one.link.plan = lambda request: "captive portal"
        await harness.pass_time(12)
        assert one.is_lost

    in_world(test)


def test_a_slow_renewal_counts_from_when_it_was_sent() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await settled()
        one.link.late_seconds = 4.5
        one.link.plan = lambda request: "late answer" if request.method == "PUT" else ""
        await harness.pass_time(2.25)  # Sent at 2, stored at 2, answered at 6.5.
        await harness.pass_time(5)
        one.link.plan = lambda request: "refused"
        await harness.pass_time(8.75)
        assert harness.clock.now() == pytest.approx(16.0)
        await harness.pass_time(1)
        assert not one.leads
        assert one.is_lost

    in_world(test)


def test_a_few_failures_do_not_cost_the_lease() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(1)
        random = Random(7)
        one.link.plan = lambda request: random.choice(["", "", "500", "409", "lost", "refused"])
        await harness.pass_time(60)
        assert one.leads
        assert one.states == ["started"]
        assert one.metrics.leader_slow_path.labels("kube-scheduler").value > 0
        assert (await lease(harness))["leaseTransitions"] == 0
        await one.end()

    in_world(test)


def test_a_candidate_that_sees_another_holder_ends_at_once() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(1)
        client = harness.client()
        stored = await client.get(LEASE, "kube-system", "kube-scheduler")
        await client.update(LEASE, {**stored, "spec": {**stored["spec"], "holderIdentity": "thief"}})
        await harness.pass_time(1.5)
        assert one.is_lost
        assert "held by thief" in str(one.task.exception())
        assert (await lease(harness))["holderIdentity"] == "thief"

    in_world(test)


def test_a_suspended_leader_does_not_lead_when_it_wakes_up() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(3)
        two = Candidate(harness, "b")
        await harness.pass_time(3)
        one.clock.suspend()
        await harness.pass_time(25)
        assert two.leads
        assert not one.leads
        one.clock.resume()
        assert not one.leads
        assert one.election.is_former_leader  # Also before its own task has run.
        assert not two.election.is_former_leader
        await settled()
        assert one.is_lost
        assert (await lease(harness))["holderIdentity"] == "b"
        await two.end()

    in_world(test)


def test_a_deleted_lease_is_made_again() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(1)
        await harness.client().delete(LEASE, "kube-system", "kube-scheduler")
        await harness.pass_time(2)
        assert one.leads
        assert (await lease(harness))["holderIdentity"] == "a"
        await one.end()

    in_world(test)


def test_the_watchdog_barks_at_a_leader_that_hangs() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(2)
        assert one.election.check() is None
        one.clock.suspend()
        await harness.pass_time(34, 1.0)
        assert one.election.check() is None
        await harness.pass_time(2, 1.0)
        assert one.election.check() == "failed election to renew leadership on lease kube-scheduler"
        await one.end()

    in_world(test)


def test_a_follower_is_healthy_whatever_the_leader_does() -> None:
    async def test(harness: ServerHarness) -> None:
        one = Candidate(harness, "a")
        await harness.pass_time(1)
        two = Candidate(harness, "b")
        await harness.pass_time(1)
        two.clock.suspend()
        await harness.pass_time(100, 1.0)
        assert two.election.check() is None
        await two.end()
        await one.end()

    in_world(test)


BAD_DURATIONS = {
    "the deadline is the lease": (
        {"renew_deadline": Duration(15)},
        "leaseDuration must be greater than renewDeadline",
    ),
    "pauses longer than the deadline": (
        {"retry_period": Duration(9)},
        "renewDeadline must be greater than retryPeriod*JitterFactor",
    ),
    "no pauses": ({"retry_period": Duration(0)}, "retryPeriod must be greater than zero"),
    "less than a second": (
        {"lease_duration": Duration(0.9), "renew_deadline": Duration(0.5), "retry_period": Duration(0.1)},
        "leaseDuration must be at least one second: a lease counts whole seconds",
    ),
}


@pytest.mark.parametrize("case", BAD_DURATIONS)
def test_bad_durations(case: str) -> None:
    changes, message = BAD_DURATIONS[case]

    async def test(harness: ServerHarness) -> None:
        config = replace(Config(), **changes)
        with pytest.raises(ElectionConfigError, match=message.replace("*", r"\*")):
            LeaderElector(harness.client(), config, harness.clock, Random(1), "a")

    in_world(test)


def test_identities_differ() -> None:
    one, two = new_identity(), new_identity()
    assert one != two
    host, _, unique = one.rpartition("_")
    assert host
    assert len(unique) == 36


OUTCOMES = ("", "", "500", "409", "lost", "refused", "late", "late answer")


class FailingClient:
    """What happens to three candidates, at random, mostly to the one that leads."""

    def __init__(self, harness: ServerHarness, seed: int) -> None:
        self._harness = harness
        self._random = Random(seed)
        self._names = count()
        self._ends: list[tuple[float, Callable[[], None]]] = []
        self.candidates = [self._new() for _ in range(3)]
        self.leaders: set[str] = set()

    def _new(self) -> Candidate:
        number = next(self._names)
        return Candidate(self._harness, f"candidate-{number}", number)

    def check(self) -> None:
        leading = [each.election.identity for each in self.candidates if each.leads]
        assert len(leading) <= 1, leading
        self.leaders.update(leading)

    async def pass_time(self, seconds: float) -> None:
        end = self._harness.clock.now() + seconds
        while self._harness.clock.now() < end:
            await self._harness.pass_time(0.5, 0.5)
            self.check()
            for index, candidate in enumerate(self.candidates):
                if candidate.task.done():
                    await candidate.end()
                    self.candidates[index] = self._new()

    async def happen(self) -> None:
        """Something happens, and perhaps something else ends."""
        now = self._harness.clock.now()
        for moment, end in [*self._ends]:
            if moment <= now:
                self._ends.remove((moment, end))
                end()
        leading = [each for each in self.candidates if each.leads]
        victim = (
            leading[0] if leading and self._random.random() < 0.7 else self._random.choice(self.candidates)
        )
        until = now + self._random.uniform(1, 30)
        match self._random.choice(["suspend", "faults", "faults", "stop", "kill", "nothing"]):
            case "suspend":
                victim.clock.suspend()
                self._ends.append((until, victim.clock.resume))
            case "faults":
                outcomes = self._random.sample(OUTCOMES, 3)
                victim.link.late_seconds = self._random.uniform(0.5, 5)
                victim.link.plan = lambda request: self._random.choice(outcomes)
                self._ends.append((until, victim.link.heal))
            case "stop":
                victim.election.stop()
            case "kill":
                await victim.end()

    async def end_all(self) -> None:
        for _, end in self._ends:
            end()
        self._ends.clear()


@pytest.mark.parametrize("seed", range(16))
def test_two_never_lead_at_once(seed: int) -> None:
    async def test(harness: ServerHarness) -> None:
        failing = FailingClient(harness, seed)
        for _ in range(30):
            await failing.pass_time(7)
            await failing.happen()
        await failing.end_all()
        await failing.pass_time(50)
        assert sum(each.leads for each in failing.candidates) == 1
        assert len(failing.leaders) > 3, "the lease changed hands"
        for candidate in failing.candidates:
            await candidate.end()

    in_world(test)
