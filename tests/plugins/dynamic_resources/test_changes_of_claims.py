"""What is derived from the table of claims follows its changes, and equals reading the whole table."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from msgspec.structs import replace

from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.cluster.object_tables import ObjectTable
from moorage.plugins.dynamic_resources.extended_resources import (
    CLAIM_ANNOTATION,
    ExtendedResourceClaims,
    new_claim,
)
from moorage.plugins.dynamic_resources.structured.allocated_devices import AllocatedDevices
from tests.builders import make_pod
from tests.plugins.dynamic_resources.device_objects import allocated, claim

PODS = [make_pod(name, uid=f"uid-{name}") for name in ("a", "b", "c")]


class CountingTable(ObjectTable[ResourceClaim]):
    """Counts how often the whole table is read."""

    reads = 0

    def __iter__(self) -> Iterator[ResourceClaim]:
        self.reads += 1
        return super().__iter__()


def scanned(pod: Pod, claims: ObjectTable[ResourceClaim]) -> ResourceClaim | None:
    for each in claims.within(pod.namespace).values():
        owner = each.controller
        if (
            each.metadata.annotations.get(CLAIM_ANNOTATION) == "true"
            and owner is not None
            and (owner.name, owner.uid) == (pod.name, pod.metadata.uid)
        ):
            return each
    return None


def changed(random: Random, table: ObjectTable[ResourceClaim]) -> None:
    name = f"claim-{random.randrange(6)}"
    choice = random.randrange(4)
    if choice == 0:
        table.remove("default", name)
    elif choice == 1:
        table.put(claim(name, status=allocated(f"pool/d{random.randrange(3)}")))
    else:
        made = new_claim(random.choice(PODS))
        table.put(replace(made, metadata=replace(made.metadata, name=name)))


@pytest.mark.parametrize("seed", range(20))
def test_changes_lead_to_what_the_whole_table_says(seed: int) -> None:
    random, table = Random(seed), ObjectTable[ResourceClaim]()
    index, devices = ExtendedResourceClaims(), AllocatedDevices()
    for _ in range(60):
        for _ in range(random.randrange(4)):
            changed(random, table)
        for pod in PODS:
            assert index.existing(pod, table) is scanned(pod, table)
        devices.refresh(table, {})
        plain = AllocatedDevices()
        plain.refresh(table, {})
        assert devices.contents() == plain.contents()


def test_the_table_is_read_once() -> None:
    table = CountingTable()
    index, devices = ExtendedResourceClaims(), AllocatedDevices()
    for number in range(5):
        made = new_claim(PODS[0])
        table.put(replace(made, metadata=replace(made.metadata, name=f"claim-{number}")))
        index.existing(PODS[1], table)
        devices.refresh(table, {})
    assert table.reads == 2, "once for each that reads it"


def test_another_table_is_read_from_the_beginning() -> None:
    first, second = ObjectTable[ResourceClaim](), ObjectTable[ResourceClaim]()
    made = new_claim(PODS[0])
    first.put(replace(made, metadata=replace(made.metadata, name="x")))
    index = ExtendedResourceClaims()
    assert index.existing(PODS[0], first) is not None
    assert index.existing(PODS[0], second) is None
    assert index.existing(PODS[0], first) is not None


def test_an_allocation_that_is_shown_after_it_was_pending_changes_nothing() -> None:
    table, devices = ObjectTable[ResourceClaim](), AllocatedDevices()
    table.put(claim("c"))
    decided = claim("c", status=allocated("pool/d", shareID="s", consumedCapacity={"memory": "1"}))
    assert devices.refresh(table, {"uid": decided}) == {("gpu.example.com", "pool")}
    before = devices.contents()
    table.put(replace(decided, metadata=replace(decided.metadata, resource_version="2")))
    assert devices.refresh(table, {}) == set()
    assert devices.contents() == before
    table.put(claim("c", status=allocated("pool/d", shareID="s", consumedCapacity={"memory": "2"})))
    assert devices.refresh(table, {}) == {("gpu.example.com", "pool")}
    assert devices.contents() != before
