from __future__ import annotations

import pytest
from kubernetes import client

from tests.apiserver.python_client.client_objects import config_map, done, names, pod, refused
from tests.apiserver.python_client.conftest import HISTORY


@pytest.fixture
def ten(core: client.CoreV1Api, namespace: str) -> str:
    """A namespace with ten secrets."""
    for number in range(10):
        core.create_namespaced_secret(namespace, {"metadata": {"name": f"s{number}"}})
    return namespace


def test_pages_show_one_moment(core: client.CoreV1Api, ten: str) -> None:
    page = core.list_namespaced_secret(ten, limit=4)
    first, found = page.metadata.resource_version, names(page)
    assert page.metadata.remaining_item_count == 6
    core.delete_namespaced_secret("s5", ten)
    core.create_namespaced_secret(ten, {"metadata": {"name": "s55"}})
    while page.metadata._continue:
        page = core.list_namespaced_secret(ten, limit=4, _continue=page.metadata._continue)
        assert page.metadata.resource_version == first
        found += names(page)
    assert found == [f"s{number}" for number in range(10)]


def test_expired_page(core: client.CoreV1Api, ten: str) -> None:
    page = core.list_namespaced_secret(ten, limit=4)
    for number in range(2 * HISTORY):
        core.patch_namespaced_secret("s0", ten, {"stringData": {"k": str(number)}})
    with refused(410, "Expired") as refusal:
        core.list_namespaced_secret(ten, limit=4, _continue=page.metadata._continue)
    rest = core.list_namespaced_secret(ten, _continue=refusal.status["metadata"]["continue"])
    assert names(rest) == [f"s{number}" for number in range(4, 10)]
    with refused(400, "BadRequest"):
        core.list_namespaced_secret(ten, _continue="forged")


def test_versions_of_lists(core: client.CoreV1Api, ten: str) -> None:
    then = core.list_namespaced_secret(ten).metadata.resource_version
    core.delete_namespaced_secret("s0", ten)
    exact = core.list_namespaced_secret(ten, resource_version=then, resource_version_match="Exact")
    assert len(exact.items) == 10
    newer = core.list_namespaced_secret(ten, resource_version=then, resource_version_match="NotOlderThan")
    assert len(newer.items) == 9
    assert len(core.list_namespaced_secret(ten, resource_version="0").items) == 9
    with refused(504, "Timeout"):
        core.list_namespaced_secret(ten, resource_version=str(10**18))


def test_selectors(core: client.CoreV1Api, namespace: str) -> None:
    for name in ("a", "b", "c"):
        core.create_namespaced_pod(namespace, pod(name, priority=None))
    done(core.create_namespaced_pod_binding("a", namespace, binding("a"), _preload_content=False))
    found = core.list_namespaced_pod(namespace, field_selector="spec.nodeName=n")
    assert names(found) == ["a"]
    waiting = core.list_namespaced_pod(namespace, field_selector="spec.nodeName=,metadata.name!=b")
    assert names(waiting) == ["c"]
    assert names(core.list_namespaced_pod(namespace, label_selector="app in (a,b)")) == ["a", "b"]
    everywhere = core.list_pod_for_all_namespaces(field_selector=f"metadata.namespace={namespace}")
    assert names(everywhere) == ["a", "b", "c"]
    with refused(400, "BadRequest") as refusal:
        core.list_namespaced_pod(namespace, field_selector="spec.image=x")
    assert "field label not supported: spec.image" in refusal.message


def binding(name: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "target": {"apiVersion": "v1", "kind": "Node", "name": "n"}}


def test_namespaces_keep_names_apart(core: client.CoreV1Api, namespace: str) -> None:
    core.create_namespaced_config_map(namespace, config_map("same", k="here"))
    core.create_namespace({"metadata": {"name": f"{namespace}-b"}})
    core.create_namespaced_config_map(f"{namespace}-b", config_map("same", k="there"))
    assert core.read_namespaced_config_map("same", namespace).data == {"k": "here"}
    core.delete_namespace(f"{namespace}-b")
    assert core.read_namespaced_config_map("same", namespace).data == {"k": "here"}
    with refused(404, "NotFound"):
        core.read_namespaced_config_map("same", f"{namespace}-b")


def test_what_the_server_says_of_itself(api: client.ApiClient) -> None:
    version = client.VersionApi(api).get_code()
    assert (version.major, version.minor) == ("1", "37")
    groups = {group.name for group in client.ApisApi(api).get_api_versions().groups}
    assert {"apps", "batch", "resource.k8s.io", "scheduling.k8s.io"} <= groups
    pods = {one.name for one in client.CoreV1Api(api).get_api_resources().resources}
    assert {"pods", "pods/binding", "pods/eviction", "pods/log", "pods/resize", "bindings"} <= pods
