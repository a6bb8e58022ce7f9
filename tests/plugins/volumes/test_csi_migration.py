"""Volumes of drivers that were once part of Kubernetes, as their CSI drivers see them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.plugins.volumes.csi_migration import (
    DRIVER_OF,
    TranslationError,
    migrated_affinity,
    migrated_disk,
    migration_of,
    persistent_handle,
)
from tests.builders import ZONE, expression
from tests.plugins.volumes.volume_objects import BETA_ZONE, REGION, Manifest, affinity, in_zone, volume

BETA_REGION = "failure-domain.beta.kubernetes.io/region"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
EBS: Manifest = {"awsElasticBlockStore": {"volumeID": "vol-1"}}

HANDLES: dict[str, tuple[Manifest, dict[str, str], str, str]] = {
    "EBS": (EBS, {}, "ebs.csi.aws.com", "vol-1"),
    "EBS by address": (
        {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/vol-1"}},
        {},
        "ebs.csi.aws.com",
        "vol-1",
    ),
    "EBS by address without a zone": (
        {"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}},
        {},
        "ebs.csi.aws.com",
        "vol-1",
    ),
    "GCE": (
        {"gcePersistentDisk": {"pdName": "d"}},
        {},
        "pd.csi.storage.gke.io",
        "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d",
    ),
    "GCE in a zone": (
        {"gcePersistentDisk": {"pdName": "d"}},
        {ZONE: "us-east1-a"},
        "pd.csi.storage.gke.io",
        "projects/UNSPECIFIED/zones/us-east1-a/disks/d",
    ),
    "GCE, the old label first": (
        {"gcePersistentDisk": {"pdName": "d"}},
        {BETA_ZONE: "us-east1-b", ZONE: "us-east1-a"},
        "pd.csi.storage.gke.io",
        "projects/UNSPECIFIED/zones/us-east1-b/disks/d",
    ),
    "GCE in a region": (
        {"gcePersistentDisk": {"pdName": "d"}},
        {ZONE: "us-east1-a__us-east1-b"},
        "pd.csi.storage.gke.io",
        "projects/UNSPECIFIED/regions/us-east1/disks/d",
    ),
    "Azure": ({"azureDisk": {"diskName": "d", "diskURI": "/d"}}, {}, "disk.csi.azure.com", "/d"),
    "Azure, managed": (
        {"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Managed"}},
        {},
        "disk.csi.azure.com",
        "/d",
    ),
    "Cinder": ({"cinder": {"volumeID": "c"}}, {}, "cinder.csi.openstack.org", "c"),
    "Portworx": ({"portworxVolume": {"volumeID": "p"}}, {}, "pxd.portworx.com", "p"),
}


@pytest.mark.parametrize(("source", "labels", "driver", "handle"), HANDLES.values(), ids=HANDLES.keys())
def test_drivers_and_handles(source: Manifest, labels: dict[str, str], driver: str, handle: str) -> None:
    item = volume("v", labels=labels, **source)
    disk = migrated_disk(item.spec)
    assert disk is not None
    assert migration_of(disk).driver == driver == DRIVER_OF[migration_of(disk).old_name]
    assert persistent_handle(item, disk) == handle


def test_other_volumes_are_what_they_are() -> None:
    assert migrated_disk(volume("v", csi={"driver": "d", "volumeHandle": "h"}).spec) is None


UNTRANSLATABLE: dict[str, tuple[Manifest, dict[str, str], str]] = {
    "no EBS volume": (
        {"awsElasticBlockStore": {"volumeID": "aws://us-east-1a/disk"}},
        {},
        "Invalid format for AWS volume (aws://us-east-1a/disk)",
    ),
    "an Azure disk that is not managed": (
        {"azureDisk": {"diskName": "d", "diskURI": "/d", "kind": "Dedicated"}},
        {},
        "kind(Dedicated) is not supported in csi migration",
    ),
    "a GCE zone of no region": (
        {"gcePersistentDisk": {"pdName": "d"}},
        {ZONE: "a__b"},
        "zone in unexpected format, expected: {locale}-{region}-{zone}, got: a",
    ),
    "GCE zones of two regions": (
        {"gcePersistentDisk": {"pdName": "d"}},
        {ZONE: "us-east1-a__us-west1-a"},
        "multiple or no regions gotten from zones, got: map[us-east1:{} us-west1:{}]",
    ),
}


@pytest.mark.parametrize(("source", "labels", "message"), UNTRANSLATABLE.values(), ids=UNTRANSLATABLE.keys())
def test_what_a_driver_cannot_take(source: Manifest, labels: dict[str, str], message: str) -> None:
    item = volume("v", labels=labels, **source)
    disk = migrated_disk(item.spec)
    assert disk is not None
    with pytest.raises(TranslationError) as caught:
        migrated_affinity(item, disk)
    assert str(caught.value).endswith(message)


AFFINITIES: dict[str, tuple[dict[str, Any], Manifest | None]] = {
    "none at all": ({}, None),
    "the zone's label is replaced": ({"nodeAffinity": in_zone("a")}, in_zone("a", key=EBS_ZONE)),
    "the old label too": ({"nodeAffinity": in_zone("a", key=BETA_ZONE)}, in_zone("a", key=EBS_ZONE)),
    "today's label is looked for first": (
        {
            "nodeAffinity": affinity(
                [expression(BETA_ZONE, "In", "old"), expression(ZONE, "In", "new")],
            )
        },
        affinity([expression(BETA_ZONE, "In", "old"), expression(EBS_ZONE, "In", "new")]),
    ),
    "in every term": (
        {"nodeAffinity": affinity([expression(ZONE, "In", "a")], [expression(ZONE, "In", "b")])},
        affinity([expression(EBS_ZONE, "In", "a")], [expression(EBS_ZONE, "In", "b")]),
    ),
    "the volume's own label becomes an affinity": (
        {"labels": {ZONE: "b__a"}},
        affinity([expression(EBS_ZONE, "In", "a", "b")]),
    ),
    "and is added to one that says nothing of zones": (
        {"labels": {BETA_ZONE: "a"}, "nodeAffinity": affinity([expression("disk", "In", "ssd")])},
        affinity([expression("disk", "In", "ssd"), expression(EBS_ZONE, "In", "a")]),
    ),
    "but not to one that does": (
        {"labels": {ZONE: "b"}, "nodeAffinity": in_zone("a")},
        in_zone("a", key=EBS_ZONE),
    ),
    "the old region gets today's name": (
        {"nodeAffinity": affinity([expression(BETA_ZONE, "In", "a"), expression(BETA_REGION, "In", "r")])},
        affinity([expression(EBS_ZONE, "In", "a"), expression(REGION, "In", "r")]),
    ),
    "unless the zone has it already": (
        {"nodeAffinity": affinity([expression(ZONE, "In", "a"), expression(BETA_REGION, "In", "r")])},
        affinity([expression(EBS_ZONE, "In", "a"), expression(BETA_REGION, "In", "r")]),
    ),
}


@pytest.mark.parametrize(("fields", "expected"), AFFINITIES.values(), ids=AFFINITIES.keys())
def test_affinity_in_the_drivers_words(fields: dict[str, Any], expected: Manifest | None) -> None:
    item = volume("v", **EBS, **fields)
    disk = migrated_disk(item.spec)
    assert disk is not None
    wanted = volume("w", nodeAffinity=expected).spec.node_affinity
    assert migrated_affinity(item, disk) == (None if wanted is None else wanted.required)


def test_drivers_without_zones_keep_the_affinity() -> None:
    item = volume("v", azureDisk={"diskName": "d", "diskURI": "/d"}, nodeAffinity=in_zone("a"))
    disk = migrated_disk(item.spec)
    assert disk is not None
    assert item.spec.node_affinity is not None
    assert migrated_affinity(item, disk) == item.spec.node_affinity.required
