from __future__ import annotations

import re
import threading
from typing import Any

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError

from tests.apiserver.extensions.definitions import INTEGER, STRING, crd, obj, version
from tests.apiserver.python_client.client_objects import config_map, deployment, names, pod, refused

APPLY = "application/apply-patch+yaml"


def test_optimistic_locking(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("a", k="0"))
    mine, theirs = (core.read_namespaced_config_map("a", namespace) for _ in range(2))
    theirs.data = {"k": "theirs"}
    core.replace_namespaced_config_map("a", namespace, theirs)
    mine.data = {"k": "mine"}
    with refused(409, "Conflict") as refusal:
        core.replace_namespaced_config_map("a", namespace, mine)
    assert refusal.message.endswith(
        "the object has been modified; please apply your changes to the latest version and try again"
    )
    assert core.read_namespaced_config_map("a", namespace).data == {"k": "theirs"}


def test_counting_together_by_retries(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("count", n="0"))
    conflicts: list[int] = []

    def count(many: int) -> None:
        while many:
            current = core.read_namespaced_config_map("count", namespace)
            current.data["n"] = str(int(current.data["n"]) + 1)
            try:
                core.replace_namespaced_config_map("count", namespace, current)
                many -= 1
            except client.ApiException as error:
                conflicts.append(error.status)

    threads = [threading.Thread(target=count, args=(10,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert core.read_namespaced_config_map("count", namespace).data == {"n": "30"}
    assert set(conflicts) <= {409}


PATCHES: dict[str, tuple[str, Any, dict[str, str]]] = {
    "JSON": (
        "application/json-patch+json",
        [{"op": "replace", "path": "/data/k", "value": "new"}, {"op": "remove", "path": "/data/l"}],
        {"k": "new"},
    ),
    "merge": ("application/merge-patch+json", {"data": {"k": "new", "l": None}}, {"k": "new"}),
    "strategic": ("application/strategic-merge-patch+json", {"data": {"k": "new"}}, {"k": "new", "l": "old"}),
}


@pytest.mark.parametrize(("content_type", "patch", "expected"), PATCHES.values(), ids=PATCHES)
def test_patches(
    core: client.CoreV1Api, namespace: str, content_type: str, patch: Any, expected: dict[str, str]
) -> None:
    core.create_namespaced_config_map(namespace, config_map("a", k="old", l="old"))
    made = core.patch_namespaced_config_map("a", namespace, patch, _content_type=content_type)
    assert made.data == expected
    assert core.read_namespaced_config_map("a", namespace).data == expected


def test_strategic_patch_merges_lists_by_their_key(api: client.ApiClient, namespace: str) -> None:
    apps = client.AppsV1Api(api)
    apps.create_namespaced_deployment(namespace, deployment("a"))
    containers = [{"name": "main", "image": "registry.example/app:2"}, {"name": "side", "image": "x"}]
    patch = {"spec": {"template": {"spec": {"containers": containers}}}}
    made = apps.patch_namespaced_deployment("a", namespace, patch)
    images = {one.name: one.image for one in made.spec.template.spec.containers}
    assert images == {"main": "registry.example/app:2", "side": "x"}
    gone = [{"name": "side", "$patch": "delete"}]
    made = apps.patch_namespaced_deployment(
        "a", namespace, {"spec": {"template": {"spec": {"containers": gone}}}}
    )
    assert [one.name for one in made.spec.template.spec.containers] == ["main"]


def test_server_side_apply(core: client.CoreV1Api, namespace: str) -> None:
    def apply(manager: str, force: bool = False, **data: str) -> Any:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data}
        return core.patch_namespaced_config_map(
            "a", namespace, body, field_manager=manager, force=force, _content_type=APPLY
        )

    apply("one", k="1", l="1")
    apply("two", m="2")
    with refused(409, "Conflict") as refusal:
        apply("two", k="2", m="2")
    assert refusal.message == ('Apply failed with 1 conflict: conflict with "one": .data.k')
    assert apply("two", True, k="2", m="2").data == {"k": "2", "l": "1", "m": "2"}
    # What an owner no longer says goes, unless somebody else owns it.
    made = apply("one", k="2")
    assert made.data == {"k": "2", "m": "2"}
    owners = {entry.manager: entry.operation for entry in made.metadata.managed_fields}
    assert owners == {"one": "Apply", "two": "Apply"}


def test_generated_names(core: client.CoreV1Api, namespace: str) -> None:
    bodies = [{"metadata": {"generateName": "m-"}} for _ in range(5)]
    made = {core.create_namespaced_config_map(namespace, body).metadata.name for body in bodies}
    assert len(made) == 5
    assert all(re.fullmatch(r"m-[a-z0-9]{5}", name) for name in made)


def test_dry_run(core: client.CoreV1Api, namespace: str) -> None:
    made = core.create_namespaced_pod(namespace, pod("a"), dry_run="All")
    assert made.metadata.uid
    assert made.spec.priority == 0
    with refused(404, "NotFound"):
        core.read_namespaced_pod("a", namespace)
    core.create_namespaced_config_map(namespace, config_map("m", k="1"))
    core.patch_namespaced_config_map("m", namespace, {"data": {"k": "2"}}, dry_run="All")
    core.delete_namespaced_config_map("m", namespace, dry_run="All")
    assert core.read_namespaced_config_map("m", namespace).data == {"k": "1"}


def test_finalizers(core: client.CoreV1Api, namespace: str) -> None:
    body = config_map("a")
    body["metadata"]["finalizers"] = ["example.com/slow"]
    core.create_namespaced_config_map(namespace, body)
    core.delete_namespaced_config_map("a", namespace)
    assert core.read_namespaced_config_map("a", namespace).metadata.deletion_timestamp
    core.patch_namespaced_config_map("a", namespace, {"metadata": {"finalizers": None}})
    with refused(404, "NotFound"):
        core.read_namespaced_config_map("a", namespace)


def test_grace_and_preconditions(core: client.CoreV1Api, namespace: str) -> None:
    made = core.create_namespaced_pod(namespace, pod("a", nodeName="n"))
    wrong = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="other"))
    with refused(409, "Conflict") as refusal:
        core.delete_namespaced_pod("a", namespace, body=wrong)
    assert "the UID in the precondition (other) does not match" in refusal.message
    right = client.V1DeleteOptions(
        grace_period_seconds=7, preconditions=client.V1Preconditions(uid=made.metadata.uid)
    )
    going = core.delete_namespaced_pod("a", namespace, body=right)
    assert going.metadata.deletion_grace_period_seconds == 7
    assert core.read_namespaced_pod("a", namespace).metadata.deletion_timestamp
    core.delete_namespaced_pod("a", namespace, grace_period_seconds=0)
    with refused(404, "NotFound"):
        core.read_namespaced_pod("a", namespace)


def test_delete_collection(core: client.CoreV1Api, namespace: str) -> None:
    for name in ("a", "b", "c", "d"):
        core.create_namespaced_pod(namespace, pod(name))
    core.delete_collection_namespaced_pod(namespace, label_selector="app in (a,b)")
    assert names(core.list_namespaced_pod(namespace)) == ["c", "d"]
    core.delete_collection_namespaced_pod(namespace, field_selector="metadata.name=d")
    assert names(core.list_namespaced_pod(namespace)) == ["c"]


def test_dynamic_client_serves_a_definition_at_once(api: client.ApiClient, namespace: str) -> None:
    dynamic = DynamicClient(api)
    schema = obj(spec=obj(size={**INTEGER, "minimum": 1}), status=obj(phase=STRING))
    definition = crd(version(schema=schema, subresources={"status": {}}))
    definitions = dynamic.resources.get(
        api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition"
    )
    dynamic.create(definitions, body=definition)
    widgets = dynamic.resources.get(api_version="example.com/v1", kind="Widget")
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Widget",
        "metadata": {"name": "w"},
        "spec": {"size": 3},
        "status": {"phase": "ignored"},
    }
    made = widgets.create(body=body, namespace=namespace)
    assert made.spec.size == 3
    assert made.metadata.generation == 1
    assert "status" not in made.to_dict()
    merge = "application/merge-patch+json"
    changed = widgets.patch(body={"spec": {"size": 4}}, name="w", namespace=namespace, content_type=merge)
    assert changed.metadata.generation == 2
    widgets.status.patch(body={"status": {"phase": "Up"}}, name="w", namespace=namespace, content_type=merge)
    shown = widgets.get(name="w", namespace=namespace)
    assert (shown.status.phase, shown.metadata.generation) == ("Up", 2)
    stale = made.to_dict()
    stale["spec"]["size"] = 9
    with pytest.raises(ConflictError):
        widgets.replace(body=stale, namespace=namespace)
    applied = {**body, "spec": {"size": 5}}
    del applied["status"]
    forced = widgets.server_side_apply(
        body=applied, name="w", namespace=namespace, field_manager="me", force_conflicts=True
    )
    assert forced.spec.size == 5
    with refused(422, "Invalid") as refusal:
        client.CustomObjectsApi(api).patch_namespaced_custom_object(
            "example.com", "v1", namespace, "widgets", "w", {"spec": {"size": 0}}
        )
    assert "spec.size: Invalid value: 0" in refusal.message
    assert [item.metadata.name for item in widgets.get(namespace=namespace).items] == ["w"]
    widgets.delete(name="w", namespace=namespace)
    definitions.delete(name="widgets.example.com")
    with pytest.raises(NotFoundError):
        widgets.get(namespace=namespace)
