"""The printed roles are enough, and nothing in them is too much: without any one grant something fails."""

from __future__ import annotations

import pytest

from tests.manifests import operations as deeds
from tests.manifests.grants import AUTHORITIES, Grant, grants, without
from tests.manifests.harness import RoleHarness, in_role_harness
from tests.manifests.operations import Operation
from tests.manifests.printing import Manifest, printed

OBJECTS = printed()
GRANTS = grants(OBJECTS)

SHOWN_BY: dict[tuple[str, str], Operation] = {
    ("pods", "get"): deeds.writes_condition_after_conflict,
    ("pods", "delete"): deeds.preempts_pods,
    ("pods/binding", "create"): deeds.schedules,
    ("pods/status", "patch"): deeds.writes_unschedulable_condition,
    ("persistentvolumes", "patch"): deeds.gives_a_volume_to_a_claim,
    ("persistentvolumeclaims", "patch"): deeds.selects_node_for_volume,
    ("resourceclaims", "get"): deeds.gives_a_device_of_a_claim_that_others_write_into,
    ("resourceclaims", "create"): deeds.gives_a_device_for_a_resource,
    ("resourceclaims", "delete"): deeds.deallocates_device,
    ("resourceclaims", "patch"): deeds.gives_a_device,
    ("resourceclaims/status", "patch"): deeds.gives_a_device,
    ("resourceclaims/binding", "patch"): deeds.gives_a_device,
    ("podgroups", "get"): deeds.warns_on_ignored_groups,
    ("tokenreviews", "create"): deeds.shows_metrics,
    ("subjectaccessreviews", "create"): deeds.shows_metrics,
    ("/metrics", "get"): deeds.shows_metrics,
    ("/metrics/resources", "get"): deeds.shows_resources,
    ("leases", "create"): deeds.leads,
    ("leases", "get"): deeds.leads,
    ("leases", "update"): deeds.leads,
    (AUTHORITIES, ""): deeds.knows_authorities,
}
"""What shows that something is granted: in general by what is granted, …"""
EVENTS: dict[tuple[str, str], Operation] = {
    ("events.k8s.io", "create"): deeds.records_scheduled_event,
    ("events.k8s.io", "patch"): deeds.counts_failed_attempts,
    ("", "create"): deeds.records_leader_event,
}
"""… but events are of two groups."""
FOLLOWING: dict[str, Operation] = {
    "watch": deeds.schedules,
    "list": deeds.schedules_where_watches_do_not_list,
}


def shown_by(grant: Grant) -> Operation:
    if grant.what == "events":
        return EVENTS[grant.group, grant.verb]
    return FOLLOWING.get(grant.verb) or SHOWN_BY[grant.what, grant.verb]


def is_done(operation: Operation, allowed: list[Manifest]) -> bool:
    async def scenario(harness: RoleHarness) -> bool:
        await harness.allow(allowed)
        return await operation(harness, OBJECTS)

    return in_role_harness(scenario)


@pytest.mark.parametrize(
    "operation", dict.fromkeys(map(shown_by, GRANTS)), ids=lambda operation: operation.__name__
)
def test_all_can_be_done(operation: Operation) -> None:
    assert is_done(operation, OBJECTS)


@pytest.mark.parametrize("grant", GRANTS, ids=str)
def test_no_grant_is_too_much(grant: Grant) -> None:
    assert not is_done(shown_by(grant), without(OBJECTS, grant))
