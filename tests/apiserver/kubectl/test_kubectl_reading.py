from __future__ import annotations

import json

import yaml

from tests.apiserver.kubectl.objects import claim, configmap, event, node, pod
from tests.apiserver.running import Kubectl


def table(output: str) -> list[list[str]]:
    """The cells of a table's lines."""
    return [line.split() for line in output.splitlines()]


def names(output: str) -> list[str]:
    """The first cells of a table without headers."""
    return [line.split()[0] for line in output.splitlines()]


def test_get_a_pod(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl.create(pod("web")) == "pod/web created\n"
    header, row = table(kubectl("get", "pods"))
    assert header == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert row[:4] == ["web", "0/1", "Pending", "0"]
    wide = kubectl("get", "pod", "web", "-o", "wide", "--show-labels").splitlines()
    assert wide[0].endswith("AGE   IP       NODE     NOMINATED NODE   READINESS GATES   LABELS")
    assert wide[1].endswith("<none>   <none>   <none>           <none>            app=web")
    shown = yaml.safe_load(kubectl("get", "pod", "web", "-o", "yaml"))
    assert (shown["apiVersion"], shown["kind"]) == ("v1", "Pod")
    assert shown["metadata"]["namespace"] == namespace
    assert shown["spec"]["containers"][0]["terminationMessagePath"] == "/dev/termination-log"
    assert shown["spec"]["serviceAccountName"] == "default"
    assert shown["status"] == {"phase": "Pending", "qosClass": "BestEffort"}
    columns = kubectl("get", "pod", "web", "-o", "custom-columns=NAME:.metadata.name,POLICY:.spec.dnsPolicy")
    assert table(columns) == [["NAME", "POLICY"], ["web", "ClusterFirst"]]


def test_describe(kubectl: Kubectl) -> None:
    kubectl.create(pod("web"), claim("data"))
    kubectl("create", "deployment", "shop", "--image=registry.example/shop:1", "--replicas=3")
    kubectl("expose", "deployment", "shop", "--port=80", "--target-port=8080")
    about = kubectl.json("get", "pod", "web")
    kubectl.create(event("web.1", about, "FailedScheduling", "0/0 nodes are available"))
    web = kubectl("describe", "pod", "web")
    assert "Status:           Pending" in web
    assert "QoS Class:                   BestEffort" in web
    assert "node.kubernetes.io/not-ready:NoExecute op=Exists for 300s" in web
    assert web.rstrip().endswith("tests  0/0 nodes are available")
    shop = kubectl("describe", "deployment", "shop")
    assert "Replicas:               3 desired | 0 updated | 0 total | 0 available | 0 unavailable" in shop
    assert "RollingUpdateStrategy:  25% max unavailable, 25% max surge" in shop
    service = kubectl("describe", "service", "shop")
    assert "Type:                     ClusterIP" in service
    assert "TargetPort:               8080/TCP" in service
    data = kubectl("describe", "pvc", "data")
    assert "Status:        Pending" in data
    assert "Finalizers:    [kubernetes.io/pvc-protection]" in data


def test_describe_a_node(kubectl: Kubectl) -> None:
    kubectl.create(node("described"))
    kubectl.create(
        pod(
            "guest",
            nodeName="described",
            containers=[{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        )
    )
    described = kubectl("describe", "node", "described")
    assert "Taints:             node.kubernetes.io/not-ready:NoSchedule" in described
    assert "KubeletReady" in described
    assert "guest    1 (25%)" in described
    assert table(kubectl("get", "node", "described", "--no-headers"))[0][:3] == [
        "described",
        "Ready",
        "<none>",
    ]
    kubectl("delete", "node", "described")


def test_events(kubectl: Kubectl) -> None:
    kubectl.create(configmap("about"))
    about = kubectl.json("get", "configmap", "about")
    kubectl.create(event("one", about, "Broken", "it broke"), event("two", about, "Mended", "it works"))
    header, *rows = table(kubectl("get", "events", "--sort-by=.reason"))
    assert header == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert [row[1:] for row in rows] == [
        ["Warning", "Broken", "configmap/about", "it", "broke"],
        ["Warning", "Mended", "configmap/about", "it", "works"],
    ]
    assert "ConfigMap/about" in kubectl("events", "--for", "configmap/about", "--types=Warning")
    assert names(
        kubectl("get", "events", "--no-headers", "--field-selector", "reason=Mended", "-o", "name")
    ) == ["event/two"]
    in_new_form = kubectl.json("get", "events.v1.events.k8s.io", "one")
    assert (in_new_form["note"], in_new_form["regarding"]["name"]) == ("it broke", "about")


def test_get_all_is_the_category(kubectl: Kubectl) -> None:
    kubectl.create(pod("web"), configmap("not-shown"))
    kubectl("create", "deployment", "shop", "--image=x")
    kubectl("create", "service", "clusterip", "shop", "--tcp=80")
    kubectl("create", "cronjob", "nightly", "--image=x", "--schedule=0 3 * * *")
    assert kubectl("get", "all", "-o", "name").split() == [
        "pod/web",
        "service/shop",
        "deployment.apps/shop",
        "cronjob.batch/nightly",
    ]


def test_selectors_order_and_pages(kubectl: Kubectl) -> None:
    maps = [configmap(f"map-{number}", {"even": str(number % 2 == 0).lower()}) for number in range(7)]
    kubectl.create(*maps)
    kubectl.create(pod("held", schedulingGates=[{"name": "example.com/gate"}]), pod("free"))

    def shown(*options: str) -> list[str]:
        return names(kubectl("get", "configmaps", "--no-headers", *options))

    assert shown("-l", "even=true") == ["map-0", "map-2", "map-4", "map-6"]
    assert shown("-l", "even notin (true),even") == ["map-1", "map-3", "map-5"]
    assert shown("-l", "!even") == ["kube-root-ca.crt"]
    assert shown("--field-selector", "metadata.name=map-3") == ["map-3"]
    assert shown("-l", "even", "--sort-by={.metadata.labels.even}")[:3] == ["map-1", "map-3", "map-5"]
    assert shown("--chunk-size=3") == ["kube-root-ca.crt", *(f"map-{number}" for number in range(7))]
    assert names(kubectl("get", "pods", "--no-headers", "--field-selector=status.phase=Pending")) == [
        "free",
        "held",
    ]
    assert "held   0/1     SchedulingGated" in kubectl("get", "pods")
    page = json.loads(kubectl("get", "--raw", "/api/v1/configmaps?limit=2"))
    assert len(page["items"]) == 2
    assert page["metadata"]["continue"]
    assert page["metadata"]["remainingItemCount"] > 4


def test_watch_shows_changes_in_order(kubectl: Kubectl) -> None:
    kubectl.create(pod("first"))
    watch = kubectl.start("get", "pods", "--watch", "--output-watch-events", "--request-timeout=30s")
    assert watch.stdout is not None
    try:
        header, first = watch.stdout.readline().split(), watch.stdout.readline().split()
        assert header == ["EVENT", "NAME", "READY", "STATUS", "RESTARTS", "AGE"]
        assert first[:2] == ["ADDED", "first"]
        kubectl.create(pod("second"), pod("third"))
        kubectl("patch", "pod", "second", "--subresource=status", "-p", '{"status":{"phase":"Running"}}')
        kubectl("delete", "pod", "first", "third", "--force")
        seen = [watch.stdout.readline().split() for _ in range(5)]
    finally:
        watch.kill()
        watch.communicate()
    assert [(event, name, status) for event, name, _, status, *_ in seen] == [
        ("ADDED", "second", "Pending"),
        ("ADDED", "third", "Pending"),
        ("MODIFIED", "second", "Running"),
        ("DELETED", "first", "Pending"),
        ("DELETED", "third", "Pending"),
    ]
