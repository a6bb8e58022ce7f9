from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest
from moorage.apiserver.kinds.claims import PersistentVolumeClaimStrategy
from moorage.apiserver.kinds.config import ConfigMapStrategy, SecretStrategy
from moorage.apiserver.kinds.cronjobs import CronJobStrategy
from moorage.apiserver.kinds.csi import (
    CSIDriverStrategy,
    CSINodeStrategy,
    CSIStorageCapacityStrategy,
    VolumeAttachmentStrategy,
)
from moorage.apiserver.kinds.daemons import DaemonSetStrategy
from moorage.apiserver.kinds.device_slices import ResourceSliceStrategy
from moorage.apiserver.kinds.devices import DeviceClassStrategy, ResourceClaimStrategy
from moorage.apiserver.kinds.endpoints import EndpointsStrategy
from moorage.apiserver.kinds.events import EventsEventStrategy, EventStrategy
from moorage.apiserver.kinds.groups import PodGroupStrategy, WorkloadStrategy
from moorage.apiserver.kinds.jobs import JobStrategy
from moorage.apiserver.kinds.leases import LeaseStrategy
from moorage.apiserver.kinds.namespaces import NamespaceStrategy
from moorage.apiserver.kinds.nodes import NodeStrategy
from moorage.apiserver.kinds.policy import PodDisruptionBudgetStrategy
from moorage.apiserver.kinds.priorities import PriorityClassStrategy
from moorage.apiserver.kinds.quotas import LimitRangeStrategy, ResourceQuotaStrategy
from moorage.apiserver.kinds.rbac import (
    ClusterRoleBindingStrategy,
    ClusterRoleStrategy,
    RoleBindingStrategy,
    RoleStrategy,
)
from moorage.apiserver.kinds.runtime_classes import RuntimeClassStrategy
from moorage.apiserver.kinds.services import ServiceStrategy
from moorage.apiserver.kinds.stateful import ControllerRevisionStrategy, StatefulSetStrategy
from moorage.apiserver.kinds.storage_classes import StorageClassStrategy, VolumeAttributesClassStrategy
from moorage.apiserver.kinds.volumes import PersistentVolumeStrategy
from moorage.apiserver.kinds.workloads import (
    DeploymentStrategy,
    ReplicaSetStrategy,
    ReplicationControllerStrategy,
)
from moorage.apiserver.strategy import Strategy
from tests.apiserver.kinds.making import (
    LABELS,
    a_controller,
    a_job,
    a_template,
    an_object,
    creation_problems,
)

NO_MATCH = "`selector` does not match template `labels`"
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
    "or '-', and must start and "
    "end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
    "used for validation is '[0-9]+%')"
)
CSI = {"driver": "d", "volumeHandle": "h"}
MODES = ["ReadWriteOnce"]


def a_volume(**spec: object) -> Manifest:
    return an_object({"accessModes": MODES, "capacity": {"storage": "1Gi"}, "csi": CSI, **spec})


def a_claim(**spec: object) -> Manifest:
    return an_object({"accessModes": MODES, "resources": {"requests": {"storage": "1Gi"}}, **spec})


def a_service(**spec: object) -> Manifest:
    return an_object({"ports": [{"port": 80}], **spec})


def a_request(**request: object) -> Manifest:
    exactly = {"deviceClassName": "gpu", **request}
    return an_object({"devices": {"requests": [{"name": "a", "exactly": exactly}]}})


def a_slice(*devices: Manifest, **spec: object) -> Manifest:
    pool = {"name": "p", "resourceSliceCount": 1}
    return an_object({"driver": "d", "pool": pool, "nodeName": "n", "devices": list(devices), **spec})


def a_limit(**limits: object) -> Manifest:
    return an_object({"limits": [{"type": "Container", **limits}]})


def a_cron_job(schedule: str = "* * * * *", **spec: object) -> Manifest:
    job = {"spec": {"template": a_template(restartPolicy="Never")}}
    return an_object({"schedule": schedule, "jobTemplate": job, **spec})


def a_job_with_failure_rule(**rule: object) -> Manifest:
    return a_job(podFailurePolicy={"rules": [rule]})


VALID: dict[str, tuple[Strategy, Manifest]] = {
    "deployment": (DeploymentStrategy(), a_controller()),
    "replica set": (ReplicaSetStrategy(), a_controller()),
    "replication controller": (ReplicationControllerStrategy(), an_object({"template": a_template()})),
    "stateful set with claims that its pods mount": (
        StatefulSetStrategy(),
        an_object(
            {
                "selector": {"matchLabels": LABELS},
                "template": a_template(
                    containers=[
                        {"name": "a", "image": "i", "volumeMounts": [{"name": "data", "mountPath": "/d"}]}
                    ]
                ),
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": a_claim()["spec"]}],
            }
        ),
    ),
    "daemon set": (DaemonSetStrategy(), a_controller()),
    "job": (JobStrategy(), a_job()),
    "indexed job": (
        JobStrategy(),
        a_job(
            completionMode="Indexed",
            completions=5,
            successPolicy={"rules": [{"succeededIndexes": "0,2-3", "succeededCount": 2}]},
        ),
    ),
    "cron job": (CronJobStrategy(), a_cron_job("*/5 1-3,7 1 jan-mar sun", timeZone="Etc/UTC")),
    "cron job every hour": (CronJobStrategy(), a_cron_job("@every 1h30m")),
    "service": (ServiceStrategy(), a_service()),
    "endpoints": (
        EndpointsStrategy(),
        an_object(subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]),
    ),
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
    "config map": (ConfigMapStrategy(), an_object(data={"a.b": ""}, binaryData={"c": "AA=="})),
    "secret": (SecretStrategy(), an_object(data={"a": "AA=="})),
    "limit range": (LimitRangeStrategy(), a_limit(max={"cpu": "2"}, min={"cpu": "1"})),
    "quota": (
        ResourceQuotaStrategy(),
        an_object({"hard": {"pods": "5", "requests.a.b/gpu": "1", "count/jobs.batch": "2"}}),
    ),
    "quota of a priority": (
        ResourceQuotaStrategy(),
        an_object(
            {
                "hard": {"pods": "5"},
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                },
            }
        ),
    ),
    "budget": (PodDisruptionBudgetStrategy(), an_object({"maxUnavailable": "50%", "selector": {}})),
    "priority class": (PriorityClassStrategy(), an_object(value=1_000_000_000)),
    "system priority class": (
        PriorityClassStrategy(),
        an_object(meta={"name": "system-node-critical"}, value=2_000_001_000),
    ),
    "pod group": (PodGroupStrategy(), an_object({"schedulingPolicy": {"basic": {}}})),
    "workload": (
        WorkloadStrategy(),
        an_object({"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"gang": {"minCount": 1}}}]}),
    ),
    "runtime class": (
        RuntimeClassStrategy(),
        an_object(handler="runc", overhead={"podFixed": {"cpu": "1m"}}),
    ),
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
    "lease": (LeaseStrategy(), an_object({"leaseDurationSeconds": 15, "leaseTransitions": 0})),
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
    "role": (RoleStrategy(), an_object(rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])),
    "node": (
        NodeStrategy(),
        an_object({"taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]}),
    ),
}


@pytest.mark.parametrize(("strategy", "obj"), VALID.values(), ids=VALID)
def test_what_makes_sense_is_accepted(strategy: Strategy, obj: Manifest) -> None:
    assert creation_problems(strategy, obj) == []


WRONG: dict[str, tuple[Strategy, Manifest, list[str]]] = {
    "no selector": (
        DeploymentStrategy(),
        an_object({"template": a_template()}),
        [
            "spec.selector: Required value",
            f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {NO_MATCH}',
        ],
    ),
    "an empty selector": (
        DeploymentStrategy(),
        a_controller(selector={}),
        ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    "a selector of other pods": (
        DeploymentStrategy(),
        a_controller(selector={"matchLabels": {"app": "db"}}),
        [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {NO_MATCH}'],
    ),
    "a malformed selector": (
        DeploymentStrategy(),
        a_controller(selector={"matchExpressions": [{"key": "a", "operator": "In"}]}),
        [
            "spec.selector.matchExpressions[0].values: Required value: "
            "must be specified when `operator` is 'In' or 'NotIn'"
        ],
    ),
    "an unknown operator": (
        ReplicaSetStrategy(),
        a_controller(selector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
        ['spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator'],
    ),
    "negative replicas": (
        DeploymentStrategy(),
        a_controller(replicas=-1),
        ["spec.replicas: Invalid value: -1: must be greater than or equal to 0"],
    ),
    "a deployment of pods that end": (
        DeploymentStrategy(),
        a_controller(template=a_template(restartPolicy="Never")),
        ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"'],
    ),
    "a deployment of pods with a deadline": (
        DeploymentStrategy(),
        a_controller(template=a_template(activeDeadlineSeconds=5)),
        [
            "spec.template.spec.activeDeadlineSeconds: Forbidden: "
            "activeDeadlineSeconds in ReplicaSet is not Supported"
        ],
    ),
    "a rollout that cannot move": (
        DeploymentStrategy(),
        a_controller(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
        [
            'spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 '
            "when `maxSurge` is 0"
        ],
    ),
    "a rollout of more than all": (
        DeploymentStrategy(),
        a_controller(strategy={"rollingUpdate": {"maxUnavailable": "101%"}}),
        ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%'],
    ),
    "a rollout of some": (
        DeploymentStrategy(),
        a_controller(strategy={"rollingUpdate": {"maxSurge": "some"}}),
        [f'spec.strategy.rollingUpdate.maxSurge: Invalid value: "some": {PERCENT}'],
    ),
    "a recreation that rolls": (
        DeploymentStrategy(),
        a_controller(strategy={"type": "Recreate", "rollingUpdate": {}}),
        ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"],
    ),
    "an unknown strategy": (
        DeploymentStrategy(),
        a_controller(strategy={"type": "Hope"}),
        ['spec.strategy: Unsupported value: {"type":"Hope"}: supported values: "Recreate", "RollingUpdate"'],
    ),
    "a deadline too soon": (
        DeploymentStrategy(),
        a_controller(progressDeadlineSeconds=5, minReadySeconds=5),
        ["spec.progressDeadlineSeconds: Invalid value: 5: must be greater than minReadySeconds"],
    ),
    "a replication controller of nothing": (
        ReplicationControllerStrategy(),
        an_object({}),
        ["spec.selector: Required value", "spec.template: Required value"],
    ),
    "a stateful set in disorder": (
        StatefulSetStrategy(),
        a_controller(podManagementPolicy="Chaos"),
        ["spec.podManagementPolicy: Invalid value: \"Chaos\": must be 'OrderedReady' or 'Parallel'"],
    ),
    "a stateful set that keeps half": (
        StatefulSetStrategy(),
        a_controller(persistentVolumeClaimRetentionPolicy={"whenScaled": "Half"}),
        [
            'spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Half": '
            'supported values: "Retain", "Delete"'
        ],
    ),
    "a stateful set that rolls on deletion": (
        StatefulSetStrategy(),
        a_controller(updateStrategy={"type": "OnDelete", "rollingUpdate": {"partition": 1}}),
        [
            'spec.updateStrategy.rollingUpdate: Invalid value: {"partition":1}: '
            "only allowed for updateStrategy 'RollingUpdate'"
        ],
    ),
    "a stateful set with a strange service": (
        StatefulSetStrategy(),
        a_controller(serviceName="A"),
        [f'spec.serviceName: Invalid value: "A": {LABEL}'],
    ),
    "a stateful set with a claim of nothing": (
        StatefulSetStrategy(),
        a_controller(volumeClaimTemplates=[{"metadata": {"name": "d"}, "spec": {"accessModes": MODES}}]),
        ["spec.volumeClaimTemplates[0].spec.resources[storage]: Required value"],
    ),
    "a daemon set without selector": (
        DaemonSetStrategy(),
        an_object({"template": a_template()}),
        [f'spec.template.metadata.labels: Invalid value: {{"app":"web"}}: {NO_MATCH}'],
    ),
    "a daemon set that surges and takes away": (
        DaemonSetStrategy(),
        a_controller(updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
        [
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: "
            "may not be set when maxUnavailable is non-zero"
        ],
    ),
    "a daemon set that cannot move": (
        DaemonSetStrategy(),
        a_controller(updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}),
        ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"],
    ),
    "a revision of nothing": (
        ControllerRevisionStrategy(),
        an_object(revision=-1),
        [
            "revision: Invalid value: -1: must be greater than or equal to 0",
            "data: Required value: data is mandatory",
        ],
    ),
    "a job of pods that never end": (
        JobStrategy(),
        an_object({"template": a_template({})}),
        ['spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"'],
    ),
    "an indexed job without end": (
        JobStrategy(),
        a_job(completionMode="Indexed", parallelism=1),
        ["spec.completions: Required value: when completion mode is Indexed"],
    ),
    "limits an index without indexes": (
        JobStrategy(),
        a_job(backoffLimitPerIndex=1),
        ["spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
    ),
    "an indexed job whose pods have too long names": (
        JobStrategy(),
        an_object(
            {
                "template": a_template({}, restartPolicy="Never"),
                "completionMode": "Indexed",
                "completions": 11,
            },
            meta={"name": "x" * 61},
        ),
        [
            f'metadata.name: Invalid value: "{"x" * 61}": will not able to create pod with '
            f"invalid DNS label: "
            f"{'x' * 61}-10"
        ],
    ),
    "a job with a selector of its own": (
        JobStrategy(),
        a_job(selector={"matchLabels": {"mine": "yes"}}),
        [
            'spec.selector: Invalid value: {"matchLabels":{"mine":"yes","batch.kubernetes.io/controller-uid":'
            '"0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f"}}: `selector` not auto-generated',
            "spec.template.metadata.labels: Invalid value: "
            '{"job-name":"web","batch.kubernetes.io/job-name":"web",'
            '"controller-uid":"0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f",'
            '"batch.kubernetes.io/controller-uid":"0b5e5d3c-4f0b-4a3e-9d0e-0f0f0f0f0f0f"}: ' + NO_MATCH,
        ],
    ),
    "a failure rule without an action": (
        JobStrategy(),
        a_job_with_failure_rule(onPodConditions=[{"type": "DisruptionTarget"}]),
        [
            "spec.podFailurePolicy.rules[0].action: Required value: "
            'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'
        ],
    ),
    "a failure rule about nothing": (
        JobStrategy(),
        a_job_with_failure_rule(action="Ignore"),
        [
            "spec.podFailurePolicy.rules[0]: Invalid value: "
            "specifying one of OnExitCodes and OnPodConditions is required"
        ],
    ),
    "exit codes in disorder": (
        JobStrategy(),
        a_job_with_failure_rule(
            action="Count", onExitCodes={"operator": "In", "values": [3, 0, 3], "containerName": "x"}
        ),
        [
            'spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: "x": '
            "must be one of the "
            "container or initContainer names in the pod template",
            "spec.podFailurePolicy.rules[0].onExitCodes.values[1]: Invalid value: 0: "
            "must not be 0 for the In operator",
            "spec.podFailurePolicy.rules[0].onExitCodes.values[2]: Duplicate value: 3",
            "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [3,0,3]: must be ordered",
        ],
    ),
    "success of too many": (
        JobStrategy(),
        a_job(
            completionMode="Indexed",
            completions=3,
            successPolicy={
                "rules": [{"succeededIndexes": "0-1", "succeededCount": 3}, {"succeededIndexes": "3"}]
            },
        ),
        [
            "spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 "
            "(the number of indexes in the specified succeededIndexes field)",
            'spec.successPolicy.rules[1].succeededIndexes: Invalid value: "3": '
            'error parsing succeededIndexes: too large index: "3"',
        ],
    ),
    "a schedule of four fields": (
        CronJobStrategy(),
        a_cron_job("* * * *"),
        ['spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]'],
    ),
    "a schedule in the 61st minute": (
        CronJobStrategy(),
        a_cron_job("61 * * * *"),
        ['spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61'],
    ),
    "a schedule on no day": (
        CronJobStrategy(),
        a_cron_job("* * 0 * *"),
        ['spec.schedule: Invalid value: "* * 0 * *": beginning of range (0) below minimum (1): 0'],
    ),
    "a schedule of words": (
        CronJobStrategy(),
        a_cron_job("now * * * *"),
        [
            'spec.schedule: Invalid value: "now * * * *": failed to parse int from now: '
            'strconv.Atoi: parsing "now": invalid syntax'
        ],
    ),
    "no schedule": (CronJobStrategy(), a_cron_job(""), ["spec.schedule: Required value"]),
    "a schedule with a zone": (
        CronJobStrategy(),
        a_cron_job("TZ=UTC * * * * *"),
        [
            'spec.schedule: Invalid value: "TZ=UTC * * * * *": '
            "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        ],
    ),
    "no such zone": (
        CronJobStrategy(),
        a_cron_job(timeZone="Mars/Olympus"),
        ['spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus'],
    ),
    "an unknown policy": (
        CronJobStrategy(),
        a_cron_job(concurrencyPolicy="Maybe"),
        [
            'spec.concurrencyPolicy: Unsupported value: "Maybe": supported values: "Allow", '
            '"Forbid", "Replace"'
        ],
    ),
    "a service without ports": (ServiceStrategy(), an_object({}), ["spec.ports: Required value"]),
    "ports without names": (
        ServiceStrategy(),
        a_service(ports=[{"port": 80, "name": "a"}, {"port": 80}]),
        [
            "spec.ports[1].name: Required value",
            'spec.ports[1]: Duplicate value: {"port":80,"protocol":"TCP"}',
        ],
    ),
    "a port too high": (
        ServiceStrategy(),
        a_service(ports=[{"port": 65536, "targetPort": 1}]),
        ["spec.ports[0].port: Invalid value: 65536: must be between 1 and 65535, inclusive"],
    ),
    "a port with a strange name and protocol": (
        ServiceStrategy(),
        a_service(ports=[{"port": 1, "targetPort": "UP", "protocol": "ICMP"}]),
        [
            'spec.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"',
            'spec.ports[0].targetPort: Invalid value: "UP": '
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
            'spec.ports[0].targetPort: Invalid value: "UP": must contain at least one letter (a-z)',
        ],
    ),
    "a node port where there is none": (
        ServiceStrategy(),
        a_service(ports=[{"port": 1, "nodePort": 30000}]),
        ["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
    ),
    "a type of service": (
        ServiceStrategy(),
        a_service(type="Best"),
        [
            'spec.type: Unsupported value: "Best": '
            'supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'
        ],
    ),
    "a headless node port": (
        ServiceStrategy(),
        a_service(type="NodePort", clusterIP="None"),
        ["spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services"],
    ),
    "an address that is none": (
        ServiceStrategy(),
        a_service(clusterIP="10.96.0"),
        [
            'spec.clusterIPs[0]: Invalid value: "10.96.0": '
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        ],
    ),
    "two families": (
        ServiceStrategy(),
        a_service(ipFamilyPolicy="RequireDualStack"),
        [
            'spec.ipFamilyPolicy: Invalid value: "RequireDualStack": '
            "this cluster is not configured for dual-stack services"
        ],
    ),
    "another family": (
        ServiceStrategy(),
        a_service(ipFamilies=["IPv6"]),
        ['spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster'],
    ),
    "no name outside": (
        ServiceStrategy(),
        an_object({"type": "ExternalName"}),
        ["spec.externalName: Required value"],
    ),
    "endless digits instead of an address": (
        EndpointsStrategy(),
        an_object(subsets=[{"addresses": [{"ip": f"1.2.3.{'0' * 5000}4"}]}]),
        [f'subsets[0].addresses[0].ip: Invalid value: "1.2.3.{"0" * 5000}4": must not have leading 0s'],
    ),
    "an address outside the range": (
        ServiceStrategy(),
        a_service(clusterIP="192.168.0.1"),
        [
            'spec.clusterIPs: Invalid value: ["192.168.0.1"]: failed to allocate IP '
            "192.168.0.1: the provided IP "
            "(192.168.0.1) is not in the valid range. The range of valid IPs is 10.96.0.0/12"
        ],
    ),
    "a node port outside the range": (
        ServiceStrategy(),
        a_service(type="NodePort", ports=[{"port": 80, "nodePort": 80}]),
        [
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
            "The range of valid ports is 30000-32767"
        ],
    ),
    "endpoints at home": (
        EndpointsStrategy(),
        an_object(subsets=[{"addresses": [{"ip": "127.0.0.1"}]}, {}]),
        [
            'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": '
            "may not be in the loopback range (127.0.0.0/8, ::1/128)",
            "subsets[1]: Required value: must specify `addresses` or `notReadyAddresses`",
        ],
    ),
    "a taint twice": (
        NodeStrategy(),
        an_object({"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}),
        [
            'metadata.taints[1]: Duplicate value: {"key":"a","effect":"NoSchedule"}: '
            "taints must be unique by key and effect pair"
        ],
    ),
    "a taint that does nothing": (
        NodeStrategy(),
        an_object({"taints": [{"key": "a"}, {"key": "b", "effect": "Sulk"}]}),
        [
            "metadata.taints[0].effect: Required value",
            'metadata.taints[1].effect: Unsupported value: "Sulk": '
            'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
        ],
    ),
    "a negative node": (
        NodeStrategy(),
        an_object(status={"capacity": {"cpu": "-1"}, "allocatable": {"pods": "500m"}}),
        [
            'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
            'status.allocatable.pods: Invalid value: "500m": must be an integer',
        ],
    ),
    "two networks of one family": (
        NodeStrategy(),
        an_object({"podCIDRs": ["10.0.0.0/24", "10.0.1.0/24"]}),
        [
            'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: '
            "may specify no more than one CIDR for each IP family"
        ],
    ),
    "a finalizer of nobody": (
        NamespaceStrategy(),
        an_object({"finalizers": ["mine"]}),
        [
            'spec.finalizers: Invalid value: "mine": '
            "name is neither a standard finalizer name nor is it fully qualified"
        ],
    ),
    "a key that is no file name": (
        ConfigMapStrategy(),
        an_object(data={"a b": "", "..": ""}),
        [
            f'data[a b]: Invalid value: "a b": {KEY}',
            "data[..]: Invalid value: \"..\": must not be '..'",
        ],
    ),
    "a key twice": (
        ConfigMapStrategy(),
        an_object(data={"a": ""}, binaryData={"a": ""}),
        ['data[a]: Invalid value: "a": duplicate of key present in binaryData'],
    ),
    "too much configuration": (
        ConfigMapStrategy(),
        an_object(data={"a": "x" * 1048576}, binaryData={"b": "eA=="}),
        [": Too long: may not be more than 1048576 bytes"],
    ),
    "too much secret": (
        SecretStrategy(),
        an_object(data={"a": "eHh4" * 349526}),
        ["data: Too long: may not be more than 1048576 bytes"],
    ),
    "half a certificate": (
        SecretStrategy(),
        an_object(type="kubernetes.io/tls", data={"tls.crt": ""}),
        ["data[tls.key]: Required value"],
    ),
    "a token for nobody": (
        SecretStrategy(),
        an_object(type="kubernetes.io/service-account-token"),
        ["metadata.annotations[kubernetes.io/service-account.name]: Required value"],
    ),
    "no way in": (
        SecretStrategy(),
        an_object(type="kubernetes.io/basic-auth"),
        ["data[username]: Required value", "data[password]: Required value"],
    ),
    "limits that contradict each other": (
        LimitRangeStrategy(),
        a_limit(min={"cpu": "2"}, max={"cpu": "1"}, default={"cpu": "1"}, defaultRequest={"cpu": "2"}),
        [
            'spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1',
            'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": '
            "default request value 2 is greater than max value 1",
            'spec.limits[0].defaultRequest[cpu]: Invalid value: "2": '
            "default request value 2 is greater than default limit value 1",
            'spec.limits[0].default[cpu]: Invalid value: "2": min value 2 is greater than default value 1',
        ],
    ),
    "a ratio less than one": (
        LimitRangeStrategy(),
        a_limit(maxLimitRequestRatio={"cpu": "500m"}),
        ['spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1'],
    ),
    "a ratio that cannot be": (
        LimitRangeStrategy(),
        a_limit(maxLimitRequestRatio={"cpu": "3"}, min={"cpu": "1"}, max={"cpu": "2"}),
        [
            'spec.limits[0].maxLimitRequestRatio[cpu]: Invalid value: "3": '
            "ratio 3 is greater than max/min = 2.000000"
        ],
    ),
    "a limit on what containers have not": (
        LimitRangeStrategy(),
        a_limit(min={"pods": "1"}),
        [
            'spec.limits[0].min[pods]: Invalid value: "pods": must be a standard resource for containers',
            'spec.limits[0].defaultRequest[pods]: Invalid value: "pods": '
            "must be a standard resource for containers",
        ],
    ),
    "defaults for pods": (
        LimitRangeStrategy(),
        an_object({"limits": [{"type": "Pod", "default": {"cpu": "1"}}]}),
        ["spec.limits[0].default: Forbidden: may not be specified when `type` is 'Pod'"],
    ),
    "a quota of happiness": (
        ResourceQuotaStrategy(),
        an_object({"hard": {"happiness": "1"}}),
        [
            'spec.hard[happiness]: Invalid value: "happiness": must be a standard resource '
            "type or fully qualified",
            'spec.hard[happiness]: Invalid value: "happiness": must be a standard resource for quota',
        ],
    ),
    "scopes that exclude each other": (
        ResourceQuotaStrategy(),
        an_object({"scopes": ["BestEffort", "NotBestEffort"], "hard": {"pods": "1"}}),
        ['spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: conflicting scopes'],
    ),
    "a scope of something else": (
        ResourceQuotaStrategy(),
        an_object({"scopes": ["BestEffort"], "hard": {"cpu": "1"}}),
        ['spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource'],
    ),
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
    "a budget of two minds": (
        PodDisruptionBudgetStrategy(),
        an_object({"minAvailable": 1, "maxUnavailable": "200%"}),
        [
            'spec: Invalid value: {"minAvailable":1,"maxUnavailable":"200%"}: '
            "minAvailable and maxUnavailable cannot be both set",
            'spec.maxUnavailable: Invalid value: "200%": must not be greater than 100%',
        ],
    ),
    "a priority above all": (
        PriorityClassStrategy(),
        an_object(value=1_000_000_001),
        ["value: Forbidden: maximum allowed value of a user defined priority is 1000000000"],
    ),
    "a name of the system's": (
        PriorityClassStrategy(),
        an_object(meta={"name": "system-mine"}, value=1),
        [
            "metadata.name: Forbidden: priority class names with 'system-' prefix are "
            "reserved for system use "
            "only. error: system-mine is not a known system priority class"
        ],
    ),
    "a preemption that is none": (
        PriorityClassStrategy(),
        an_object(value=1, preemptionPolicy="Ask"),
        ['preemptionPolicy: Unsupported value: "Ask": supported values: "PreemptLowerPriority", "Never"'],
    ),
    "a group without a policy": (
        PodGroupStrategy(),
        an_object({}),
        ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`'],
    ),
    "a group with two policies": (
        PodGroupStrategy(),
        an_object({"schedulingPolicy": {"basic": {}, "gang": {"minCount": -1}}}),
        [
            'spec.schedulingPolicy: Invalid value: "{`basic`, `gang`}": '
            "must specify exactly one of: `basic`, `gang`",
            "spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal to 1",
        ],
    ),
    "a group whose class has a long name": (
        PodGroupStrategy(),
        an_object({"schedulingPolicy": {"basic": {}}, "priorityClassName": ".".join(["a" * 63] * 4)}),
        [
            f'spec.priorityClassName: Invalid value: "{".".join(["a" * 63] * 4)}": '
            "must be no more than 253 bytes"
        ],
    ),
    "a workload of nothing": (
        WorkloadStrategy(),
        an_object({}),
        ["spec.podGroupTemplates: Required value"],
    ),
    "a workload of one thing twice": (
        WorkloadStrategy(),
        an_object({"podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}] * 2}),
        ['spec.podGroupTemplates[1]: Duplicate value: {"name":"a","schedulingPolicy":{"basic":{}}}'],
    ),
    "a runtime that does not run": (
        RuntimeClassStrategy(),
        an_object(scheduling={"tolerations": [{"operator": "Equal"}]}),
        [
            "handler: Required value",
            'scheduling.tolerations[0].operator: Invalid value: "Equal": operator must be '
            "Exists when `key` is "
            'empty, which means "match all values and all keys"',
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
    "a lease for no time": (
        LeaseStrategy(),
        an_object({"leaseDurationSeconds": 0, "leaseTransitions": -1, "preferredHolder": "me"}),
        [
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
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
    "a rule about nothing": (
        RoleStrategy(),
        an_object(rules=[{}, {"verbs": ["get"], "nonResourceURLs": ["/healthz"]}]),
        [
            "rules[0].verbs: Required value: verbs must contain at least one value",
            "rules[0].apiGroups: Required value: resource rules must supply at least one api group",
            "rules[0].resources: Required value: resource rules must supply at least one resource",
            'rules[1].nonResourceURLs: Invalid value: ["/healthz"]: '
            "namespaced rules cannot apply to non-resource URLs",
        ],
    ),
    "an aggregation of nothing": (
        ClusterRoleStrategy(),
        an_object(aggregationRule={}),
        [
            "aggregationRule.clusterRoleSelectors: Required value: "
            "at least one clusterRoleSelector required if aggregationRule is non-nil"
        ],
    ),
    "a binding of nobody to nothing": (
        RoleBindingStrategy(),
        an_object(roleRef={"kind": "Rule"}, subjects=[{"kind": "Robot"}]),
        [
            'roleRef.kind: Unsupported value: "Rule": supported values: "Role", "ClusterRole"',
            "roleRef.name: Required value",
            "subjects[0].name: Required value",
            'subjects[0].kind: Unsupported value: "Robot": supported values: '
            '"ServiceAccount", "User", "Group"',
        ],
    ),
    "a binding of an account from nowhere": (
        ClusterRoleBindingStrategy(),
        an_object(roleRef={"kind": "Role", "name": "r"}, subjects=[{"kind": "ServiceAccount", "name": "s"}]),
        [
            'roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"',
            "subjects[0].namespace: Required value",
        ],
    ),
    "an event somewhere else": (
        EventStrategy(),
        an_object(involvedObject={"namespace": "other"}),
        ['involvedObject.namespace: Invalid value: "other": does not match event.namespace'],
    ),
    "an exact event of nobody": (
        EventStrategy(),
        an_object(involvedObject={"namespace": "default"}, eventTime="2026-01-01T00:00:00.000000Z"),
        [
            "reportingComponent: Required value",
            'reportingComponent: Invalid value: "": name part must be non-empty',
            'reportingComponent: Invalid value: "": name part must consist of alphanumeric '
            "characters, '-', "
            "'_' or '.', and must start and end with an alphanumeric character (e.g. "
            "'MyName',  or 'my.name',  "
            "or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
            "reportingInstance: Required value",
            "action: Required value",
            "reason: Required value",
        ],
    ),
    "a new event in the old way": (
        EventsEventStrategy(),
        an_object(regarding={"namespace": "default"}, deprecatedCount=2, type="Odd"),
        [
            "eventTime: Required value",
            'type: Invalid value: "": has invalid value: Odd',
            'count: Invalid value: "": needs to be unset',
        ],
    ),
}


@pytest.mark.parametrize(("strategy", "obj", "messages"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_said_in_kubernetes_words(
    strategy: Strategy, obj: Manifest, messages: list[str]
) -> None:
    assert creation_problems(strategy, obj) == messages


NAMES: dict[str, tuple[Strategy, str, list[str]]] = {
    "a namespace with dots": (NamespaceStrategy(), "a.b", ["must not contain dots"]),
    "a service that starts with a digit": (
        ServiceStrategy(),
        "1a",
        [
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
            "start with an alphabetic "
            "character, and end with an alphanumeric character (e.g. 'my-name',  or "
            "'abc-123', regex used for "
            "validation is '[a-z]([-a-z0-9]*[a-z0-9])?')"
        ],
    ),
    "a role with a colon": (RoleStrategy(), "system:Node", []),
    "a role with a slash": (RoleStrategy(), "a/b", ["may not contain '/'"]),
    "a role that goes up": (RoleStrategy(), "..", ["may not be '..'"]),
    "a stateful set with dots": (StatefulSetStrategy(), "a.b", ["must not contain dots"]),
    "a deployment with dots": (DeploymentStrategy(), "a.b", []),
}


@pytest.mark.parametrize(("strategy", "name", "problems"), NAMES.values(), ids=NAMES)
def test_names(strategy: Strategy, name: str, problems: list[str]) -> None:
    assert list(strategy.name_problems(name)) == problems


def test_a_deployment_with_dots_in_its_name_is_warned_about() -> None:
    warned = DeploymentStrategy().warnings(an_object({}, meta={"name": "a.b"}), None)
    assert warned == [
        "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; "
        "a DNS label is recommended: [must not contain dots]"
    ]
