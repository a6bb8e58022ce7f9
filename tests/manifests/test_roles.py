"""The printed roles are enough, and nothing in them is too much: without any one grant something fails."""

from __future__ import annotations

import pytest

from tests.manifests import operations as deeds
from tests.manifests.grants import AUTHORITIES, Grant, grants, without
from tests.manifests.harness import RoleHarness, in_role_harness
from tests.manifests.operations import Deed
from tests.manifests.printing import Manifest, printed

OBJECTS = printed()
GRANTS = grants(OBJECTS)

SHOWN_BY: dict[tuple[str, str], Deed] = {
    ("pods", "get"): deeds.says_so_of_a_pod_that_others_write_into,
    ("pods", "delete"): deeds.makes_room,
    ("pods/binding", "create"): deeds.schedules,
    ("pods/status", "patch"): deeds.says_why_a_pod_has_no_node,
    ("persistentvolumes", "patch"): deeds.gives_a_volume_to_a_claim,
    ("persistentvolumeclaims", "patch"): deeds.asks_for_a_volume_where_a_pod_is_going_to_be,
    ("resourceclaims", "get"): deeds.gives_a_device_of_a_claim_that_others_write_into,
    ("resourceclaims", "create"): deeds.gives_a_device_for_a_resource,
    ("resourceclaims", "delete"): deeds.takes_a_device_back,
    ("resourceclaims", "patch"): deeds.gives_a_device,
    ("resourceclaims/status", "patch"): deeds.gives_a_device,
    ("resourceclaims/binding", "patch"): deeds.gives_a_device,
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
EVENTS: dict[tuple[str, str], Deed] = {
    ("events.k8s.io", "create"): deeds.tells_where_a_pod_went,
    ("events.k8s.io", "patch"): deeds.counts_how_often_a_pod_found_no_place,
    ("", "create"): deeds.tells_who_leads,
}
"""… but events are of two groups."""
FOLLOWING: dict[str, Deed] = {
    "watch": deeds.schedules,
    "list": deeds.schedules_where_watches_do_not_list,
}


def shown_by(grant: Grant) -> Deed:
    if grant.what == "events":
        return EVENTS[grant.group, grant.verb]
    return FOLLOWING.get(grant.verb) or SHOWN_BY[grant.what, grant.verb]


def is_done(deed: Deed, allowed: list[Manifest]) -> bool:
    async def scenario(world: RoleHarness) -> bool:
        await world.allow(allowed)
        return await deed(world, OBJECTS)

    return in_role_harness(scenario)


@pytest.mark.parametrize("deed", dict.fromkeys(map(shown_by, GRANTS)), ids=lambda deed: deed.__name__)
def test_all_can_be_done(deed: Deed) -> None:
    assert is_done(deed, OBJECTS)


@pytest.mark.parametrize("grant", GRANTS, ids=str)
def test_no_grant_is_too_much(grant: Grant) -> None:
    assert not is_done(shown_by(grant), without(OBJECTS, grant))
