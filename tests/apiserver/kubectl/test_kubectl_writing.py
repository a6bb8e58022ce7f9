from __future__ import annotations

import json
from pathlib import Path

from tests.apiserver.kubectl.objects import configmap, pod
from tests.apiserver.running import Kubectl, manifest


def data(kubectl: Kubectl, name: str = "one") -> dict[str, str]:
    found: dict[str, str] = kubectl.json("get", "configmap", name).get("data", {})
    return found


def version(kubectl: Kubectl, name: str = "one") -> str:
    return kubectl("get", "configmap", name, "-o", "jsonpath={.metadata.resourceVersion}")


def test_apply_twice(kubectl: Kubectl) -> None:
    first = manifest(configmap("one", {"tier": "web"}, a="1", b="2"))
    assert kubectl("apply", "-f", "-", input=first) == "configmap/one created\n"
    created = version(kubectl)
    assert kubectl("apply", "-f", "-", input=first) == "configmap/one unchanged\n"
    assert version(kubectl) == created
    kubectl("patch", "configmap", "one", "-p", '{"data":{"c":"from elsewhere"}}')
    second = manifest(configmap("one", {"tier": "db"}, a="one"))
    assert kubectl("apply", "-f", "-", input=second) == "configmap/one configured\n"
    # What the earlier manifest had is gone, what others have added stays.
    assert data(kubectl) == {"a": "one", "c": "from elsewhere"}


def test_diff(kubectl: Kubectl) -> None:
    old, new = manifest(configmap("one", a="old")), manifest(configmap("one", a="new"))
    kubectl("apply", "-f", "-", input=old)
    assert kubectl("diff", "-f", "-", input=old) == ""
    difference = kubectl("diff", "-f", "-", input=new, ok=False)
    assert "-  a: old\n+  a: new\n" in difference
    assert data(kubectl) == {"a": "old"}


def test_apply_from_the_server_side(kubectl: Kubectl) -> None:
    def apply(text: str, manager: str, *options: str, ok: bool = True) -> str:
        command = ("apply", "--server-side", f"--field-manager={manager}", *options, "-f", "-")
        return kubectl(*command, input=text, ok=ok)

    ours, theirs = manifest(configmap("one", a="1", b="2")), manifest(configmap("one", a="other"))
    assert apply(ours, "us") == "configmap/one serverside-applied\n"
    created = version(kubectl)
    assert apply(ours, "us") == "configmap/one serverside-applied\n"
    assert version(kubectl) == created
    refused = apply(theirs, "them", ok=False)
    assert 'Apply failed with 1 conflict: conflict with "us": .data.a' in refused
    assert data(kubectl) == {"a": "1", "b": "2"}
    apply(theirs, "them", "--force-conflicts")
    assert data(kubectl) == {"a": "other", "b": "2"}
    managers = kubectl.json("get", "configmap", "one", "--show-managed-fields")["metadata"]["managedFields"]
    owned = {entry["manager"]: sorted(entry["fieldsV1"]["f:data"]) for entry in managers}
    assert owned == {"us": ["f:b"], "them": ["f:a"]}
    assert {entry["operation"] for entry in managers} == {"Apply"}
    apply(manifest(configmap("one")), "us")
    assert data(kubectl) == {"a": "other"}


def test_lists_are_merged_by_their_keys(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "shop", "--image=registry.example/shop:1")
    sidecar = {"name": "log", "image": "registry.example/log:1"}
    wanted = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "shop"},
        "spec": {"template": {"spec": {"containers": [sidecar]}}},
    }
    kubectl("apply", "--server-side", "--field-manager=mesh", "-f", "-", input=json.dumps(wanted))
    images = "jsonpath={.spec.template.spec.containers[*].image}"
    assert sorted(kubectl("get", "deploy", "shop", "-o", images).split()) == [
        "registry.example/log:1",
        "registry.example/shop:1",
    ]
    assert kubectl("set", "image", "deployment/shop", "log=registry.example/log:2") == (
        "deployment.apps/shop image updated\n"
    )
    assert "registry.example/log:2" in kubectl("get", "deploy", "shop", "-o", images)


PATCHES = {
    "strategic": ('{"data":{"b":"2","a":null}}', {"b": "2"}),
    "merge": ('{"data":{"b":"2","a":null}}', {"b": "2"}),
    "json": ('[{"op":"test","path":"/data/a","value":"1"},{"op":"add","path":"/data/b","value":"2"}]',
             {"a": "1", "b": "2"}),
}  # fmt: skip


def test_patch(kubectl: Kubectl) -> None:
    for form, (patch, expected) in PATCHES.items():
        kubectl.create(configmap(form, a="1"))
        command = ("patch", "configmap", form, f"--type={form}", "-p", patch)
        assert kubectl(*command) == f"configmap/{form} patched\n"
        assert data(kubectl, form) == expected
    failed = kubectl(
        "patch", "cm", "json", "--type=json", "-p", '[{"op":"test","path":"/data/a","value":"x"}]', ok=False
    )
    assert "The request is invalid: the server rejected our request due to an error in our request" in failed
    assert "(no change)" in kubectl("patch", "cm", "merge", "--type=merge", "-p", '{"data":{"b":"2"}}')


def test_strategic_patch_of_a_pod(kubectl: Kubectl) -> None:
    kubectl.create(pod("web", containers=[{"name": "a", "image": "a:1"}, {"name": "b", "image": "b:1"}]))
    kubectl("patch", "pod", "web", "-p", '{"spec":{"containers":[{"name":"b","image":"b:2"}]}}')
    assert kubectl("get", "pod", "web", "-o", "jsonpath={.spec.containers[*].image}") == "a:1 b:2"
    refused = kubectl("patch", "pod", "web", "-p", '{"spec":{"terminationGracePeriodSeconds":7}}', ok=False)
    assert (
        'The Pod "web" is invalid: spec: Forbidden: pod updates may not change fields other than' in refused
    )


def test_edit(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl.create(configmap("one", a="before"))
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed "s/a: before/a: after/" "$1" > "$1.new" && mv "$1.new" "$1"\n')
    editor.chmod(0o700)
    assert kubectl("edit", "configmap", "one", EDITOR=str(editor)) == "configmap/one edited\n"
    assert data(kubectl) == {"a": "after"}
    assert "no changes made" in kubectl.run("edit", "configmap", "one", EDITOR=str(editor)).stderr


def test_label_and_annotate(kubectl: Kubectl) -> None:
    kubectl.create(configmap("one"), configmap("two"))
    assert kubectl("label", "configmap", "one", "two", "tier=web") == (
        "configmap/one labeled\nconfigmap/two labeled\n"
    )
    assert "'tier' already has a value (web)" in kubectl("label", "cm", "one", "tier=db", ok=False)
    kubectl("label", "configmap", "-l", "tier=web", "tier=db", "--overwrite")
    assert kubectl("label", "configmap", "one", "tier-") == "configmap/one unlabeled\n"
    assert kubectl("annotate", "configmap", "two", "note=a b") == "configmap/two annotated\n"
    one, two = (item["metadata"] for item in kubectl.json("get", "configmap", "one", "two")["items"])
    assert not one.get("labels")
    assert two["labels"] == {"tier": "db"}
    assert two["annotations"] == {"note": "a b"}


def test_replace(kubectl: Kubectl) -> None:
    kubectl.create(configmap("one", a="1"))
    uid = kubectl("get", "configmap", "one", "-o", "jsonpath={.metadata.uid}")
    old = configmap("one", a="2")
    assert kubectl("replace", "-f", "-", input=manifest(old)) == "configmap/one replaced\n"
    assert data(kubectl) == {"a": "2"}
    old["metadata"]["resourceVersion"] = "1"
    conflict = kubectl("replace", "-f", "-", input=manifest(old), ok=False)
    assert (
        'Operation cannot be fulfilled on configmaps "one": the object has been modified; '
        "please apply your changes to the latest version and try again" in conflict
    )
    kubectl("replace", "--force", "-f", "-", input=manifest(configmap("one", a="3")))
    again = kubectl.json("get", "configmap", "one")
    assert again["data"] == {"a": "3"}
    assert again["metadata"]["uid"] != uid
    missing = kubectl("replace", "-f", "-", input=manifest(configmap("none")), ok=False)
    assert '(NotFound): error when replacing "STDIN": configmaps "none" not found' in missing


def test_dry_run_stores_nothing(kubectl: Kubectl) -> None:
    kubectl.create(configmap("one", a="1"))
    before = version(kubectl)
    dry = "--dry-run=server"
    shown = kubectl("create", "-f", "-", dry, "-o", "json", input=manifest(pod("web")))
    assert json.loads(shown)["spec"]["schedulerName"] == "default-scheduler"
    patched = kubectl("patch", "cm", "one", dry, "-p", '{"data":{"a":"2"}}', "-o", "jsonpath={.data.a}")
    assert patched == "2"
    assert "(server dry run)" in kubectl("apply", dry, "-f", "-", input=manifest(configmap("two")))
    kubectl("apply", dry, "--server-side", "-f", "-", input=manifest(configmap("three")))
    kubectl("label", "cm", "one", "x=y", dry)
    kubectl("delete", "cm", "one", dry)
    assert kubectl("get", "pods,configmaps", "-o", "name").split() == [
        "configmap/kube-root-ca.crt",
        "configmap/one",
    ]
    assert version(kubectl) == before


def test_field_validation(kubectl: Kubectl) -> None:
    unknown = json.dumps(pod("web", containers=[{"name": "main", "image": "x", "imagex": "y"}], colour="red"))

    def create(how: str, *, ok: bool = True) -> str:
        done = kubectl.run("create", f"--validate={how}", "--dry-run=server", "-f", "-", input=unknown)
        assert (done.returncode == 0) is ok, done
        return done.stderr

    fields = ('unknown field "spec.colour"', 'unknown field "spec.containers[0].imagex"')
    refused = create("strict", ok=False)
    assert 'Pod in version "v1" cannot be handled as a Pod: strict decoding error: ' in refused
    assert all(field in refused for field in fields)
    assert sorted(create("warn").splitlines()) == [f"Warning: {field}" for field in fields]
    assert create("ignore") == ""


def test_scale_and_set(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "shop", "--image=registry.example/shop:1", "--replicas=2")
    assert kubectl("scale", "deployment", "shop", "--replicas=5") == "deployment.apps/shop scaled\n"
    wrong = kubectl("scale", "deployment", "shop", "--current-replicas=2", "--replicas=3", ok=False)
    assert "Expected replicas to be 2, was 5" in wrong
    header, row = kubectl("get", "deployment", "shop", "--subresource=scale").splitlines()
    assert header.split() == ["NAME", "DESIRED", "AVAILABLE", "AGE"]
    assert row.split()[:3] == ["shop", "5", "0"]
    dry = kubectl("patch", "deploy", "shop", "--subresource=scale", "--type=merge", "--dry-run=server",
                  "-p", '{"spec":{"replicas":9}}', "-o", "jsonpath={.spec.replicas}")  # fmt: skip
    assert dry == "9"
    kubectl("set", "resources", "deployment/shop", "--requests=cpu=100m")
    kubectl("set", "env", "deployment/shop", "A=b")
    shop = kubectl.json("get", "deployment", "shop")
    container = shop["spec"]["template"]["spec"]["containers"][0]
    assert (shop["spec"]["replicas"], shop["metadata"]["generation"]) == (5, 4)
    assert (container["resources"], container["env"]) == (
        {"requests": {"cpu": "100m"}},
        [{"name": "A", "value": "b"}],
    )


def test_expose(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "shop", "--image=x")
    assert kubectl("expose", "deployment", "shop", "--port=80", "--type=NodePort") == "service/shop exposed\n"
    spec = kubectl.json("get", "service", "shop")["spec"]
    assert (spec["selector"], spec["type"]) == ({"app": "shop"}, "NodePort")
    kubectl("set", "selector", "service", "shop", "app=other")
    assert kubectl("get", "service", "shop", "-o", "jsonpath={.spec.selector.app}") == "other"


def test_rollout(kubectl: Kubectl) -> None:
    """As far as it goes without controllers."""
    kubectl("create", "deployment", "shop", "--image=x")
    assert "No rollout history found" in kubectl("rollout", "history", "deployment/shop")
    assert kubectl("rollout", "restart", "deployment/shop") == "deployment.apps/shop restarted\n"
    assert kubectl("rollout", "pause", "deployment/shop") == "deployment.apps/shop paused\n"
    assert "is already paused" in kubectl("rollout", "pause", "deployment/shop", ok=False)
    shop = kubectl.json("get", "deployment", "shop")
    assert shop["spec"]["paused"] is True
    assert "kubectl.kubernetes.io/restartedAt" in shop["spec"]["template"]["metadata"]["annotations"]
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
    status = {"observedGeneration": shop["metadata"]["generation"], **counts}
    kubectl("patch", "deploy", "shop", "--subresource=status", "-p", json.dumps({"status": status}))
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/shop", "--timeout=10s")


def test_prune(kubectl: Kubectl) -> None:
    labels = {"set": "x"}
    apply = ("apply", "--prune", "-l", "set=x", "--prune-allowlist=core/v1/ConfigMap", "-f", "-")
    kubectl("apply", "-f", "-", input=manifest(configmap("one", labels, a="1"), configmap("two", labels)))
    output = kubectl(*apply, input=manifest(configmap("one", labels, a="1")))
    assert output == "configmap/one unchanged\nconfigmap/two pruned\n"


def test_debug_adds_an_ephemeral_container(kubectl: Kubectl) -> None:
    kubectl.create(pod("web"))
    kubectl("debug", "pod/web", "--image=busybox", "--container=probe", "--quiet")
    spec = kubectl.json("get", "pod", "web")["spec"]
    assert [(one["name"], one["image"]) for one in spec["ephemeralContainers"]] == [("probe", "busybox")]
