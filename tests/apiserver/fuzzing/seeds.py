"""Valid manifests, one or more of every kind: what random requests begin with."""

from __future__ import annotations

from typing import Any

from tests.apiserver.certificate_requests import a_request

Manifest = dict[str, Any]
_LABELS = {"app": "web"}
_SELECTOR = {"matchLabels": _LABELS}


def _container(**fields: Any) -> Manifest:
    return {"name": "main", "image": "registry.example/app:1", **fields}


_RESOURCES = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
_POD_SPEC: Manifest = {"containers": [_container(resources=_RESOURCES)]}
_FULL_POD_SPEC: Manifest = {
    "initContainers": [_container(name="first", restartPolicy="Always")],
    "containers": [
        _container(
            ports=[{"containerPort": 80, "name": "http", "hostPort": 8080}],
            env=[
                {"name": "A", "value": "1"},
                {"name": "B", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
                {"name": "C", "valueFrom": {"secretKeyRef": {"name": "a", "key": "k", "optional": True}}},
            ],
            envFrom=[{"configMapRef": {"name": "a"}, "prefix": "X_"}],
            resources={**_RESOURCES, "claims": [{"name": "gpu"}]},
            volumeMounts=[{"name": "data", "mountPath": "/data", "subPath": "x"}],
            livenessProbe={"httpGet": {"path": "/", "port": "http"}, "periodSeconds": 5},
            readinessProbe={"exec": {"command": ["true"]}},
            startupProbe={"grpc": {"port": 99}},
            lifecycle={"preStop": {"sleep": {"seconds": 5}}},
            securityContext={"runAsUser": 1000, "capabilities": {"add": ["NET_ADMIN"]}},
        )
    ],
    "volumes": [
        {"name": "data", "persistentVolumeClaim": {"claimName": "a"}},
        {"name": "tmp", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
        {"name": "config", "configMap": {"name": "a", "items": [{"key": "k", "path": "p"}]}},
        {"name": "all", "projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}},
    ],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}],
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 5, "preference": {"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["node-1"]}
                ]}}
            ],
        },
        "podAntiAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": _SELECTOR, "topologyKey": "kubernetes.io/hostname", "matchLabelKeys": ["v"]}
            ]
        },
    },
    "tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}],
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": _SELECTOR}
    ],
    "schedulingGates": [{"name": "example.com/wait"}],
    "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a"]}],
    "dnsConfig": {"nameservers": ["10.0.0.10"], "options": [{"name": "ndots", "value": "2"}]},
    "dnsPolicy": "None",
    "securityContext": {"runAsNonRoot": True, "sysctls": [{"name": "net.ipv4.ip_forward", "value": "1"}]},
    "terminationGracePeriodSeconds": 5,
}  # fmt: skip
_TEMPLATE = {"metadata": {"labels": _LABELS}, "spec": _POD_SPEC}
_JOB_SPEC: Manifest = {"template": {"spec": {**_POD_SPEC, "restartPolicy": "Never"}}}
_NODE_TERMS = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}
_CLAIM_SPEC: Manifest = {
    "devices": {
        "requests": [
            {"name": "gpu", "exactly": {"deviceClassName": "a", "count": 2, "allocationMode": "ExactCount"}}
        ]
    }
}
_SUBJECTS = [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}]
_RULES = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}]
_ACCESS = {"namespace": "default", "verb": "get", "resource": "pods", "name": "a"}

_CUSTOM: Manifest = {"spec": {"x": "y", "replicas": 1}, "status": {}}

_SCALED = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "a"}
_ADMISSION_RULE = {"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"]}
_WEBHOOK = {
    "name": "a.example.com", "admissionReviewVersions": ["v1"], "sideEffects": "None",
    "clientConfig": {"service": {"name": "a", "namespace": "default", "path": "/a"}},
    "rules": [_ADMISSION_RULE],
}  # fmt: skip

SEEDS: dict[str, list[Manifest]] = {
    "Binding": [{"target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}}],
    "ConfigMap": [{"data": {"k": "v"}, "binaryData": {"b": "aGVsbG8="}}, {"data": {"k": "v"},
    "immutable": True}],
    "Endpoints": [{"subsets": [{"addresses": [{"ip": "10.0.0.1"}], "ports": [{"port": 80,
    "name": "http"}]}]}],
    "Event": [
        {
            "involvedObject": {"kind": "Pod", "name": "a", "namespace": "default"},
            "reason": "Scheduled", "message": "it is", "type": "Normal", "count": 1,
            "firstTimestamp": "2026-03-01T12:00:00Z", "lastTimestamp": "2026-03-01T12:00:00Z",
            "source": {"component": "scheduler"},
        },
    ],
    "events.k8s.io/Event": [
        {
            "eventTime": "2026-03-01T12:00:00.000000Z", "reportingController": "example.com/x",
            "reportingInstance": "i", "action": "Binding", "reason": "Scheduled", "type": "Normal",
            "regarding": {"kind": "Pod", "name": "a", "namespace": "default"}, "note": "it is",
        },
    ],
    "LimitRange": [
        {"spec": {"limits": [
            {"type": "Container", "default": {"cpu": "1"}, "defaultRequest": {"cpu": "100m"},
            "max": {"cpu": "4"}},
            {"type": "Pod", "max": {"memory": "2Gi"}, "min": {"cpu": "1m"},
            "maxLimitRequestRatio": {"cpu": "20"}},
            {"type": "PersistentVolumeClaim", "max": {"storage": "1Ti"}},
        ]}}
    ],
    "Namespace": [{}],
    "Node": [
        {
            "spec": {"taints": [{"key": "a", "value": "b", "effect": "NoSchedule"}],
            "podCIDR": "10.0.0.0/24"},
            "status": {
                "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True",
                "lastHeartbeatTime": "2026-03-01T12:00:00Z"}],
                "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "x", "architecture": "amd64"},
            },
        },
        {},
    ],
    "PersistentVolume": [
        {"spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "a",
            "local": {"path": "/mnt"}, "nodeAffinity": {"required": _NODE_TERMS},
        }},
        {"spec": {
            "capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteMany"],
            "csi": {"driver": "csi.example.com", "volumeHandle": "v"},
            "claimRef": {"name": "a", "namespace": "default"}, "persistentVolumeReclaimPolicy": "Retain",
        }},
    ],
    "PersistentVolumeClaim": [
        {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        {"spec": {
            "accessModes": ["ReadWriteOncePod"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "a", "volumeName": "a", "selector": _SELECTOR,
            "dataSource": {"kind": "PersistentVolumeClaim", "name": "b"},
        }},
    ],
    "Pod": [
        {"spec": _POD_SPEC},
        {"spec": _POD_SPEC},
        {"spec": _FULL_POD_SPEC},
        {"spec": {**_POD_SPEC, "nodeName": "node-1", "priorityClassName": "system-node-critical"}},
        {"spec": {**_POD_SPEC, "runtimeClassName": "a", "priorityClassName": "a"}},
        {"spec": {**_POD_SPEC, "resources": _RESOURCES}},
    ],
    "PodTemplate": [{"template": _TEMPLATE}],
    "ReplicationController": [{"spec": {"replicas": 1, "selector": _LABELS, "template": _TEMPLATE}}],
    "ResourceQuota": [
        {"spec": {"hard": {"pods": "100", "requests.cpu": "100", "count/configmaps": "100"}}},
        {"spec": {"hard": {"pods": "3"}, "scopes": ["BestEffort"]}},
        {"spec": {"hard": {"cpu": "3"}, "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["a"]}
        ]}}},
    ],
    "Secret": [
        {"stringData": {"k": "v"}, "type": "Opaque"},
        {"data": {".dockerconfigjson": "e30="}, "type": "kubernetes.io/dockerconfigjson"},
        {"data": {"tls.crt": "", "tls.key": ""}, "type": "kubernetes.io/tls"},
    ],
    "ServiceAccount": [{"secrets": [{"name": "a"}], "imagePullSecrets": [{"name": "b"}]}],
    "Service": [
        {"spec": {"selector": _LABELS, "ports": [{"port": 80, "targetPort": "http"}]}},
        {"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080, "protocol": "UDP"}]}},
        {"spec": {"type": "ExternalName", "externalName": "example.com"}},
        {"spec": {"clusterIP": "None", "selector": _LABELS}},
        {"spec": {"type": "LoadBalancer", "ports": [{"port": 443, "name": "s"}, {"port": 80, "name": "h"}],
                  "ipFamilyPolicy": "PreferDualStack"}},
    ],
    "ControllerRevision": [{"data": {"a": 1}, "revision": 1}],
    "DaemonSet": [{"spec": {"selector": _SELECTOR, "template": _TEMPLATE}}],
    "Deployment": [
        {"spec": {"replicas": 2, "selector": _SELECTOR, "template": _TEMPLATE}},
        {"spec": {
            "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
            "template": {"metadata": {"labels": _LABELS}, "spec": _FULL_POD_SPEC},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}},
        }},
    ],
    "ReplicaSet": [{"spec": {"replicas": 2, "selector": _SELECTOR, "template": _TEMPLATE}}],
    "StatefulSet": [
        {"spec": {
            "serviceName": "a", "replicas": 2, "selector": _SELECTOR, "template": _TEMPLATE,
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}],
        }}
    ],
    "CronJob": [{"spec": {"schedule": "*/5 * * * *", "timeZone": "Etc/UTC",
    "jobTemplate": {"spec": _JOB_SPEC}}}],
    "Job": [
        {"spec": _JOB_SPEC},
        {"spec": {
            **_JOB_SPEC, "completionMode": "Indexed", "completions": 3, "parallelism": 2,
            "backoffLimitPerIndex": 1, "maxFailedIndexes": 1,
            "podFailurePolicy": {"rules": [{"action": "Ignore",
            "onPodConditions": [{"type": "DisruptionTarget"}]}]},
            "successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 1}]},
        }},
    ],
    "PodDisruptionBudget": [
        {"spec": {"minAvailable": 1, "selector": _SELECTOR}},
        {"spec": {"maxUnavailable": "50%", "selector": {}}},
    ],
    "HorizontalPodAutoscaler": [
        {"spec": {"maxReplicas": 3, "scaleTargetRef": _SCALED}},
        {"metadata": {"name": "b", "annotations": {
            "autoscaling.alpha.kubernetes.io/metrics":
                '[{"type":"Pods","pods":{"metricName":"a","targetAverageValue":"5"}}]',
            "autoscaling.alpha.kubernetes.io/behavior": '{"ScaleUp":{"SelectPolicy":"Max"}}'}},
         "spec": {"maxReplicas": 3, "scaleTargetRef": _SCALED, "behavior": {"scaleUp": {}},
                  "metrics": [{"type": "Resource", "resource": {
                      "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}]}},
    ],
    "NetworkPolicy": [
        {"spec": {"podSelector": _SELECTOR, "egress": [{}], "ingress": [{
            "from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}, {"podSelector": {}}],
            "ports": [{"port": 80, "endPort": 90}, {"port": "http"}]}]}}
    ],
    "Ingress": [
        {"spec": {"ingressClassName": "a", "tls": [{"hosts": ["a.b"]}], "rules": [{"host": "*.a.b", "http": {
            "paths": [{"path": "/", "pathType": "Prefix", "backend": {
                "service": {"name": "a", "port": {"number": 80}}}}]}}]}}
    ],
    "IngressClass": [
        {"spec": {"controller": "example.com/a", "parameters": {"kind": "A", "name": "a"}}}
    ],
    "EndpointSlice": [
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [
            {"addresses": ["10.0.0.1"], "hints": {"forZones": [{"name": "a"}]}}]},
        {"addressType": "FQDN", "endpoints": [{"addresses": ["a.b"]}]},
    ],
    "CertificateSigningRequest": [
        {"spec": a_request(expirationSeconds=600)["spec"],
         "status": {"conditions": [{"type": "Failed", "status": "True"}]}}
    ],
    "MutatingWebhookConfiguration": [{"webhooks": [_WEBHOOK]}],
    "ValidatingWebhookConfiguration": [{"webhooks": [_WEBHOOK]}],
    "ValidatingAdmissionPolicy": [
        {"spec": {"matchConstraints": {"resourceRules": [_ADMISSION_RULE]},
                  "validations": [{"expression": "true"}], "variables": [{"name": "a", "expression": "1"}]}}
    ],
    "ValidatingAdmissionPolicyBinding": [
        {"spec": {"policyName": "a", "validationActions": ["Deny"],
                  "paramRef": {"name": "a", "parameterNotFoundAction": "Deny"}}}
    ],
    "MutatingAdmissionPolicy": [
        {"spec": {"matchConstraints": {"resourceRules": [_ADMISSION_RULE]}, "reinvocationPolicy": "Never",
                  "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": "[]"}}]}}
    ],
    "MutatingAdmissionPolicyBinding": [{"spec": {"policyName": "a", "matchResources": {}}}],
    "APIService": [
        {"metadata": {"name": "v1.example.com"}, "spec": {
            "group": "example.com", "version": "v1", "groupPriorityMinimum": 1, "versionPriority": 1,
            "service": {"name": "a", "namespace": "default"}}}
    ],
    "PriorityClass": [{"value": 1000, "globalDefault": False}, {"value": 5, "globalDefault": True}],
    "PodGroup": [{"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}],
    "CompositePodGroup": [
        {
            "spec": {
                "schedulingPolicy": {"gang": {"minGroupCount": 2}},
                "workloadRef": {"workloadName": "w", "templateName": "t"},
            }
        }
    ],
    "DeviceTaintRule": [
        {
            "spec": {
                "deviceSelector": {"driver": "gpu.example.com"},
                "taint": {"key": "example.com/broken", "effect": "NoSchedule"},
            }
        }
    ],
    "Workload": [
        {"spec": {"podGroupTemplates": [{"name": "workers", "schedulingPolicy": {"gang": {"minCount": 2}}}]}}
    ],
    "RuntimeClass": [
        {"handler": "runc", "overhead": {"podFixed": {"cpu": "10m"}},
        "scheduling": {"nodeSelector": {"a": "b"}}}
    ],
    "CSIDriver": [{"spec": {"attachRequired": True, "podInfoOnMount": False, "storageCapacity": True}}],
    "CSINode": [
        {"spec": {"drivers": [{"name": "csi.example.com", "nodeID": "n", "topologyKeys": ["zone"],
                               "allocatable": {"count": 5}}]}}
    ],
    "CSIStorageCapacity": [{"storageClassName": "a", "capacity": "1Gi", "nodeTopology": _SELECTOR}],
    "StorageClass": [
        {"provisioner": "csi.example.com", "volumeBindingMode": "WaitForFirstConsumer"},
        {"provisioner": "x", "allowVolumeExpansion": True, "parameters": {"a": "b"}},
    ],
    "VolumeAttachment": [
        {"spec": {"attacher": "csi.example.com", "nodeName": "node-1",
        "source": {"persistentVolumeName": "a"}}}
    ],
    "VolumeAttributesClass": [{"driverName": "csi.example.com", "parameters": {"iops": "5"}}],
    "Lease": [{"spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 1,
                        "renewTime": "2026-03-01T12:00:00.000000Z"}}],
    "DeviceClass": [{"spec": {"selectors": [{"cel": {"expression": "device.driver == 'gpu.example.com'"}}]}}],
    "ResourceClaim": [{"spec": _CLAIM_SPEC}],
    "ResourceClaimTemplate": [{"spec": {"spec": _CLAIM_SPEC}}],
    "ResourceSlice": [
        {"spec": {
            "driver": "gpu.example.com", "nodeName": "node-1",
            "pool": {"name": "node-1", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "gpu-0", "attributes": {"model": {"string": "x"}},
                         "capacity": {"memory": {"value": "16Gi"}}}],
        }}
    ],
    "ClusterRoleBinding": [
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
         "subjects": _SUBJECTS}
    ],
    "ClusterRole": [{"rules": [*_RULES, {"nonResourceURLs": ["/healthz*"], "verbs": ["get"]}]},
                    {"aggregationRule": {"clusterRoleSelectors": [_SELECTOR]}}],
    "RoleBinding": [
        {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "a"},
        "subjects": _SUBJECTS}
    ],
    "Role": [{"rules": _RULES}],
    "SelfSubjectReview": [{}],
    "TokenReview": [{"spec": {"token": "x.y.z", "audiences": ["a"]}}],
    "LocalSubjectAccessReview": [{"spec": {"resourceAttributes": _ACCESS, "user": "jane"}}],
    "SelfSubjectAccessReview": [{"spec": {"resourceAttributes": _ACCESS}},
                                {"spec": {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}}],
    "SelfSubjectRulesReview": [{"spec": {"namespace": "default"}}],
    "SubjectAccessReview": [{"spec": {"resourceAttributes": _ACCESS, "user": "jane", "groups": ["g"]}}],
}  # fmt: skip
"""By kind, or group and kind: what an object has beside apiVersion, kind and metadata."""

SUBRESOURCE_SEEDS: dict[str, list[Manifest]] = {
    "binding": [
        {"apiVersion": "v1", "kind": "Binding", "target": {"kind": "Node", "name": name}, "metadata": {}}
        for name in ("node-1", "node-2", "")
    ],
    "eviction": [
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {}},
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {},
         "deleteOptions": {"gracePeriodSeconds": 0, "dryRun": ["All"], "preconditions": {"uid": "x"}}},
    ],
    "scale": [
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {"replicas": 3}},
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {}},
        {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {}, "spec": {"replicas": -3}},
    ],
    "token": [
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
         "spec": {"audiences": ["api"], "expirationSeconds": 3600}},
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {
            "boundObjectRef": {"kind": "Pod", "apiVersion": "v1", "name": "a"}}},
    ],
}  # fmt: skip
"""What subresources are sent that are not the object itself."""

DELETE_OPTIONS: list[Manifest] = [
    {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
    for policy in ("Foreground", "Background", "Orphan")
] + [
    {"gracePeriodSeconds": 0},
    {"gracePeriodSeconds": 30, "dryRun": ["All"]},
    {"preconditions": {"uid": "x", "resourceVersion": "1"}},
    {"orphanDependents": True},
]


def seeds_of(group: str, kind: str) -> list[Manifest]:
    """The manifests of a kind, not to be changed; custom kinds have one that fits many schemas."""
    return SEEDS.get(f"{group}/{kind}") or SEEDS.get(kind) or [_CUSTOM]
