"""DynamicResources at its extension points: claims, nodes, scores, room, reservation, binding."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.devices import ResourceClaim, ResourceClaimStatus
from moorage.api.pod import Pod
from moorage.clock import VirtualClock
from moorage.config.args import DynamicResourcesArgs
from moorage.config.duration import Duration
from moorage.framework.interface.cycle_state import CycleState
from moorage.framework.interface.effects import Effect, WriteClaimStatus
from moorage.framework.interface.status import SKIP, Code, PluginError, Status, unresolvable, unschedulable
from moorage.plugins.dynamic_resources.plugin import (
    CANNOT_ALLOCATE,
    DEALLOCATED,
    NO_HELP,
    NO_STATE,
    NOT_AVAILABLE,
    NOTHING_TO_DO,
)
from moorage.plugins.dynamic_resources.pod_claims import FINALIZER
from tests.builders import make_framework, make_node, make_pod
from tests.plugins.dynamic_resources.device_objects import (
    DRIVER,
    Scene,
    allocated,
    asking,
    claim,
    device,
    device_class,
    pod_claiming,
    pool_slice,
    request,
)

NODES: list[Object] = [make_node("n1"), make_node("n2")]
GPUS: list[Object] = [device_class(), pool_slice("p1", "a", "b"), pool_slice("p2", "a", node="n2")]
ONE = request("r", asking())


def scene(*objects: Object, **fields: Any) -> Scene:
    return Scene(*NODES, *GPUS, *objects, **fields)


# Which claims

TEMPLATE = [{"name": "t", "resourceClaimTemplateName": "template"}]
MADE = {"resourceClaimStatuses": [{"name": "t", "resourceClaimName": "made"}]}


def owned(uid: str) -> ResourceClaim:
    owner = {"kind": "Pod", "name": "pod", "uid": uid, "controller": True}
    return claim("made", ONE, metadata={"ownerReferences": [owner]})


REFUSALS: dict[str, tuple[Pod, list[Object], str]] = {
    "no such claim": (pod_claiming("pod", "c"), [], 'could not find ResourceClaim "default/c"'),
    "a claim on its way out": (
        pod_claiming("pod", "c"),
        [claim("c", ONE, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"})],
        'resourceclaim "c" is being deleted',
    ),
    "a template's claim is not made yet": (
        make_pod("pod", resource_claims=TEMPLATE),
        [],
        'pod "default/pod": ResourceClaim not created yet',
    ),
    "a template's claim that is somebody else's": (
        make_pod("pod", uid="u", resource_claims=TEMPLATE, status=MADE),
        [owned("other")],
        "ResourceClaim default/made was not created for Pod default/pod (Pod is not owner)",
    ),
    "neither a claim nor a template": (
        make_pod("pod", resource_claims=[{"name": "x"}]),
        [],
        'pod "default/pod", spec.resourceClaim "x": none of the supported fields are set',
    ),
}


@pytest.mark.parametrize(("pod", "objects", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_pod_waits_for_its_claims(pod: Pod, objects: list[Object], reason: str) -> None:
    made = scene(*objects)
    assert made.plugin.pre_enqueue(pod) == unresolvable(reason)
    assert made.pre_filter(pod) == unresolvable(reason)
    assert made.post_filter(pod) == unschedulable(NOTHING_TO_DO)


CLASSES: dict[str, tuple[ResourceClaim, str]] = {
    "no such class": (
        claim("c", request("r", asking(class_name="none"))),
        "request r: device class none does not exist",
    ),
    "no such class for an alternative": (
        claim("c", request("r", asking(), asking(class_name="none"))),
        "request r/a1: device class none does not exist",
    ),
    "a request for nothing known": (
        claim("c", {"name": "r"}),
        "resource claim default/c, request r: unknown request type",
    ),
}


@pytest.mark.parametrize(("wanted", "reason"), CLASSES.values(), ids=CLASSES)
def test_a_pod_waits_for_classes(wanted: ResourceClaim, reason: str) -> None:
    made, pod = scene(wanted), pod_claiming("pod", "c")
    assert made.plugin.pre_enqueue(pod) is None
    assert made.pre_filter(pod) == unresolvable(reason)


def test_a_template_s_claim_is_found_through_the_pod_s_status() -> None:
    made = scene(owned("u"))
    pod = make_pod("pod", uid="u", resource_claims=TEMPLATE, status=MADE)
    assert made.plugin.pre_enqueue(pod) is None
    assert made.feasible(pod) == ["n1", "n2"]


def test_a_claim_that_was_not_made_on_purpose_is_left_out() -> None:
    pod = make_pod("pod", resource_claims=TEMPLATE, status={"resourceClaimStatuses": [{"name": "t"}]})
    assert scene().pre_filter(pod) is SKIP


def test_a_pod_without_claims_scores_zero() -> None:
    made, pod = scene(), make_pod("pod")
    assert made.pre_filter(pod) is SKIP
    scores = made.plugin.score(made.cycle, pod, made.nodes)
    assert made.plugin.normalize_score(made.cycle, pod, made.nodes, scores).tolist() == [0, 0]
    assert made.plugin.reserve(made.cycle, pod, "n1") is None
    assert asyncio.run(made._pre_bind(pod, "n1")) is None


# Which nodes


def test_claims_are_allocated_where_there_are_devices() -> None:
    made = scene(claim("c", request("r", asking(2))))
    assert made.filter_nodes(pod_claiming("pod", "c")) == {"n1": "", "n2": CANNOT_ALLOCATE}


def test_a_filter_works_without_its_pre_filter() -> None:
    made, pod = scene(claim("c", request("r", asking(2)))), pod_claiming("pod", "c")
    selector_result = made.plugin.filter(CycleState(), pod, made.nodes)
    assert selector_result.codes is not None
    assert selector_result.codes.tolist() == [0, 1]
    refused = made.plugin.filter(CycleState(), pod_claiming("pod", "none"), made.nodes)
    assert refused.reasons[0].texts == ('could not find ResourceClaim "default/none"',)


def test_an_allocated_claim_can_be_used_where_its_devices_are() -> None:
    made = scene(claim("c", ONE, status=allocated("p1/a")))
    assert made.filter_nodes(pod_claiming("pod", "c")) == {"n1": "", "n2": NOT_AVAILABLE}


def test_an_allocated_claim_without_a_place_can_be_used_everywhere() -> None:
    made = scene(claim("c", ONE, status=allocated("p1/a", node=None)))
    assert made.feasible(pod_claiming("pod", "c")) == ["n1", "n2"]


def test_a_node_without_devices_for_one_claim_is_refused_for_that_first() -> None:
    made = scene(claim("c", ONE, status=allocated("p1/a")), claim("d", request("r", asking(2))))
    assert made.filter_nodes(pod_claiming("pod", "c", "d")) == {"n1": CANNOT_ALLOCATE, "n2": CANNOT_ALLOCATE}


def test_a_claim_is_shared_by_pods() -> None:
    made = scene(claim("c", ONE))
    assert made.bind(pod_claiming("one", "c")) is None
    assert made.bind(pod_claiming("two", "c")) is None
    assert [user.name for user in made.claim("c").status.reserved_for] == ["one", "two"]
    assert made.devices("c") == ["p1/a"]


# Time


class SlowClock(VirtualClock):
    """A second goes by whenever somebody looks."""

    def now(self) -> float:
        self.advance(1.0)
        return super().now()


def hard(count: int) -> list[Object]:
    """A search that would take ages: no two of many devices are alike, three alike are wanted."""
    devices = [device(f"d{number}", {"x": number}) for number in range(count)]
    constraint = {"matchAttribute": f"{DRIVER}/x"}
    return [
        device_class(),
        pool_slice("p", *devices),
        claim("c", request("r", asking(3)), constraints=[constraint]),
    ]


def test_a_search_is_given_up_when_its_time_is_over() -> None:
    made = Scene(make_node("n1"), *hard(20), clock=SlowClock())
    with pytest.raises(PluginError, match="node n1: timed out trying to allocate devices"):
        made.filter_nodes(pod_claiming("pod", "c"))


def test_of_nodes_whose_searches_take_too_long_the_first_in_order_is_named() -> None:
    nodes = [make_node(name) for name in ("n0", "n1", "n2")]
    _, slow, wanted = hard(20)
    twin = pool_slice("q", *(device(f"d{number}", {"x": number}) for number in range(20)), node="n2")
    made = Scene(*nodes, device_class(), twin, slow, wanted, clock=SlowClock())
    with pytest.raises(PluginError, match="node n1: timed out"):
        made.filter_nodes(pod_claiming("pod", "c"))


def test_a_search_without_a_limit_goes_on() -> None:
    made = Scene(
        make_node("n1"), *hard(20), clock=SlowClock(), args=DynamicResourcesArgs(filter_timeout=Duration(0))
    )
    assert made.filter_nodes(pod_claiming("pod", "c")) == {"n1": CANNOT_ALLOCATE}


def test_nodes_in_the_same_situation_are_searched_once() -> None:
    nodes = [make_node(f"n{number}") for number in range(50)]
    slices = [pool_slice(f"p{n}", "a", "b", node=f"n{n}") for n in range(50)]
    taken = claim("taken", status=allocated("p7/a", "p7/b"))
    limit = DynamicResourcesArgs(filter_timeout=Duration(1000))
    made = Scene(*nodes, *slices, device_class(), taken, claim("c", ONE), args=limit, clock=SlowClock())
    assert len(made.feasible(pod_claiming("pod", "c"))) == 49
    assert made.clock.now() < 20  # two searches, not fifty


# Scores

SCORES: dict[str, tuple[list[ResourceClaim], list[int]]] = {
    "no alternatives": ([claim("c", ONE)], [0, 0]),
    "the first on one node, the second on the other": (
        [claim("c", request("r", asking(2), asking(1)))],
        [100, 87],
    ),
    "alternatives add up": (
        [claim("c", request("r", asking(1), asking(1))), claim("d", status=allocated("p1/a"))],
        [100, 100],
    ),
    "an alternative counts once, whatever its number of devices": (
        [claim("c", request("r", asking(5), asking(2), asking(1)))],
        [100, 85],
    ),
}


@pytest.mark.parametrize(("claims", "expected"), SCORES.values(), ids=SCORES)
def test_preferred_alternatives_score(claims: list[ResourceClaim], expected: list[int]) -> None:
    made, pod = scene(*claims), pod_claiming("pod", "c")
    assert made.feasible(pod) == ["n1", "n2"]
    raw = made.plugin.score(made.cycle, pod, made.nodes)
    assert made.plugin.normalize_score(made.cycle, pod, made.nodes, raw).tolist() == expected


def test_claims_of_earlier_cycles_score_as_well() -> None:
    status = allocated("p1/a", node=None)
    status["allocation"]["devices"]["results"][0]["request"] = "r/a1"
    made = scene(
        claim("old", request("r", asking(9), asking(1)), status=status),
        claim("c", request("r", asking(2), asking(1))),
        pool_slice("p3", "x"),
    )
    pod = pod_claiming("pod", "old", "c")
    made.feasible(pod)
    assert made.plugin.score(made.cycle, pod, made.nodes).tolist() == [7 + 8, 7 + 7]


# Making room


def test_a_pod_that_other_plugins_refused_has_no_claims_to_deallocate() -> None:
    made, pod = scene(), make_pod("pod")
    made.pre_filter(pod)
    assert made.post_filter(pod) == unschedulable(NOTHING_TO_DO)


def test_without_a_pre_filter_the_search_for_room_ends() -> None:
    assert scene().post_filter(make_pod("pod")) == unresolvable(NO_STATE)


def test_what_cannot_be_helped_is_still_not_schedulable() -> None:
    made, pod = scene(claim("c", request("r", asking(9)))), pod_claiming("pod", "c")
    assert made.feasible(pod) == []
    assert made.post_filter(pod) == unschedulable(NO_HELP)


FREEING: dict[str, tuple[list[str], str]] = {
    "nobody uses it": ([], DEALLOCATED),
    "only the pod itself": (["pod"], DEALLOCATED),
    "somebody else": (["other"], NO_HELP),
    "the pod and somebody else": (["pod", "other"], NO_HELP),
}


@pytest.mark.parametrize(("users", "answers"), FREEING.values(), ids=FREEING)
def test_a_claim_that_no_node_can_use_is_deallocated(users: list[str], answers: str) -> None:
    made = scene(claim("c", ONE, status=allocated("p/x", node="gone", users=users)))
    pod = pod_claiming("pod", "c")
    assert made.filter_nodes(pod) == dict.fromkeys(("n1", "n2"), NOT_AVAILABLE)
    answer = made.post_filter(pod)
    if answers == NO_HELP:
        assert answer == unschedulable(NO_HELP)
        return
    assert answer.status == unschedulable(DEALLOCATED)
    (freed,) = answer.effects
    assert (freed.claim.name, freed.status) == ("c", ResourceClaimStatus())
    asyncio.run(made.effects.perform(freed))
    assert made.feasible(pod) == ["n1", "n2"]


# Keeping it


def test_what_is_reserved_is_taken() -> None:
    made = scene(claim("c", request("r", asking(2))), claim("d", ONE))
    assert made.reserve(pod_claiming("one", "c")) is None
    assert made.feasible(pod_claiming("two", "d")) == ["n2"]


def test_a_claim_in_flight_has_to_be_waited_for() -> None:
    made = scene(claim("c", ONE))
    made.reserve(pod_claiming("one", "c"))
    answers = "resource claim default/c is in the process of being allocated"
    assert made.pre_filter(pod_claiming("two", "c")) == unresolvable(answers)


def test_profiles_share_their_books() -> None:
    first = scene(claim("c", request("r", asking(2))), claim("d", ONE))
    second = Scene()
    second.cache, second.plugin = first.cache, type(first.plugin)(DynamicResourcesArgs(), first.handle)
    first.reserve(pod_claiming("one", "c"))
    assert second.feasible(pod_claiming("two", "d")) == ["n2"]


def test_a_change_of_the_claim_does_not_free_what_is_reserved() -> None:
    made = scene(claim("c", request("r", asking(2))), claim("d", ONE))
    made.reserve(pod_claiming("one", "c"))
    made.cache.put(claim("c", request("r", asking(2)), metadata={"labels": {"new": "label"}}))
    assert made.feasible(pod_claiming("two", "d")) == ["n2"]


def test_giving_back_frees() -> None:
    made = scene(claim("c", request("r", asking(2))), claim("d", ONE))
    pod = pod_claiming("one", "c")
    made.reserve(pod)
    made.plugin.unreserve(made.cycle, pod, "n1")
    made.plugin.unreserve(made.cycle, pod, "n1")
    assert made.feasible(pod_claiming("two", "d")) == ["n1", "n2"]


def test_giving_back_what_was_never_reserved_changes_nothing() -> None:
    made = scene()
    made.plugin.unreserve(CycleState(), make_pod("pod"), "n1")


def test_a_node_nothing_was_found_for_cannot_be_reserved() -> None:
    made, pod = scene(claim("c", ONE)), pod_claiming("pod", "c")
    made.feasible(pod)
    refused = made.plugin.reserve(made.cycle, pod, "n9")
    assert refused == Status(Code.ERROR, ("claim allocation not found for node",))


# Writing it


class Server:
    """An API server whose watch is slow: what is written shows only when told to."""

    def __init__(self) -> None:
        self.written: list[Effect] = []
        self.failing = False

    async def perform(self, effect: Effect) -> Object | None:
        await asyncio.sleep(0)
        if self.failing:
            raise ConnectionError("no")
        self.written.append(effect)
        return replace(effect.claim, status=effect.status) if isinstance(effect, WriteClaimStatus) else None


def test_allocation_and_reservation_are_written_together() -> None:
    clock = VirtualClock(100.0)
    made = scene(claim("c", ONE), clock=clock)
    assert made.bind(pod_claiming("pod", "c")) is None
    stored = made.claim("c")
    assert stored.metadata.finalizers == (FINALIZER,)
    assert stored.status.allocation is not None
    assert stored.status.allocation.allocation_timestamp is not None
    assert stored.status.allocation.allocation_timestamp.timestamp() == 100.0
    (user,) = stored.status.reserved_for
    assert (user.resource, user.name, user.uid) == ("pods", "pod", "default/pod")
    assert made.plugin._in_flight.claims() == {}


def test_what_is_written_counts_before_and_after_the_watch_shows_it() -> None:
    server = Server()
    made = scene(claim("c", request("r", asking(2))), claim("d", ONE), effects=server)
    assert made.bind(pod_claiming("one", "c")) is None
    other_pod = pod_claiming("two", "d")
    assert made.feasible(other_pod) == ["n2"]
    assert made.feasible(pod_claiming("sharing", "c")) == ["n1"]
    made.cache.put(claim("c", request("r", asking(2)), metadata={"finalizers": [FINALIZER]}))  # a late word
    assert made.feasible(other_pod) == ["n2"]
    (write,) = server.written
    assert isinstance(write, WriteClaimStatus)
    made.cache.put(replace(write.claim, status=write.status))
    assert made.feasible(other_pod) == ["n2"]
    assert made.plugin._in_flight.claims() == {}
    made.cache.put(claim("c", request("r", asking(2))))  # deallocated
    assert made.feasible(other_pod) == ["n1", "n2"]


def test_a_failed_write_is_given_back() -> None:
    server = Server()
    made = scene(claim("c", request("r", asking(2))), claim("d", ONE), effects=server)
    pod = pod_claiming("one", "c")
    made.reserve(pod)
    server.failing = True
    with pytest.raises(ConnectionError):
        asyncio.run(made._pre_bind(pod, "n1"))
    made.plugin.unreserve(made.cycle, pod, "n1")
    assert made.feasible(pod_claiming("two", "d")) == ["n1", "n2"]


MEANWHILE: dict[str, tuple[ResourceClaim, str]] = {
    "deleted": (
        claim("c", ONE, metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
        "claim default/c got deleted in the meantime",
    ),
    "allocated": (
        claim("c", ONE, status=allocated("p2/a", node="n2")),
        "claim default/c got allocated elsewhere in the meantime",
    ),
}


@pytest.mark.parametrize(("changed", "reason"), MEANWHILE.values(), ids=MEANWHILE)
def test_what_happened_in_the_meantime_is_noticed(changed: ResourceClaim, reason: str) -> None:
    made, pod = scene(claim("c", ONE)), pod_claiming("pod", "c")
    made.reserve(pod)
    made.cache.put(changed)
    assert asyncio.run(made._pre_bind(pod, "n1")) == Status(Code.ERROR, (reason,))


def test_a_claim_that_lost_its_devices_in_the_meantime_is_noticed() -> None:
    made = scene(claim("c", ONE, status=allocated("p1/a")))
    pod = pod_claiming("pod", "c")
    made.reserve(pod)
    made.cache.put(claim("c", ONE))
    reason = "claim default/c got deallocated elsewhere in the meantime"
    assert asyncio.run(made._pre_bind(pod, "n1")) == Status(Code.ERROR, (reason,))


def test_a_reservation_is_taken_back_when_binding_fails_later() -> None:
    made, pod = scene(claim("c", ONE)), pod_claiming("pod", "c")
    made.reserve(pod)

    async def bind_then_fail() -> None:
        assert await made._pre_bind(pod, "n1") is None
        made.plugin.unreserve(made.cycle, pod, "n1")
        made.plugin.unreserve(made.cycle, pod, "n1")
        await asyncio.sleep(0)

    asyncio.run(bind_then_fail())
    assert made.claim("c").status.reserved_for == ()
    assert made.devices("c") == ["p1/a"]  # allocated still: the next attempt uses it, or deallocates it


# Devices that take time

SLOW = device("slow", bindingConditions=["ready"], bindingFailureConditions=["broken"])


def reporting(source: ResourceClaim, kind: str, status: str = "True", pool: str = "p") -> ResourceClaim:
    """A claim on whose device the driver reports."""
    condition = {"type": kind, "status": status, "reason": "Why", "message": "what"}
    device_status = {"driver": DRIVER, "pool": pool, "device": "slow", "conditions": [condition]}
    made = convert({"devices": [device_status]}, ResourceClaimStatus)
    return replace(source, status=replace(source.status, devices=made.devices))


def slow_scene(**fields: Any) -> Scene:
    return Scene(make_node("n1"), device_class(), pool_slice("p", SLOW), claim("c", ONE), **fields)


async def binding(made: Scene, pod: Pod) -> asyncio.Task[Status | None]:
    """A binding that has written and waits."""
    task = asyncio.ensure_future(made._pre_bind(pod, "n1"))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


def test_binding_waits_until_devices_are_ready() -> None:
    made, pod = slow_scene(), pod_claiming("pod", "c")
    made.reserve(pod)

    async def run() -> Status | None:
        task = await binding(made, pod)
        assert not task.done()
        made.cache.put(reporting(made.claim("c"), "ready", "False"))
        await asyncio.sleep(0)
        assert not task.done()
        made.cache.put(reporting(made.claim("c"), "ready"))
        return await task

    assert asyncio.run(run()) is None


def test_binding_ends_when_a_device_fails() -> None:
    made, pod = slow_scene(), pod_claiming("pod", "c")
    made.reserve(pod)

    async def run() -> Status | None:
        task = await binding(made, pod)
        made.cache.put(reporting(made.claim("c"), "broken"))
        return await task

    reason = 'device binding failed: claim=c, reason=Why, message="what"'
    assert asyncio.run(run()) == Status(Code.ERROR, (reason,))
    assert made.filter_nodes(pod) == {"n1": NOT_AVAILABLE}
    assert made.post_filter(pod).status == unschedulable(DEALLOCATED)


def test_binding_ends_with_the_time_and_the_next_attempt_deallocates() -> None:
    clock = VirtualClock()
    made, pod = slow_scene(clock=clock), pod_claiming("pod", "c")
    made.reserve(pod)

    async def run() -> Status | None:
        task = await binding(made, pod)
        clock.advance(599.0)
        await asyncio.sleep(0)
        assert not task.done()
        clock.advance(2.0)
        return await task

    assert asyncio.run(run()) == Status(Code.ERROR, ("device binding timeout: context deadline exceeded",))
    assert made.filter_nodes(pod) == {"n1": NOT_AVAILABLE}
    assert made.post_filter(pod).status == unschedulable(DEALLOCATED)


def test_a_claim_that_is_still_within_its_time_can_be_used() -> None:
    clock = VirtualClock()
    status = allocated("p/slow", bindingConditions=["ready"])
    status["allocation"]["allocationTimestamp"] = "1970-01-01T00:00:00Z"
    made = Scene(make_node("n1"), *GPUS, claim("c", ONE, status=status), clock=clock)
    clock.advance(600.0)
    assert made.feasible(pod_claiming("pod", "c")) == ["n1"]
    clock.advance(1.0)
    assert made.filter_nodes(pod_claiming("pod", "c")) == {"n1": NOT_AVAILABLE}


def test_devices_that_take_time_are_the_last_choice() -> None:
    made = Scene(
        make_node("n1"), device_class(), pool_slice("a", SLOW), pool_slice("b", "quick"), claim("c", ONE)
    )
    made.bind(pod_claiming("pod", "c"))
    assert made.devices("c") == ["b/quick"]


# In a profile


def test_a_profile_with_the_plugin_can_be_made() -> None:
    assert "DynamicResources" in make_framework().plugins
