"""What applications bring beside their workloads: what is wrong, in Kubernetes' words."""

from __future__ import annotations

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.strategy import Strategy
from tests.apiserver.kinds.applications import (
    API_SERVICE,
    BACKEND,
    CLASS,
    CPU,
    INGRESS,
    MUTATING,
    MUTATING_BINDING,
    MUTATING_POLICY,
    POLICY,
    RULE,
    SCALER,
    SCALER_V1,
    SLICE,
    VALIDATING,
    VALIDATING_BINDING,
    VALIDATING_POLICY,
    a_metric,
    a_mutation,
    a_policy,
    a_scaler,
    a_webhook,
    an_api_service,
)
from tests.apiserver.kinds.object_builders import (
    an_object,
    creation_problems,
    status_problems,
    update_problems,
)

VALID: dict[str, tuple[Strategy, Manifest]] = {
    "network policy": (
        POLICY,
        an_object(
            {
                "egress": [{"to": [{"podSelector": {}, "namespaceSelector": {}}]}],
                "ingress": [
                    {
                        "from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
                        "ports": [{"port": 80, "endPort": 80}, {"port": "http", "protocol": "SCTP"}, {}],
                    }
                ],
            }
        ),
    ),
    "ingress": (
        INGRESS,
        an_object(
            {
                "ingressClassName": "nginx",
                "rules": [
                    {
                        "host": "*.example.com",
                        "http": {
                            "paths": [
                                {"path": "/", "pathType": "Prefix", "backend": BACKEND},
                                {
                                    "pathType": "ImplementationSpecific",
                                    "backend": {"resource": {"kind": "A", "name": "a"}},
                                },
                            ]
                        },
                    }
                ],
                "tls": [{"hosts": ["*.example.com", "a.b"], "secretName": "tls"}, {}],
            }
        ),
    ),
    "ingress class": (CLASS, an_object({"controller": "k8s.io/ingress-nginx"})),
    "endpoint slice": (SLICE, an_object(addressType="IPv6", endpoints=[{"addresses": ["2001:db8::1"]}])),
    "endpoint slice of names": (SLICE, an_object(addressType="FQDN", endpoints=[{"addresses": ["a.b."]}])),
    "autoscaler": (SCALER, a_scaler()),
    "autoscaler of a replication controller": (
        SCALER,
        a_scaler(scaleTargetRef={"kind": "ReplicationController", "name": "a", "apiVersion": "v1"}),
    ),
    "autoscaler by an object": (
        SCALER,
        a_metric(
            "Object",
            describedObject={"kind": "Service", "name": "a"},
            metric={"name": "b"},
            target={"type": "Value", "value": "5"},
        ),
    ),
    "autoscaler of autoscaling/v1": (SCALER_V1, a_scaler()),
    "webhook": (VALIDATING, a_webhook(rules=[RULE], matchConditions=[{"name": "a", "expression": "true"}])),
    "mutating webhook": (MUTATING, a_webhook(rules=[{**RULE, "resources": ["*", "*/status"]}])),
    "validating policy": (
        VALIDATING_POLICY,
        a_policy(paramKind={"apiVersion": "v1", "kind": "A"}),
    ),
    "mutating policy": (MUTATING_POLICY, a_mutation()),
    "API service": (
        API_SERVICE,
        an_api_service(service={"name": "a", "namespace": "b"}, insecureSkipTLSVerify=True),
    ),
}


@pytest.mark.parametrize(("strategy", "obj"), VALID.values(), ids=VALID)
def test_what_is_right_is_accepted_and_may_be_sent_again(strategy: Strategy, obj: Manifest) -> None:
    assert creation_problems(strategy, obj) == []
    assert update_problems(strategy, obj, obj) == []


PORT = "must be between 1 and 65535, inclusive"
WRONG: dict[str, tuple[Strategy, Manifest, list[str]]] = {
    "ports of a policy": (
        POLICY,
        an_object(
            {
                "ingress": [
                    {
                        "ports": [
                            {"port": 0},
                            {"endPort": 3},
                            {"port": "http", "endPort": 4},
                            {"port": 80, "endPort": 70},
                            {"protocol": "X"},
                        ]
                    }
                ]
            }
        ),
        [
            f"spec.ingress[0].ports[0].port: Invalid value: 0: {PORT}",
            "spec.ingress[0].ports[1].endPort: Invalid value: 3: may not be specified when `port` is not "
            "specified",
            "spec.ingress[0].ports[2].endPort: Invalid value: 4: may not be specified when `port` is "
            "non-numeric",
            "spec.ingress[0].ports[3].endPort: Invalid value: 80: must be greater than or equal to `port`",
            'spec.ingress[0].ports[4].protocol: Unsupported value: "X": supported values: "TCP", "UDP", '
            '"SCTP"',
        ],
    ),
    "peers of a policy": (
        POLICY,
        an_object(
            {
                "egress": [
                    {
                        "to": [
                            {},
                            {"ipBlock": {}},
                            {"ipBlock": {"cidr": "10.0.0.0/8"}, "podSelector": {}},
                            {"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.0.0.0/8", "::/64"]}},
                        ]
                    }
                ]
            }
        ),
        [
            "spec.egress[0].to[0]: Required value: must specify a peer",
            "spec.egress[0].to[1].ipBlock.cidr: Required value",
            "spec.egress[0].to[2]: Forbidden: may not specify both ipBlock and another peer",
            'spec.egress[0].to[3].ipBlock.except[0]: Invalid value: "10.0.0.0/8": must be a strict '
            "subset of `cidr`",
            'spec.egress[0].to[3].ipBlock.except[1]: Invalid value: "::/64": must be a strict subset of '
            "`cidr`",
        ],
    ),
    "types of a policy": (
        POLICY,
        an_object({"policyTypes": ["Other"]}),
        ['spec.policyTypes[0]: Unsupported value: "Other": supported values: "Ingress", "Egress"'],
    ),
    "an ingress without rules": (
        INGRESS,
        an_object({}),
        ["spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"],
    ),
    "backends": (
        INGRESS,
        an_object(
            {
                "defaultBackend": {"service": {"port": {}}},
                "rules": [
                    {"http": {"paths": [{"pathType": "Exact", "path": "/", "backend": backend}]}}
                    for backend in (
                        {},
                        {**BACKEND, "resource": {"kind": "A", "name": "a"}},
                        {"service": {"name": "a", "port": {"name": "a", "number": 1}}},
                        {"service": {"name": "a", "port": {"number": 70000}}},
                        {"resource": {"name": "a/b"}},
                    )
                ],
            }
        ),
        [
            "spec.defaultBackend.service.name: Required value",
            "spec.defaultBackend: Required value: port name or number is required",
            'spec.rules[0].http.paths[0].backend: Invalid value: "": resource or service backend is required',
            'spec.rules[1].http.paths[0].backend: Invalid value: "": cannot set both resource and '
            "service backends",
            'spec.rules[2].http.paths[0].backend: Invalid value: "": cannot set both port name & port number',
            f"spec.rules[3].http.paths[0].backend.service.port.number: Invalid value: 70000: {PORT}",
            "spec.rules[4].http.paths[0].backend.resource.kind: Required value",
            "spec.rules[4].http.paths[0].backend.resource.name: Invalid value: \"a/b\": may not contain '/'",
        ],
    ),
    "hosts and paths": (
        INGRESS,
        an_object(
            {
                "rules": [
                    {"host": "1.2.3.4"},
                    {"http": {}},
                    {
                        "http": {
                            "paths": [
                                {"backend": BACKEND},
                                {"pathType": "X", "backend": BACKEND},
                                {"pathType": "Prefix", "path": "a", "backend": BACKEND},
                                {"pathType": "Exact", "path": "/a//b/..", "backend": BACKEND},
                            ]
                        }
                    },
                ]
            }
        ),
        [
            'spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address',
            "spec.rules[1].http.paths: Required value",
            "spec.rules[2].http.paths[0].pathType: Required value: pathType must be specified",
            'spec.rules[2].http.paths[1].pathType: Unsupported value: "X": supported values: "Exact", '
            '"ImplementationSpecific", "Prefix"',
            'spec.rules[2].http.paths[2].path: Invalid value: "a": must be an absolute path',
            "spec.rules[2].http.paths[3].path: Invalid value: \"/a//b/..\": must not contain '//'",
            "spec.rules[2].http.paths[3].path: Invalid value: \"/a//b/..\": cannot end with '/..'",
        ],
    ),
    "a class in two places": (
        INGRESS,
        an_object(
            {"defaultBackend": BACKEND, "ingressClassName": "a"},
            meta={"annotations": {"kubernetes.io/ingress.class": "b"}},
        ),
        [
            'annotations.kubernetes.io/ingress.class: Invalid value: "b": must match `ingressClassName` when '
            "both are specified"
        ],
    ),
    "a class without a controller": (CLASS, an_object({}), ["spec.controller: Required value"]),
    "parameters of a class": (
        CLASS,
        an_object(
            {"controller": "a", "parameters": {"kind": "A", "name": "a", "scope": "Namespace"}},
        ),
        [
            'spec.controller: Invalid value: "a": must be a domain-prefixed path (such as "acme.io/foo")',
            "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'",
        ],
    ),
    "a slice": (
        SLICE,
        an_object(
            addressType="IPv4",
            endpoints=[{"addresses": []}, {"addresses": ["::1", "127.0.0.1"]}],
            ports=[{"name": "a"}, {"name": "a", "protocol": "X"}],
        ),
        [
            'ports[1].name: Duplicate value: "a"',
            'ports[1].protocol: Unsupported value: "X": supported values: "SCTP", "TCP", "UDP"',
            "endpoints[0].addresses: Required value: must contain at least 1 address",
            'endpoints[1].addresses: Invalid value: "::1": must be an IPv4 address',
            'endpoints[1].addresses[0]: Invalid value: "::1": may not be in the loopback range '
            "(127.0.0.0/8, ::1/128)",
            'endpoints[1].addresses[1]: Invalid value: "127.0.0.1": may not be in the loopback range '
            "(127.0.0.0/8, ::1/128)",
        ],
    ),
    "a slice of no type": (SLICE, an_object(), ["addressType: Required value"]),
    "numbers of pods": (
        SCALER,
        a_scaler(minReplicas=5, maxReplicas=-1),
        [
            "spec.maxReplicas: Invalid value: -1: must be greater than or equal to 1",
            "spec.maxReplicas: Invalid value: -1: must be greater than or equal to `minReplicas`",
        ],
    ),
    "no pods, in autoscaling/v1": (
        SCALER_V1,
        a_scaler(minReplicas=0),
        [
            "spec.minReplicas: Invalid value: 0: must be greater than or equal to 1",
            "spec.metrics: Forbidden: must specify at least one Object or External metric to support "
            "scaling to "
            "zero replicas",
        ],
    ),
    "what is scaled": (
        SCALER,
        a_scaler(scaleTargetRef={"kind": "Deployment"}),
        [
            "spec.scaleTargetRef.name: Required value",
            'spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group',
        ],
    ),
    "a metric without its source": (
        SCALER,
        a_scaler(metrics=[{"type": "Pods", "resource": CPU["resource"]}]),
        ["spec.metrics[0].pods: Required value: must populate information for the given metric source"],
    ),
    "a target": (
        SCALER,
        a_metric("Resource", name="cpu", target={"type": "X", "averageUtilization": 0, "averageValue": "0"}),
        [
            'spec.metrics[0].resource.target.type: Invalid value: "X": must be either Utilization, Value, or '
            "AverageValue",
            'spec.metrics[0].resource.target.averageValue: Invalid value: "0": must be positive',
            "spec.metrics[0].resource.target.averageUtilization: Invalid value: 0: must be greater than 0",
            "spec.metrics[0].resource.target.averageValue: Forbidden: may not set both a target raw "
            "value and a "
            "target utilization",
        ],
    ),
    "behavior": (
        SCALER,
        a_scaler(behavior={"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}}),
        [
            "spec.behavior.scaleUp.policies[0].periodSeconds: Invalid value: 1801: must be less than or "
            "equal to "
            "1800"
        ],
    ),
    "a webhook": (
        VALIDATING,
        a_webhook(
            name="a", sideEffects=None, timeoutSeconds=31, admissionReviewVersions=["v2"], clientConfig={}
        ),
        [
            'webhooks[0].name: Invalid value: "a": should be a domain with at least three segments '
            "separated by "
            "dots",
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun",
            "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 "
            "seconds",
            "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
            'webhooks[0].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of '
            "v1, v1beta1",
        ],
    ),
    "a webhook's address": (
        MUTATING,
        a_webhook(clientConfig={"url": "http://u@/a?b#c"}, reinvocationPolicy="X"),
        [
            "webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL "
            "scheme; desired "
            "format: https://host[/path]",
            'webhooks[0].clientConfig.url: Invalid value: "": host must be specified; desired format: '
            "https://host[/path]",
            'webhooks[0].clientConfig.url: Invalid value: "u": user information is not permitted in the URL',
            'webhooks[0].clientConfig.url: Invalid value: "c": fragments are not permitted in the URL',
            'webhooks[0].clientConfig.url: Invalid value: "b": query parameters are not permitted in the URL',
            'webhooks[0].reinvocationPolicy: Unsupported value: "X": supported values: "IfNeeded", "Never"',
        ],
    ),
    "a webhook's service": (
        VALIDATING,
        a_webhook(clientConfig={"service": {"name": "a", "port": 0, "path": "//"}}),
        [
            "webhooks[0].clientConfig.service.name: Required value",
            f"webhooks[0].clientConfig.service.port: Invalid value: 0: port is not valid: {PORT}",
            'webhooks[0].clientConfig.service.path: Invalid value: "//": segment[0] may not be empty',
        ],
    ),
    "a webhook's rules": (
        VALIDATING,
        a_webhook(rules=[{}, {**RULE, "operations": ["*", "X"], "resources": ["pods/*", "pods/status"]}]),
        [
            *(
                f"webhooks[0].rules[0].{key}: Required value"
                for key in ("operations", "apiGroups", "apiVersions", "resources")
            ),
            'webhooks[0].rules[1].operations: Invalid value: ["*","X"]: if \'*\' is present, must not '
            "specify "
            "other operations",
            'webhooks[0].rules[1].operations[1]: Unsupported value: "X": supported values: "*", "CONNECT", '
            '"CREATE", "DELETE", "UPDATE"',
            "webhooks[0].rules[1].resources[1]: Invalid value: \"pods/status\": if 'pods/*' is present, "
            "must not "
            "specify pods/status",
        ],
    ),
    "a policy that does nothing": (
        VALIDATING_POLICY,
        an_object({}),
        [
            "spec.matchConstraints: Required value",
            *(
                f"spec.{key}: Required value: validations or auditAnnotations must contain at least one item"
                for key in ("validations", "auditAnnotations")
            ),
        ],
    ),
    "variables of a policy": (
        VALIDATING_POLICY,
        a_policy(variables=[{"name": "in", "expression": "1"}, {"expression": " "}]),
        [
            'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
            "spec.variables[1].name: Required value: name is not specified",
            "spec.variables[1].expression: Required value: expression is not specified",
        ],
    ),
    "mutations": (
        MUTATING_POLICY,
        a_mutation({}, {"patchType": "JSONPatch", "applyConfiguration": {}}),
        [
            "spec.mutations[0].patchType: Required value",
            "spec.mutations[1].jsonPatch: Required value: must be specified when patchType is JSONPatch",
            'spec.mutations[1].applyConfiguration: Invalid value: "{applyConfiguration}": must not be '
            "specified "
            "when patchType is JSONPatch",
        ],
    ),
    "a binding": (
        VALIDATING_BINDING,
        an_object({"validationActions": [], "paramRef": {}}),
        [
            "spec.policyName: Required value",
            "spec.paramRef: Required value: one of name or selector must be specified",
            "spec.paramRef.parameterNotFoundAction: Required value",
            "spec.validationActions: Required value: at least one validation action is required",
        ],
    ),
    "a binding for deletions": (
        MUTATING_BINDING,
        an_object(
            {"policyName": "a", "matchResources": {"resourceRules": [{**RULE, "operations": ["DELETE"]}]}}
        ),
        [
            'spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported '
            'values: "*", '
            '"CONNECT", "CREATE", "UPDATE"'
        ],
    ),
    "an API service of another name": (
        API_SERVICE,
        an_api_service("a", groupPriorityMinimum=0),
        [
            'metadata.name: Invalid value: "a": must be `spec.version+"."+spec.group`: "v1.example.com"',
            "spec.groupPriorityMinimum: Invalid value: 0: must be positive and less than 20000",
        ],
    ),
    "an API service without a service": (
        API_SERVICE,
        an_api_service(caBundle="AAAA"),
        ['spec.caBundle: Invalid value: "3 bytes": local APIServices may not have a caBundle'],
    ),
}


@pytest.mark.parametrize(("strategy", "obj", "messages"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_reported_in_kubernetes_words(
    strategy: Strategy, obj: Manifest, messages: list[str]
) -> None:
    assert creation_problems(strategy, obj) == messages


def test_some_fields_stay() -> None:
    old, new = an_object({"controller": "a.b/c"}), an_object({"controller": "a.b/d"})
    assert update_problems(CLASS, old, new) == ['spec.controller: Invalid value: "a.b/d": field is immutable']
    assert update_problems(SLICE, an_object(addressType="IPv4"), an_object(addressType="IPv6")) == [
        'addressType: Invalid value: "IPv6": field is immutable'
    ]


def test_a_status_that_makes_no_sense_is_refused() -> None:
    points = [{"ip": "a"}, {"hostname": "1.2.3.4"}]
    assert status_problems(
        INGRESS, an_object({"defaultBackend": BACKEND}), {"loadBalancer": {"ingress": points}}
    ) == [
        'status.loadBalancer.ingress[0].ip: Invalid value: "a": must be a valid IP address, (e.g. '
        "10.9.8.7 or "
        "2001:db8::ffff)",
        'status.loadBalancer.ingress[1].hostname: Invalid value: "1.2.3.4": must be a DNS name, not an '
        "IP address",
    ]
    assert status_problems(SCALER, a_scaler(), {"currentReplicas": -1}) == [
        "status.currentReplicas: Invalid value: -1: must be greater than or equal to 0"
    ]
