"""The manifests of an application, with the kubectl that users know."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.apiserver.running import Kubectl
from tests.controllers.workloads.live import LiveCluster

MANIFESTS = """
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: main, image: "web:1", ports: [{name: http, containerPort: 8080}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: shop}
spec:
  minReplicas: 2
  maxReplicas: 5
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  metrics:
  - type: Resource
    resource: {name: cpu, target: {type: Utilization, averageUtilization: 60}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web, namespace: shop}
spec: {minAvailable: 1, selector: {matchLabels: {app: web}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: web, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  policyTypes: [Ingress]
  ingress: [{from: [{namespaceSelector: {}}], ports: [{port: http}]}]
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: outside}
spec: {controller: example.com/ingress}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: outside
  tls: [{hosts: [shop.example.com], secretName: web-tls}]
  rules:
  - host: shop.example.com
    http:
      paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {name: http}}}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report, namespace: shop}
spec:
  schedule: "@monthly"
  jobTemplate:
    spec:
      template:
        spec: {restartPolicy: Never, containers: [{name: main, image: "report:1"}]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: shop}
webhooks:
- name: check.shop.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {name: web, namespace: shop, path: /check}}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [pods]}]
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.shop.example.com}
spec:
  group: shop.example.com
  version: v1
  groupPriorityMinimum: 100
  versionPriority: 100
  service: {name: web, namespace: shop}
"""
ROWS = {
    "ingress": ["NAME CLASS HOSTS ADDRESS PORTS", "web outside shop.example.com 80, 443"],
    "networkpolicy": ["NAME POD-SELECTOR", "web app=web"],
    "hpa": [
        "NAME REFERENCE TARGETS MINPODS MAXPODS REPLICAS",
        "web Deployment/web cpu: <unknown>/60% 2 5 0",
    ],
    "cronjob": [
        "NAME SCHEDULE TIMEZONE SUSPEND ACTIVE LAST SCHEDULE",
        "report @monthly <none> False 0 <none>",
    ],
    "ingressclass": ["NAME CONTROLLER PARAMETERS", "outside example.com/ingress <none>"],
    "validatingwebhookconfiguration": ["NAME WEBHOOKS", "shop 1"],
    "apiservice": ["NAME SERVICE AVAILABLE", "v1.shop.example.com shop/web Unknown"],
}


@pytest.fixture(scope="module")
def kubectl(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubectl]:
    folder: Path = tmp_path_factory.mktemp("application")
    with LiveCluster(folder) as live:
        yield Kubectl(live, folder)  # type: ignore[arg-type]  # only its kubeconfig is asked for


def shown(kubectl: Kubectl, resource: str) -> list[str]:
    """A table without the age of its objects."""
    lines = kubectl("get", resource, "-n", "shop").splitlines()
    return [" ".join(line.split()[:-1]) for line in lines]


def versions(kubectl: Kubectl) -> str:
    path = "jsonpath={.items[*].metadata.resourceVersion}"
    return kubectl("get", ",".join(ROWS), "-n", "shop", "-o", path)


@pytest.mark.parametrize("options", [(), ("--server-side",)], ids=["client side", "server side"])
def test_all_of_it_applies_shows_and_goes(kubectl: Kubectl, options: tuple[str, ...]) -> None:
    applied = "serverside-applied" if options else "created"
    output = [
        line for line in kubectl("apply", *options, "-f", "-", input=MANIFESTS).splitlines() if "/" in line
    ]
    assert len(output) == MANIFESTS.count("---") + 1
    assert [line for line in output if not line.endswith(applied)] == []
    assert "successfully rolled out" in kubectl(
        "rollout", "status", "deployment/web", "-n", "shop", "--timeout=100s"
    )
    assert {resource: shown(kubectl, resource) for resource in ROWS} == ROWS
    before = versions(kubectl)
    kubectl("apply", *options, "-f", "-", input=MANIFESTS)
    assert versions(kubectl) == before
    kubectl("create", "job", "now", "--from=cronjob/report", "-n", "shop")
    kubectl("wait", "--for=condition=Complete", "job/now", "-n", "shop", "--timeout=100s")
    kubectl("delete", "-f", "-", "--ignore-not-found", input=MANIFESTS)
    left = "ingresses,networkpolicies,hpa,endpointslices,cronjobs,jobs,pods"
    assert kubectl("get", left, "-n", "shop", "--ignore-not-found") == ""
    assert kubectl("get", "apiservices,ingressclasses", "--ignore-not-found") == ""


def test_kinds_are_explained(kubectl: Kubectl) -> None:
    explained = kubectl("explain", "hpa.spec.metrics.resource.target", "--recursive")
    assert "VERSION:    v2" in explained
    assert "averageUtilization\t<integer>" in explained
    assert "targetCPUUtilizationPercentage" in kubectl("explain", "hpa.spec", "--api-version=autoscaling/v1")
    assert "which traffic pods accept" in kubectl("explain", "netpol")
