"""ServiceAccount."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage_cluster.apiserver.admission.service_account import ServiceAccount, check_ephemeral
from tests.admission.harness import World, container, named, pod, refused, update, write

PATH = "/var/run/secrets/kubernetes.io/serviceaccount"


def account(name: str = "default", *, annotations: dict[str, str] | None = None, **fields: Any) -> Manifest:
    obj = named(name, "here", **fields)
    if annotations:
        obj["metadata"]["annotations"] = annotations
    return obj


WORLD = World(
    accounts=[
        account(),
        account("puller", imagePullSecrets=[{"name": "registry"}]),
        account("silent", automountServiceAccountToken=False),
        account(
            "strict",
            annotations={"kubernetes.io/enforce-mountable-secrets": "true"},
            secrets=[{"name": "good"}],
            imagePullSecrets=[{"name": "registry"}],
        ),
    ]
)


def admitted(given: Manifest, seed: int = 7) -> Manifest:
    attributes = write(given)
    ServiceAccount(Random(seed)).admit(attributes, WORLD)
    spec: Manifest = attributes.obj["spec"]
    return spec


def test_a_pod_gets_the_default_account_and_its_token() -> None:
    spec = admitted(pod(container("a"), container("b"), initContainers=[container("i")]))
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "default"
    (volume,) = spec["volumes"]
    name = volume["name"]
    assert name.startswith("kube-api-access-")
    assert len(name) == len("kube-api-access-") + 5
    assert set(name[-5:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert volume["projected"] == {
        "defaultMode": 420,
        "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {
                "downwardAPI": {
                    "items": [
                        {
                            "path": "namespace",
                            "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                        }
                    ]
                }
            },
        ],
    }
    for each in (*spec["containers"], *spec["initContainers"]):
        assert each["volumeMounts"] == [{"name": name, "readOnly": True, "mountPath": PATH}]
    assert "imagePullSecrets" not in spec


def test_suffixes_come_from_the_given_source() -> None:
    plugin = ServiceAccount(Random(7))
    names = []
    for _ in range(2):
        attributes = write(pod())
        plugin.admit(attributes, WORLD)
        names.append(attributes.obj["spec"]["volumes"][0]["name"])
    assert names[0] == admitted(pod(), seed=7)["volumes"][0]["name"]
    assert names[0] != names[1]


@pytest.mark.parametrize("field", ["serviceAccountName", "serviceAccount"])
def test_both_names_of_the_account_agree(field: str) -> None:
    spec = admitted(pod(**{field: "puller"}))
    assert spec["serviceAccountName"] == spec["serviceAccount"] == "puller"


@pytest.mark.parametrize(
    ("given", "has_token"),
    [
        (pod(serviceAccountName="silent"), False),
        (pod(serviceAccountName="silent", automountServiceAccountToken=True), True),
        (pod(automountServiceAccountToken=False), False),
    ],
)
def test_a_client_that_wants_no_token_gets_none(given: Manifest, has_token: bool) -> None:
    assert ("volumes" in admitted(given)) is has_token


def test_what_is_already_mounted_there_stays() -> None:
    mount = {"name": "own", "mountPath": PATH}
    spec = admitted(pod(container(volumeMounts=[mount]), volumes=[{"name": "own", "emptyDir": {}}]))
    assert spec["containers"][0]["volumeMounts"] == [mount]
    assert spec["volumes"] == [{"name": "own", "emptyDir": {}}]


def test_a_token_volume_that_came_along_is_used() -> None:
    own = {"name": "kube-api-access-mine", "emptyDir": {}}
    spec = admitted(pod(volumes=[own]))
    assert spec["volumes"] == [own]
    assert spec["containers"][0]["volumeMounts"][0]["name"] == "kube-api-access-mine"


def test_pull_secrets_come_from_the_account_unless_the_pod_has_some() -> None:
    assert admitted(pod(serviceAccountName="puller"))["imagePullSecrets"] == [{"name": "registry"}]
    own = [{"name": "own"}]
    assert admitted(pod(serviceAccountName="puller", imagePullSecrets=own))["imagePullSecrets"] == own


def test_the_account_must_exist() -> None:
    error = refused(ServiceAccount(Random(1)).admit, write(pod(serviceAccountName="x")), WORLD)
    assert error.message == (
        'pods "p" is forbidden: error looking up service account here/x: serviceaccount "x" not found'
    )
    assert error.code == 403


def env(secret: str) -> Manifest:
    return {"env": [{"name": "V", "valueFrom": {"secretKeyRef": {"name": secret, "key": "k"}}}]}


def env_from(secret: str) -> Manifest:
    return {"envFrom": [{"secretRef": {"name": secret}}]}


def secret_volume(name: str) -> Manifest:
    return {"name": "v", "secret": {"secretName": name}}


NOT_REFERENCED = "is not allowed because service account strict does not reference that"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (pod(container(**env("good")), volumes=[secret_volume("good")]), None),
        (pod(volumes=[secret_volume("bad")]), f'volume with secret.secretName="bad" {NOT_REFERENCED} secret'),
        (
            pod(container(**env("bad"))),
            f'container c with envVar V referencing secret.secretName="bad" {NOT_REFERENCED} secret',
        ),
        (
            pod(container(**env_from("bad"))),
            f'container c with envFrom referencing secret.secretName="bad" {NOT_REFERENCED} secret',
        ),
        (
            pod(initContainers=[container("i", **env("bad"))]),
            f'init container i with envVar V referencing secret.secretName="bad" {NOT_REFERENCED} secret',
        ),
        (
            pod(imagePullSecrets=[{"name": "registry"}, {"name": "bad"}]),
            f'imagePullSecrets[1].name="bad" {NOT_REFERENCED} imagePullSecret',
        ),
    ],
)
def test_strict_accounts_say_which_secrets_may_be_used(given: Manifest, why: str | None) -> None:
    given["spec"]["serviceAccountName"] = "strict"
    if why is None:
        admitted(given)
    else:
        error = refused(ServiceAccount(Random(1)).admit, write(given), WORLD)
        assert error.message == f'pods "p" is forbidden: {why}'


def test_ephemeral_containers_use_allowed_secrets_only() -> None:
    old = pod(serviceAccountName="strict")

    def debugging(secret: str) -> Manifest:
        return pod(serviceAccountName="strict", ephemeralContainers=[container("debug", **env_from(secret))])

    check_ephemeral(update(debugging("good"), old, subresource="ephemeralcontainers"), WORLD)
    attributes = update(debugging("bad"), old, subresource="ephemeralcontainers")
    assert refused(check_ephemeral, attributes, WORLD).message == (
        'pods "p" is forbidden: ephemeral container debug with envFrom referencing secret.secretName="bad" '
        f"{NOT_REFERENCED} secret"
    )
    nobody = update(pod(), pod(), subresource="ephemeralcontainers")
    assert refused(check_ephemeral, nobody, WORLD).message == (
        'pods "p" is forbidden: no service account specified for pod here/p'
    )


TOKEN = {"serviceAccountToken": {"path": "token"}}


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({}, None),
        ({"serviceAccountName": "default"}, "a mirror pod may not reference service accounts"),
        ({"volumes": [secret_volume("s")]}, "a mirror pod may not reference secrets"),
        ({"imagePullSecrets": [{"name": "s"}]}, "a mirror pod may not reference secrets"),
        ({"initContainers": [container("i", **env("s"))]}, "a mirror pod may not reference secrets"),
        (
            {"volumes": [{"name": "v", "csi": {"driver": "d", "nodePublishSecretRef": {"name": "s"}}}]},
            "a mirror pod may not reference secrets",
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [{"secret": {"name": "s"}}]}}]},
            "a mirror pod may not reference secrets",
        ),
        (
            {"volumes": [{"name": "v", "projected": {"sources": [TOKEN]}}]},
            "a mirror pod may not use ServiceAccountToken volume projections",
        ),
    ],
)
def test_mirror_pods_depend_on_nothing_and_are_not_changed(spec: Manifest, why: str | None) -> None:
    given = pod(**spec)
    given["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    attributes = write(given)
    if why is None:
        ServiceAccount(Random(1)).admit(attributes, WORLD)
        assert attributes.obj["spec"] == pod(**spec)["spec"]
    else:
        error = refused(ServiceAccount(Random(1)).admit, attributes, WORLD)
        assert error.message == f'pods "p" is forbidden: {why}'
