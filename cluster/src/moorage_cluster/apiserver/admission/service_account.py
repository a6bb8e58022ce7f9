"""ServiceAccount: every pod runs as a service account, with a token to authenticate."""

from __future__ import annotations

from random import Random
from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.plugin import PODS, Call, Plugin, refusal
from moorage.api.manifests import Manifest, annotations_of, child
from moorage.api.text import quoted
from moorage_cluster.apiserver.admission import mountable_secrets

SERVICE_ACCOUNTS: Final = "/serviceaccounts"

_MIRROR: Final = "kubernetes.io/config.mirror"
_VOLUME_PREFIX: Final = "kube-api-access-"
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_TOKEN_SECONDS: Final = 3607
_SUFFIX_CHARACTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH: Final = 5


class ServiceAccount:
    """Gives new pods their account, its token and its image pull secrets.

    random: source of the suffixes of volume names.
    """

    def __init__(self, random: Random) -> None:
        self._random = random

    def admit(self, attributes: Attributes, reader: Reader) -> None:
        """Set the service account of a new pod; it must exist."""
        pod = attributes.obj
        spec = child(pod, "spec")
        name = spec.get("serviceAccountName") or spec.get("serviceAccount") or ""
        if _MIRROR in annotations_of(pod):
            _check_mirror(attributes, name)
            return
        name = name or "default"
        # `serviceAccount` is the deprecated name of the field; old clients read it.
        spec["serviceAccountName"] = spec["serviceAccount"] = name
        account = _find(attributes, name, reader)
        if spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True)):
            self._mount_token(spec)
        pull_secrets = account.get("imagePullSecrets")
        if pull_secrets and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": each.get("name", "")} for each in pull_secrets]
        if mountable_secrets.is_enforced(account) and (
            problem := mountable_secrets.pod_problem(spec, account)
        ):
            raise refusal(attributes, problem)

    def _mount_token(self, spec: Manifest) -> None:
        """Mount a token in every container that mounts nothing else at its path."""
        volumes: list[Manifest] = spec.get("volumes") or []
        volume_name = ""
        for volume in volumes:
            if volume.get("name", "").startswith(_VOLUME_PREFIX):
                volume_name = volume["name"]
                break
        is_new = not volume_name
        if is_new:
            suffix = "".join(self._random.choices(_SUFFIX_CHARACTERS, k=_SUFFIX_LENGTH))
            volume_name = _VOLUME_PREFIX + suffix
        is_mounted = False
        for containers in (spec.get("initContainers") or (), spec.get("containers") or ()):
            for container in containers:
                mounts = container.get("volumeMounts") or []
                if any(mount.get("mountPath") == _MOUNT_PATH for mount in mounts):
                    continue
                mount = {"name": volume_name, "readOnly": True, "mountPath": _MOUNT_PATH}
                container["volumeMounts"] = [*mounts, mount]
                is_mounted = True
        if is_new and is_mounted:
            spec["volumes"] = [*volumes, _token_volume(volume_name)]


def check_ephemeral(attributes: Attributes, reader: Reader) -> None:
    """Reject ephemeral containers that use secrets which the pod's account does not list."""
    spec = attributes.obj.get("spec", {})
    name = spec.get("serviceAccountName")
    if not name:
        pod_name = attributes.obj["metadata"].get("name", "")
        raise refusal(attributes, f"no service account specified for pod {attributes.namespace}/{pod_name}")
    account = _find(attributes, name, reader)
    if mountable_secrets.is_enforced(account) and (
        problem := mountable_secrets.ephemeral_problem(spec, account)
    ):
        raise refusal(attributes, problem)


def _find(attributes: Attributes, name: str, reader: Reader) -> Manifest:
    account = reader.find(SERVICE_ACCOUNTS, attributes.namespace, name)
    if account is None:
        raise refusal(
            attributes,
            f"error looking up service account {attributes.namespace}/{name}: "
            f"serviceaccount {quoted(name)} not found",
        )
    return account


def _check_mirror(attributes: Attributes, account_name: str) -> None:
    """A mirror pod only represents a static pod of a kubelet: it must not depend on other objects."""
    spec = attributes.obj["spec"]
    if account_name:
        raise refusal(attributes, "a mirror pod may not reference service accounts")
    if mountable_secrets.refers_to_secrets(spec):
        raise refusal(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in volume.get("projected", {}).get("sources") or ():
            if "serviceAccountToken" in source:
                raise refusal(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


def _token_volume(name: str) -> Manifest:
    """A volume with a token, the CA of the server, and the pod's namespace."""
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "name": name,
        "projected": {
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [namespace]}},
            ],
            "defaultMode": 0o644,
        },
    }


def plugins(random: Random) -> tuple[Plugin, ...]:
    """The plugin's two steps; `random` is the source of the suffixes of volume names."""
    return (
        Plugin("ServiceAccount", ServiceAccount(random).admit, (Call("CREATE", PODS),)),
        Plugin("ServiceAccount", check_ephemeral, (Call("UPDATE", PODS, "ephemeralcontainers"),)),
    )
