from __future__ import annotations

from typing import Any

import pytest

from moorage.admission.pods.defaults import default_pod_template
from moorage.admission.pods.validation import validate_template
from moorage.api.manifests import Manifest
from tests.apiserver.pods.pod_builders import a_container, a_pod, complaints

_LABEL = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start "
    "and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def with_container(**fields: Any) -> Manifest:
    return a_pod(a_container(**fields))


def with_mount(**mount: Any) -> Manifest:
    container = a_container(volumeMounts=[{"name": "data", "mountPath": "/data", **mount}])
    return a_pod(container, volumes=[{"name": "data", "emptyDir": {}}])


def with_volume(**source: Any) -> Manifest:
    return a_pod(volumes=[{"name": "data", **source}])


def with_env(**variable: Any) -> Manifest:
    return with_container(env=[{"name": "A", **variable}])


def with_resources(limits: dict[str, str] | None = None, requests: dict[str, str] | None = None) -> Manifest:
    given = {"limits": limits, "requests": requests}
    return with_container(resources={key: value for key, value in given.items() if value is not None})


def with_toleration(**toleration: Any) -> Manifest:
    return a_pod(tolerations=[toleration])


def with_node_term(term: Manifest) -> Manifest:
    required = {"nodeSelectorTerms": [term]}
    return a_pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def with_pod_term(**term: Any) -> Manifest:
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}, **term}
    return a_pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})


def with_spread(**constraint: Any) -> Manifest:
    whole = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **constraint}
    return a_pod(topologySpreadConstraints=[whole])


C0 = "spec.containers[0]"
NODES = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
PODS = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]"
SPREAD = "spec.topologySpreadConstraints[0]"

REFUSED: dict[str, tuple[Manifest, list[str]]] = {
    "no containers": (
        {"metadata": {"name": "web"}, "spec": {}},
        ["spec.containers: Required value"],
    ),
    "container without a name": (with_container(name=""), [f"{C0}.name: Required value"]),
    "container's name": (with_container(name="Main"), [f'{C0}.name: Invalid value: "Main": {_LABEL}']),
    "container's name with dots": (
        with_container(name="a.b"),
        [f'{C0}.name: Invalid value: "a.b": must not contain dots'],
    ),
    "same name twice": (
        a_pod(a_container(), a_container()),
        ['spec.containers[1].name: Duplicate value: "main"'],
    ),
    "init container with the name of another": (
        a_pod(initContainers=[a_container()]),
        ['spec.initContainers[0].name: Duplicate value: "main"'],
    ),
    "no image": (with_container(image=""), [f"{C0}.image: Required value"]),
    "image with a space": (
        with_container(image=" nginx"),
        [f'{C0}.image: Invalid value: " nginx": must not have leading or trailing whitespace'],
    ),
    "pull policy": (
        with_container(imagePullPolicy="Sometimes"),
        [
            f'{C0}.imagePullPolicy: Unsupported value: "Sometimes": supported values: "Always", '
            '"IfNotPresent", "Never"'
        ],
    ),
    "termination message policy": (
        with_container(terminationMessagePolicy="Book"),
        [
            f'{C0}.terminationMessagePolicy: Unsupported value: "Book": supported values: "File", '
            '"FallbackToLogsOnError"'
        ],
    ),
    "port out of range": (
        with_container(ports=[{"containerPort": 70000}]),
        [f"{C0}.ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive"],
    ),
    "port without a number": (
        with_container(ports=[{"name": "web"}]),
        [f"{C0}.ports[0].containerPort: Required value"],
    ),
    "port's name": (
        with_container(ports=[{"containerPort": 1, "name": "far-too-long-a-name"}]),
        [f'{C0}.ports[0].name: Invalid value: "far-too-long-a-name": must be no more than 15 characters'],
    ),
    "two ports of one name": (
        with_container(ports=[{"containerPort": 1, "name": "web"}, {"containerPort": 2, "name": "web"}]),
        [f'{C0}.ports[1].name: Duplicate value: "web"'],
    ),
    "protocol": (
        with_container(ports=[{"containerPort": 1, "protocol": "ICMP"}]),
        [f'{C0}.ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"'],
    ),
    "host port taken by another container": (
        a_pod(
            a_container(ports=[{"containerPort": 1, "hostPort": 80}]),
            a_container(name="other", ports=[{"containerPort": 2, "hostPort": 80}]),
        ),
        ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"'],
    ),
    "host network with another host port": (
        a_pod(a_container(ports=[{"containerPort": 1, "hostPort": 2}]), hostNetwork=True),
        [f"{C0}.ports[0].hostPort: Invalid value: 2: must match `containerPort` when `hostNetwork` is true"],
    ),
    "variable without a name": (with_env(name=""), [f"{C0}.env[0].name: Required value"]),
    "variable's name": (
        with_env(name="A=B"),
        [
            f'{C0}.env[0].name: Invalid value: "A=B": a valid environment variable name must consist only of '
            "printable ASCII characters other than '='"
        ],
    ),
    "variable with value and source": (
        with_env(value="x", valueFrom={"secretKeyRef": {"name": "s", "key": "k"}}),
        [f'{C0}.env[0].valueFrom: Invalid value: "": may not be specified when `value` is not empty'],
    ),
    "variable without source": (
        with_env(valueFrom={}),
        [
            f'{C0}.env[0].valueFrom: Invalid value: "": must specify one of: `fieldRef`, `resourceFieldRef`, '
            "`configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        ],
    ),
    "variable from an unknown field": (
        with_env(valueFrom={"fieldRef": {"fieldPath": "spec.x"}}),
        [
            f'{C0}.env[0].valueFrom.fieldRef.fieldPath: Invalid value: "spec.x": error converting fieldPath: '
            "field label not supported: spec.x"
        ],
    ),
    "mount of an unknown volume": (
        with_mount(name="other"),
        [f'{C0}.volumeMounts[0].name: Not found: "other"'],
    ),
    "mount without a path": (with_mount(mountPath=""), [f"{C0}.volumeMounts[0].mountPath: Required value"]),
    "mount path twice": (
        a_pod(
            a_container(volumeMounts=[{"name": "data", "mountPath": "/data"}] * 2),
            volumes=[{"name": "data", "emptyDir": {}}],
        ),
        [f'{C0}.volumeMounts[1].mountPath: Invalid value: "/data": must be unique'],
    ),
    "mount that goes up": (
        with_mount(subPath="a/../b"),
        [f"{C0}.volumeMounts.subPath: Invalid value: \"a/../b\": must not contain '..'"],
    ),
    "volume's name": (
        a_pod(volumes=[{"name": "Data", "emptyDir": {}}]),
        [f'spec.volumes[0].name: Invalid value: "Data": {_LABEL}'],
    ),
    "volume twice": (
        a_pod(volumes=[{"name": "a", "emptyDir": {}}, {"name": "a", "emptyDir": {}}]),
        ['spec.volumes[1].name: Duplicate value: "a"'],
    ),
    "volume of two kinds": (
        with_volume(emptyDir={}, hostPath={"path": "/x"}),
        ["spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type"],
    ),
    "secret without a name": (with_volume(secret={}), ["spec.volumes[0].secret.secretName: Required value"]),
    "claim without a name": (
        with_volume(persistentVolumeClaim={}),
        ["spec.volumes[0].persistentVolumeClaim.claimName: Required value"],
    ),
    "host path's type": (
        with_volume(hostPath={"path": "/x", "type": "Tape"}),
        [
            'spec.volumes[0].hostPath.type: Unsupported value: "Tape": supported values: "", "BlockDevice", '
            '"CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"'
        ],
    ),
    "token without an account": (
        with_volume(projected={"sources": [{"serviceAccountToken": {"path": "t"}}]}),
        [
            "spec.volumes[0].projected.sources[0].serviceAccountToken: Forbidden: must not be specified when "
            "serviceAccountName is not set"
        ],
    ),
    "claim template without size": (
        with_volume(ephemeral={"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}),
        ["spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]: Required value"],
    ),
    "negative request": (
        with_resources(requests={"cpu": "-1"}),
        [f'{C0}.resources.requests[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    "request above limit": (
        with_resources({"cpu": "1"}, {"cpu": "2"}),
        [f'{C0}.resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ),
    "unknown resource": (
        with_resources(requests={"gpu": "1"}),
        [
            f'{C0}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource type or fully '
            "qualified",
            f'{C0}.resources.requests[gpu]: Invalid value: "gpu": must be a standard resource for containers',
        ],
    ),
    "extended resource without limit": (
        with_resources(requests={"example.com/gpu": "1"}),
        [f"{C0}.resources.limits: Required value: Limit must be set for non overcommitable resources"],
    ),
    "extended resource with another limit": (
        with_resources({"example.com/gpu": "2"}, {"example.com/gpu": "1"}),
        [f'{C0}.resources.requests: Invalid value: "1": must be equal to example.com/gpu limit of 2'],
    ),
    "half an extended resource": (
        with_resources({"example.com/gpu": "500m"}),
        [
            f'{C0}.resources.limits[example.com/gpu]: Invalid value: "500m": must be an integer',
            f'{C0}.resources.requests[example.com/gpu]: Invalid value: "500m": must be an integer',
        ],
    ),
    "huge pages alone": (
        with_resources({"hugepages-2Mi": "4Mi"}),
        [f"{C0}.resources: Forbidden: HugePages require cpu or memory"],
    ),
    "part of a huge page": (
        with_resources({"hugepages-2Mi": "3Mi", "cpu": "1"}, {"hugepages-2Mi": "3Mi"}),
        [
            f'{C0}.resources.limits[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer '
            "multiple of hugepages-2Mi",
            f'{C0}.resources.requests[hugepages-2Mi]: Invalid value: "3Mi": 3Mi is not positive integer '
            "multiple of hugepages-2Mi",
        ],
    ),
    "claim that the pod does not have": (
        with_container(resources={"claims": [{"name": "gpu"}]}),
        [
            f'{C0}.resources.claims[0]: Not found: "gpu": must be one of the names in '
            "pod.spec.resourceClaims "
            "which is empty"
        ],
    ),
    "pod's request below its containers'": (
        a_pod(a_container(resources={"requests": {"cpu": "2"}}), resources={"requests": {"cpu": "1"}}),
        [
            'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate '
            "container requests of 2"
        ],
    ),
    "probe without a handler": (
        with_container(livenessProbe={}),
        [f"{C0}.livenessProbe: Required value: must specify a handler type"],
    ),
    "probe with two handlers": (
        with_container(readinessProbe={"exec": {"command": ["a"]}, "tcpSocket": {"port": 1}}),
        [f"{C0}.readinessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"],
    ),
    "liveness needs one success": (
        with_container(livenessProbe={"tcpSocket": {"port": 1}, "successThreshold": 2}),
        [f"{C0}.livenessProbe.successThreshold: Invalid value: 2: must be 1"],
    ),
    "hook that runs nothing": (
        with_container(lifecycle={"preStop": {"exec": {}}}),
        [f"{C0}.lifecycle.preStop.exec.command: Required value"],
    ),
    "hook that sleeps too long": (
        with_container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
        [
            f"{C0}.lifecycle.preStop.sleep: Invalid value: 31: must be non-negative and less than "
            "terminationGracePeriodSeconds (30)"
        ],
    ),
    "probe of an init container": (
        a_pod(initContainers=[a_container(name="i", livenessProbe={"tcpSocket": {"port": 1}})]),
        [
            "spec.initContainers[0].livenessProbe: Forbidden: may not be set for init containers without "
            "restartPolicy=Always"
        ],
    ),
    "ephemeral container on create": (
        a_pod(ephemeralContainers=[a_container(name="debug")]),
        ["spec.ephemeralContainers: Forbidden: cannot be set on create"],
    ),
    "restart policy": (
        a_pod(restartPolicy="Often"),
        ['spec.restartPolicy: Unsupported value: "Often": supported values: "Always", "OnFailure", "Never"'],
    ),
    "DNS policy": (
        a_pod(dnsPolicy="Mine"),
        [
            'spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", '
            '"ClusterFirst", "Default", "None"'
        ],
    ),
    "DNS policy without servers": (
        a_pod(dnsPolicy="None"),
        ["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
    ),
    "toleration of every key": (
        with_toleration(operator="Equal"),
        [
            'spec.tolerations[0].operator: Invalid value: "Equal": operator must be Exists when `key` is '
            'empty, which means "match all values and all keys"'
        ],
    ),
    "toleration's operator": (
        with_toleration(key="a", operator="Near"),
        ['spec.tolerations[0].operator: Unsupported value: "Near": supported values: "Equal", "Exists"'],
    ),
    "toleration that compares": (
        with_toleration(key="a", operator="Gt", value="1"),
        [
            'spec.tolerations[0].operator: Unsupported value: "Gt": supported values: "Equal", "Exists", '
            '"Lt", "Gt"'
        ],
    ),
    "toleration's value": (
        with_toleration(key="a", operator="Exists", value="b"),
        [
            'spec.tolerations[0].operator: Invalid value: "b": value must be empty when `operator` '
            "is 'Exists'"
        ],
    ),
    "toleration's seconds": (
        with_toleration(key="a", operator="Exists", effect="NoSchedule", tolerationSeconds=3),
        [
            "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when "
            "`tolerationSeconds` is set"
        ],
    ),
    "toleration's effect": (
        with_toleration(key="a", operator="Exists", effect="Never"),
        [
            'spec.tolerations[0].effect: Unsupported value: "Never": supported values: "NoSchedule", '
            '"PreferNoSchedule", "NoExecute"'
        ],
    ),
    "node selector": (
        a_pod(nodeSelector={"-a": "b"}),
        [f'spec.nodeSelector: Invalid value: "-a": name part {_NAME}'],
    ),
    "node affinity without terms": (
        a_pod(
            affinity={
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}
            }
        ),
        [f"{NODES}: Required value: must have at least one node selector term"],
    ),
    "node term's operator": (
        with_node_term({"matchExpressions": [{"key": "a", "operator": "Near"}]}),
        [f'{NODES}[0].matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator'],
    ),
    "node term without values": (
        with_node_term({"matchExpressions": [{"key": "a", "operator": "In"}]}),
        [
            f"{NODES}[0].matchExpressions[0].values: Required value: must be specified when `operator` is "
            "'In' or 'NotIn'"
        ],
    ),
    "node term with values too many": (
        with_node_term({"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}),
        [
            f"{NODES}[0].matchExpressions[0].values: Required value: must be specified single value when "
            "`operator` is 'Lt' or 'Gt'"
        ],
    ),
    "node field": (
        with_node_term({"matchFields": [{"key": "spec.x", "operator": "In", "values": ["a"]}]}),
        [f'{NODES}[0].matchFields[0].key: Invalid value: "spec.x": not a valid field selector key'],
    ),
    "weight": (
        a_pod(
            affinity={
                "nodeAffinity": {
                    "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 101, "preference": {}}]
                }
            }
        ),
        [
            "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid "
            "value: 101: must be in the range 1-100"
        ],
    ),
    "pod term without topology": (
        with_pod_term(topologyKey=""),
        [
            f"{PODS}.topologyKey: Required value: can not be empty",
            f'{PODS}.topologyKey: Invalid value: "": name part must be non-empty',
            f'{PODS}.topologyKey: Invalid value: "": name part {_NAME}',
        ],
    ),
    "pod term's selector": (
        with_pod_term(
            labelSelector={"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}
        ),
        [
            f"{PODS}.labelSelector.matchExpressions[0].values: Forbidden: may not be specified when "
            "`operator` "
            "is 'Exists' or 'DoesNotExist'"
        ],
    ),
    "pod term's label key in the selector too": (
        {
            **with_pod_term(matchLabelKeys=["app"]),
            "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        },
        [f'{PODS}[0]: Invalid value: "app": exists in both matchLabelKeys and labelSelector'],
    ),
    "pod term that matches and mismatches": (
        with_pod_term(matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
        [
            f'{PODS}.matchLabelKeys[0]: Invalid value: "a": exists in both matchLabelKeys and '
            "mismatchLabelKeys"
        ],
    ),
    "skew": (with_spread(maxSkew=0), [f"{SPREAD}.maxSkew: Invalid value: 0: must be greater than zero"]),
    "spread over nothing": (
        with_spread(topologyKey=""),
        [f"{SPREAD}.topologyKey: Required value: can not be empty"],
    ),
    "spread's action": (
        with_spread(whenUnsatisfiable="Wait"),
        [
            f'{SPREAD}.whenUnsatisfiable: Unsupported value: "Wait": supported values: "DoNotSchedule", '
            '"ScheduleAnyway"'
        ],
    ),
    "spread twice": (
        a_pod(
            topologySpreadConstraints=[
                {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
                for skew in (1, 2)
            ]
        ),
        [f'{SPREAD}.{{topologyKey, whenUnsatisfiable}}: Duplicate value: "{{zone, DoNotSchedule}}"'],
    ),
    "domains of a wish": (
        with_spread(whenUnsatisfiable="ScheduleAnyway", minDomains=2),
        [
            f"{SPREAD}.minDomains: Invalid value: 2: can only use minDomains if "
            "whenUnsatisfiable=DoNotSchedule, not ScheduleAnyway"
        ],
    ),
    "spread's policy": (
        with_spread(nodeTaintsPolicy="Ask"),
        [f'{SPREAD}.nodeTaintsPolicy: Unsupported value: "Ask": supported values: "Honor", "Ignore"'],
    ),
    "label keys without a selector": (
        with_spread(matchLabelKeys=["a"]),
        [f"{SPREAD}.matchLabelKeys: Forbidden: must not be specified when labelSelector is not set"],
    ),
    "priority class": (
        a_pod(priorityClassName="High"),
        [f'spec.priorityClassName: Invalid value: "High": {_SUBDOMAIN}'],
    ),
    "gate": (
        a_pod(schedulingGates=[{"name": "a"}, {"name": "a"}]),
        ['spec.schedulingGates[1]: Duplicate value: "a"'],
    ),
    "group without a name": (
        a_pod(schedulingGroup={}),
        [
            "spec.schedulingGroup.podGroupName: Invalid value: null: must specify one of: `podGroupName`",
        ],
    ),
    "group": (
        a_pod(schedulingGroup={"podGroupName": "Crew"}),
        [f'spec.schedulingGroup.podGroupName: Invalid value: "Crew": {_SUBDOMAIN}'],
    ),
    "node of a gated pod": (
        a_pod(schedulingGates=[{"name": "a"}], nodeName="n1"),
        ["spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"],
    ),
    "overhead": (
        a_pod(overhead={"cpu": "-1"}),
        ['spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    ),
    "hostname": (a_pod(hostname="A"), [f'spec.hostname: Invalid value: "A": {_LABEL}']),
    "deadline": (
        a_pod(activeDeadlineSeconds=0),
        ["spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive"],
    ),
    "alias": (
        a_pod(hostAliases=[{"ip": "1.2.3", "hostnames": ["a"]}]),
        [
            'spec.hostAliases[0].ip: Invalid value: "1.2.3": must be a valid IP address, (e.g. 10.9.8.7 or '
            "2001:db8::ffff)"
        ],
    ),
    "alias with zeros": (
        a_pod(hostAliases=[{"ip": "010.0.0.1"}]),
        ['spec.hostAliases[0].ip: Invalid value: "010.0.0.1": must not have leading 0s'],
    ),
    "user": (
        a_pod(securityContext={"runAsUser": -1}),
        ["spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"],
    ),
    "seccomp": (
        a_pod(securityContext={"seccompProfile": {"type": "Localhost"}}),
        [
            "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp "
            "type is Localhost"
        ],
    ),
    "privilege": (
        with_container(securityContext={"privileged": True, "allowPrivilegeEscalation": False}),
        [
            f'{C0}.securityContext: Invalid value: {{"privileged":true,"allowPrivilegeEscalation":false}}: '
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        ],
    ),
    "resource claim": (
        a_pod(resourceClaims=[{"name": "gpu"}]),
        [
            'spec.resourceClaims[0]: Invalid value: {"name":"gpu"}: must specify one of: '
            "`resourceClaimName`, "
            "`resourceClaimTemplateName`"
        ],
    ),
    "readiness gate": (
        a_pod(readinessGates=[{"conditionType": "a b"}]),
        [f'spec.readinessGates[0].conditionType: Invalid value: "a b": name part {_NAME}'],
    ),
    "preemption policy": (
        a_pod(preemptionPolicy="Always"),
        [
            'spec.preemptionPolicy: Unsupported value: "Always": supported values: "PreemptLowerPriority", '
            '"Never"'
        ],
    ),
    "deletion cost": (
        a_pod(meta={"annotations": {"controller.kubernetes.io/pod-deletion-cost": "+1"}}),
        [
            'metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "+1": must be '
            "a 32bit integer"
        ],
    ),
    "mirror pod without a node": (
        a_pod(meta={"annotations": {"kubernetes.io/config.mirror": "x"}}),
        [
            'metadata.annotations[kubernetes.io/config.mirror]: Invalid value: "x": must set '
            "spec.nodeName if "
            "mirror pod annotation is set"
        ],
    ),
    "host's processes in a user namespace": (
        a_pod(hostUsers=False, hostPID=True),
        ["spec.HostPID: Forbidden: when `hostUsers` is false"],
    ),
    "operating system": (
        a_pod(os={"name": "plan9"}),
        ['spec.os: Unsupported value: "plan9": supported values: "linux", "windows"'],
    ),
    "Linux settings on Windows": (
        a_pod(os={"name": "windows"}, securityContext={"runAsUser": 1}),
        ["spec.securityContext.runAsUser: Forbidden: cannot be set for a windows pod"],
    ),
    "sysctl": (
        a_pod(securityContext={"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}, hostNetwork=True),
        [
            'spec.securityContext.sysctls[0].name: Invalid value: "net.core.somaxconn": may not be specified '
            "when 'hostNetwork' is true"
        ],
    ),
    "restart rules without policy": (
        with_container(
            restartPolicyRules=[{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]
        ),
        [f"{C0}.restartPolicy: Required value: must specify restartPolicy when restart rules are used"],
    ),
    "resize policy": (
        with_container(resizePolicy=[{"resourceName": "disk", "restartPolicy": "NotRequired"}]),
        [f'{C0}.resizePolicy: Unsupported value: "disk": supported values: "cpu", "memory"'],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_the_message(name: str) -> None:
    pod, expected = REFUSED[name]
    assert complaints(pod) == expected


ACCEPTED: dict[str, Manifest] = {
    "minimal": a_pod(),
    "everything about where": a_pod(
        nodeSelector={"disk": "ssd"},
        tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b", "effect": "NoExecute"}],
        schedulingGates=[{"name": "example.com/wait"}],
        priorityClassName="system-node-critical",
        preemptionPolicy="Never",
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "minDomains": 2,
                "topologyKey": "zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
                "matchLabelKeys": ["pod-template-hash"],
            }
        ],
        meta={"labels": {"app": "web", "pod-template-hash": "abc"}},
    ),
    "sidecar with probe": a_pod(
        initContainers=[
            a_container(name="side", restartPolicy="Always", readinessProbe={"tcpSocket": {"port": "web"}})
        ]
    ),
    "volumes that are used": a_pod(
        a_container(
            volumeMounts=[{"name": "a", "mountPath": "/a"}, {"name": "a", "mountPath": "/b", "subPath": "c"}],
            volumeDevices=[{"name": "b", "devicePath": "/dev/b"}],
            env=[
                {"name": "weird name!", "value": ""},
                {"name": "L", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
                {"name": "R", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}},
            ],
            envFrom=[{"prefix": "X_", "configMapRef": {"name": "c"}}],
        ),
        volumes=[{"name": "a"}, {"name": "b", "persistentVolumeClaim": {"claimName": "c"}}],
    ),
    "extended and huge": with_resources(
        {"example.com/gpu": "2", "hugepages-2Mi": "4Mi", "memory": "1Gi", "ephemeral-storage": "1Gi"}
    ),
    "claims": a_pod(
        a_container(resources={"claims": [{"name": "gpu", "request": "one"}]}),
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}],
    ),
    "own servers": a_pod(
        dnsPolicy="None", dnsConfig={"nameservers": ["1.1.1.1", "::1"], "searches": [".", "_a.b."]}
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted(name: str) -> None:
    assert complaints(ACCEPTED[name]) == []


def test_templates_say_where() -> None:
    template: Manifest = {
        "metadata": {"labels": {"a": "b c"}},
        "spec": {"containers": [a_container(image="")], "ephemeralContainers": [a_container(name="e")]},
    }
    default_pod_template(template)
    said = [str(error).partition(":")[0] for error in validate_template(template, "spec.template")]
    assert said == [
        "spec.template.labels",
        "spec.template.spec.containers[0].image",
        "spec.template.spec.ephemeralContainers",
    ]


def test_templates_need_no_host_port_under_host_network() -> None:
    template: Manifest = {
        "spec": {"containers": [a_container(ports=[{"containerPort": 80}])], "hostNetwork": True}
    }
    default_pod_template(template)
    assert validate_template(template, "spec.template") == []
