"""What is wrong with volumes, their drivers and devices, in Kubernetes' words."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.kinds.csi_drivers import (
    CSIDriverStrategy,
    CSINodeStrategy,
    CSIStorageCapacityStrategy,
    VolumeAttachmentStrategy,
)
from moorage_cluster.apiserver.kinds.persistent_volume_claims import PersistentVolumeClaimStrategy
from moorage_cluster.apiserver.kinds.persistent_volumes import PersistentVolumeStrategy
from moorage_cluster.apiserver.kinds.resource_claims import DeviceClassStrategy, ResourceClaimStrategy
from moorage_cluster.apiserver.kinds.resource_slices import ResourceSliceStrategy
from moorage_cluster.apiserver.kinds.storage_classes import (
    StorageClassStrategy,
    VolumeAttributesClassStrategy,
)
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.object_builders import (
    an_object,
    creation_problems,
)

SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
CSI = {"driver": "d", "volumeHandle": "h"}
MODES = ["ReadWriteOnce"]


def a_volume(**spec: object) -> Manifest:
    return an_object({"accessModes": MODES, "capacity": {"storage": "1Gi"}, "csi": CSI, **spec})


def a_claim(**spec: object) -> Manifest:
    return an_object({"accessModes": MODES, "resources": {"requests": {"storage": "1Gi"}}, **spec})


def a_request(**request: object) -> Manifest:
    exactly = {"deviceClassName": "gpu", **request}
    return an_object({"devices": {"requests": [{"name": "a", "exactly": exactly}]}})


def a_slice(*devices: Manifest, **spec: object) -> Manifest:
    pool = {"name": "p", "resourceSliceCount": 1}
    return an_object({"driver": "d", "pool": pool, "nodeName": "n", "devices": list(devices), **spec})


VALID: dict[str, tuple[Strategy, Manifest]] = {
    "volume": (PersistentVolumeStrategy(), a_volume()),
    "local volume": (
        PersistentVolumeStrategy(),
        an_object(
            {
                "accessModes": MODES,
                "capacity": {"storage": "1Gi"},
                "local": {"path": "/mnt"},
                "nodeAffinity": {
                    "required": {
                        "nodeSelectorTerms": [
                            {
                                "matchExpressions": [
                                    {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n"]}
                                ],
                                "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}],
                            }
                        ]
                    }
                },
            }
        ),
    ),
    "claim": (PersistentVolumeClaimStrategy(), a_claim()),
    "storage class": (StorageClassStrategy(), an_object(provisioner="kubernetes.io/no-provisioner")),
    "driver": (CSIDriverStrategy(), an_object()),
    "drivers of a node": (
        CSINodeStrategy(),
        an_object({"drivers": [{"name": "d", "nodeID": "n", "topologyKeys": ["a/b"]}]}),
    ),
    "capacity": (CSIStorageCapacityStrategy(), an_object(storageClassName="fast", capacity="1Gi")),
    "attachment": (
        VolumeAttachmentStrategy(),
        an_object({"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "v"}}),
    ),
    "attachment of a volume without a name": (
        VolumeAttachmentStrategy(),
        an_object(
            {
                "attacher": "d",
                "nodeName": "n",
                "source": {"inlineVolumeSpec": {"accessModes": MODES, "csi": CSI}},
            }
        ),
    ),
    "device claim": (ResourceClaimStrategy(), a_request()),
    "slice": (
        ResourceSliceStrategy(),
        a_slice(
            {
                "name": "gpu-0",
                "attributes": {"model": {"string": "a100"}, "a.b/driver": {"version": "1.2.3"}},
                "capacity": {"memory": {"value": "40Gi"}},
            }
        ),
    ),
}


@pytest.mark.parametrize(("strategy", "obj"), VALID.values(), ids=VALID)
def test_what_makes_sense_is_accepted(strategy: Strategy, obj: Manifest) -> None:
    assert creation_problems(strategy, obj) == []


WRONG: dict[str, tuple[Strategy, Manifest, list[str]]] = {
    "an empty volume": (
        PersistentVolumeStrategy(),
        an_object({}),
        [
            "spec.accessModes: Required value",
            "spec.capacity: Required value",
            'spec.capacity: Unsupported value: null: supported values: "storage"',
            "spec: Required value: must specify a volume type",
        ],
    ),
    "two volumes in one": (
        PersistentVolumeStrategy(),
        a_volume(nfs={"server": "s", "path": "/"}),
        ["spec.csi: Forbidden: may not specify more than 1 volume type"],
    ),
    "a local volume anywhere": (
        PersistentVolumeStrategy(),
        an_object({"accessModes": MODES, "capacity": {"storage": "1Gi"}, "local": {"path": "/a/../b"}}),
        [
            "spec.local.path: Invalid value: \"/a/../b\": must not contain '..'",
            "spec.nodeAffinity: Required value: Local volume requires node affinity",
        ],
    ),
    "a volume of nothing": (
        PersistentVolumeStrategy(),
        a_volume(capacity={"storage": "0"}, persistentVolumeReclaimPolicy="Hide"),
        [
            'spec.capacity[storage]: Invalid value: "0": must be greater than zero',
            'spec.persistentVolumeReclaimPolicy: Unsupported value: "Hide": '
            'supported values: "Delete", "Recycle", "Retain"',
        ],
    ),
    "a volume for one pod and all": (
        PersistentVolumeStrategy(),
        a_volume(accessModes=["ReadWriteOncePod", "ReadWriteMany"]),
        ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
    ),
    "a volume at no node": (
        PersistentVolumeStrategy(),
        a_volume(nodeAffinity={"required": {}}),
        [
            "spec.nodeAffinity.required.nodeSelectorTerms: Required value: "
            "must have at least one node selector term"
        ],
    ),
    "an empty claim": (
        PersistentVolumeClaimStrategy(),
        an_object({}),
        [
            "spec.accessModes: Required value: at least 1 access mode is required",
            "spec.resources[storage]: Required value",
        ],
    ),
    "a claim of strange ways": (
        PersistentVolumeClaimStrategy(),
        a_claim(accessModes=["Sometimes"], volumeMode="Tape", storageClassName="Fast"),
        [
            'spec.accessModes: Unsupported value: "Sometimes": supported values: '
            '"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"',
            f'spec.storageClassName: Invalid value: "Fast": {SUBDOMAIN}',
            'spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"',
        ],
    ),
    "storage from nowhere": (
        StorageClassStrategy(),
        an_object(reclaimPolicy="Recycle", volumeBindingMode="Later"),
        [
            "provisioner: Required value",
            'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
            'volumeBindingMode: Unsupported value: "Later": supported values: "Immediate", '
            '"WaitForFirstConsumer"',
        ],
    ),
    "nothing to tune": (
        VolumeAttributesClassStrategy(),
        an_object(driverName="d"),
        ["parameters: Required value: must contain at least one key/value pair"],
    ),
    "short tokens": (
        CSIDriverStrategy(),
        an_object({"tokenRequests": [{"audience": "a", "expirationSeconds": 5}]}),
        [
            "spec.tokenRequests[0].expirationSeconds: Invalid value: 5: "
            "may not specify a duration less than 10 minutes"
        ],
    ),
    "a driver twice": (
        CSINodeStrategy(),
        an_object({"drivers": [{"name": "d", "nodeID": "n"}, {"name": "d"}]}),
        ["spec.drivers[1].nodeID: Required value", 'spec.drivers[1].name: Duplicate value: "d"'],
    ),
    "less than nothing": (
        CSIStorageCapacityStrategy(),
        an_object(storageClassName="c", capacity="-1"),
        ['capacity: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    "an attachment of nothing": (
        VolumeAttachmentStrategy(),
        an_object({"attacher": "d", "nodeName": "n"}),
        [
            "spec.source: Required value: must specify exactly one of inlineVolumeSpec and "
            "persistentVolumeName"
        ],
    ),
    "a claim for all two devices": (
        ResourceClaimStrategy(),
        a_request(allocationMode="All", count=2),
        [
            "spec.devices.requests[0].exactly.count: Invalid value: 2: "
            "must not be specified when allocationMode is 'All'"
        ],
    ),
    "a claim for some devices": (
        ResourceClaimStrategy(),
        a_request(allocationMode="Some", deviceClassName=""),
        [
            "spec.devices.requests[0].exactly.deviceClassName: Required value",
            'spec.devices.requests[0].exactly.allocationMode: Unsupported value: "Some": '
            'supported values: "All", "ExactCount"',
        ],
    ),
    "a claim of no form": (
        ResourceClaimStrategy(),
        an_object({"devices": {"requests": [{"name": "a"}], "constraints": [{"requests": ["b"]}]}}),
        [
            "spec.devices.requests[0]: Required value: exactly one of `exactly` or "
            "`firstAvailable` is required",
            'spec.devices.constraints[0].requests[0]: Invalid value: "b": must be the name '
            "of a request in the "
            "claim or the name of a request and a subrequest separated by '/'",
            'spec.devices.constraints[0]: Required value: exactly one of "matchAttribute" or '
            '"distinctAttribute" is required, but multiple fields are set',
        ],
    ),
    "a class of plain resources": (
        DeviceClassStrategy(),
        an_object({"extendedResourceName": "cpu", "selectors": [{}]}),
        [
            "spec.selectors[0].cel: Required value",
            'spec.extendedResourceName: Invalid value: "cpu": must be a valid extended resource name',
        ],
    ),
    "a slice everywhere and here": (
        ResourceSliceStrategy(),
        a_slice(allNodes=True),
        [
            'spec: Invalid value: "{`nodeName`, `allNodes`}": exactly one of `nodeName`, `nodeSelector`, '
            "`allNodes`, `perDeviceNodeSelection` is required, but multiple fields are set"
        ],
    ),
    "a slice of strange devices": (
        ResourceSliceStrategy(),
        a_slice(
            {"name": "a", "attributes": {"v": {"version": "1"}, "n": {}}},
            {"name": "a", "nodeName": "x"},
            pool={"name": "p"},
        ),
        [
            "spec.pool.resourceSliceCount: Invalid value: 0: must be greater than zero",
            'spec.devices[0].attributes[v].version: Invalid value: "1": '
            "must be a string compatible with semver.org spec 2.0.0",
            'spec.devices[0].attributes[n]: Invalid value: "": exactly one value must be specified',
            "spec.devices[1]: Invalid value: null: `nodeName`, `nodeSelector` and `allNodes` "
            "can only be set if "
            "`perDeviceNodeSelection` is set to true in the ResourceSlice spec",
            'spec.devices[1]: Duplicate value: "a"',
        ],
    ),
}


@pytest.mark.parametrize(("strategy", "obj", "messages"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_reported_in_kubernetes_words(
    strategy: Strategy, obj: Manifest, messages: list[str]
) -> None:
    assert creation_problems(strategy, obj) == messages
