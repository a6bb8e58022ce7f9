"""What is wrong with all other kinds, and with names, in Kubernetes' words."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.kinds.config_and_secrets import ConfigMapStrategy, SecretStrategy
from moorage_cluster.apiserver.kinds.endpoints import EndpointsStrategy
from moorage_cluster.apiserver.kinds.events import EventsEventStrategy, EventStrategy
from moorage_cluster.apiserver.kinds.leases import LeaseStrategy
from moorage_cluster.apiserver.kinds.limits_and_quotas import LimitRangeStrategy, ResourceQuotaStrategy
from moorage_cluster.apiserver.kinds.namespaces import NamespaceStrategy
from moorage_cluster.apiserver.kinds.nodes import NodeStrategy
from moorage_cluster.apiserver.kinds.priority_classes import PriorityClassStrategy
from moorage_cluster.apiserver.kinds.rbac import (
    ClusterRoleBindingStrategy,
    ClusterRoleStrategy,
    RoleBindingStrategy,
    RoleStrategy,
)
from moorage_cluster.apiserver.kinds.runtime_classes import RuntimeClassStrategy
from moorage_cluster.apiserver.kinds.services import ServiceStrategy
from moorage_cluster.apiserver.kinds.stateful_sets import StatefulSetStrategy
from moorage_cluster.apiserver.kinds.workloads import (
    DeploymentStrategy,
)
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.object_builders import (
    an_object,
    creation_problems,
)

KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def a_service(**spec: object) -> Manifest:
    return an_object({"ports": [{"port": 80}], **spec})


def a_limit(**limits: object) -> Manifest:
    return an_object({"limits": [{"type": "Container", **limits}]})


VALID: dict[str, tuple[Strategy, Manifest]] = {
    "service": (ServiceStrategy(), a_service()),
    "endpoints": (
        EndpointsStrategy(),
        an_object(subsets=[{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80}]}]),
    ),
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
    "priority class": (PriorityClassStrategy(), an_object(value=1_000_000_000)),
    "system priority class": (
        PriorityClassStrategy(),
        an_object(meta={"name": "system-node-critical"}, value=2_000_001_000),
    ),
    "runtime class": (
        RuntimeClassStrategy(),
        an_object(handler="runc", overhead={"podFixed": {"cpu": "1m"}}),
    ),
    "lease": (LeaseStrategy(), an_object({"leaseDurationSeconds": 15, "leaseTransitions": 0})),
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
        [f'subsets[0].addresses[0].ip: Invalid value: "1.2.3.{"0" * 4090}...": must not have leading 0s'],
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
    "a lease for no time": (
        LeaseStrategy(),
        an_object({"leaseDurationSeconds": 0, "leaseTransitions": -1, "preferredHolder": "me"}),
        [
            "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0",
            "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0",
            "spec.preferredHolder: Forbidden: may only be specified if `strategy` is defined",
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
def test_what_is_wrong_is_reported_in_kubernetes_words(
    strategy: Strategy, obj: Manifest, messages: list[str]
) -> None:
    assert creation_problems(strategy, obj) == messages


NAMES: dict[str, tuple[Strategy, str, list[str]]] = {
    "a namespace with dots": (NamespaceStrategy(), "a.b", ["must not contain dots"]),
    "a service that starts with a digit": (ServiceStrategy(), "1a", []),
    "a service with dots": (ServiceStrategy(), "a.b", ["must not contain dots"]),
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
