"""NamespaceLifecycle."""

from __future__ import annotations

import pytest

from moorage.admission.plugin import Call
from moorage.admission.plugins.namespace_lifecycle import PLUGIN, admit
from tests.admission.harness import World, named, namespace, pod, refused, write

HERE = World(namespaces=[namespace(), namespace("going", "Terminating")])


def test_a_pod_may_be_created_in_an_active_namespace() -> None:
    admit(write(pod()), HERE)


def test_a_missing_namespace_is_not_found() -> None:
    error = refused(admit, write(named("p", "nowhere")), HERE)
    assert error.status["message"] == 'namespaces "nowhere" not found'
    assert (error.code, error.reason) == (404, "NotFound")
    assert error.details == {"name": "nowhere", "kind": "namespaces"}


@pytest.mark.parametrize("subresource", ["", "binding", "eviction"])
def test_a_terminating_namespace_takes_nothing_new(subresource: str) -> None:
    error = refused(admit, write(named("p", "going"), subresource=subresource), HERE)
    assert error.message == (
        'pods "p" is forbidden: unable to create new content in namespace going '
        "because it is being terminated"
    )
    assert (error.code, error.reason) == (403, "Forbidden")
    assert error.details["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace going is being terminated",
            "field": "metadata.namespace",
        }
    ]


def test_a_generated_name_is_reported_as_far_as_it_is_known() -> None:
    attributes = write({"metadata": {"generateName": "web-", "namespace": "going"}})
    assert refused(admit, attributes, HERE).message.startswith('pods "web-" is forbidden: ')


def test_access_reviews_do_not_tell_whether_a_namespace_exists() -> None:
    admit(write(named("", "nowhere"), "authorization.k8s.io/localsubjectaccessreviews"), HERE)


def test_what_lives_in_no_namespace_is_let_pass() -> None:
    admit(write(named("n"), "/nodes", namespaced=False), HERE)
    admit(write(namespace("new"), "/namespaces", namespaced=False), HERE)


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
def test_some_namespaces_stay(name: str) -> None:
    attributes = write(namespace(name), "/namespaces", "DELETE", namespaced=False)
    error = refused(admit, attributes, HERE)
    assert error.message == f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert error.code == 403


def test_other_namespaces_go() -> None:
    admit(write(namespace("kube-node-lease"), "/namespaces", "DELETE", namespaced=False), HERE)


def test_only_namespaces_are_looked_at_when_deleted() -> None:
    assert not any(call.covers(Call("DELETE", "/pods")) for call in PLUGIN.handles)
