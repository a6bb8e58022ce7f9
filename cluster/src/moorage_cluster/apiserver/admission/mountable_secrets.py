"""Which secrets a pod refers to, and which of them its service account lets it use.

Service accounts annotated with `kubernetes.io/enforce-mountable-secrets: "true"` list the secrets that their
pods may refer to; pods of all other accounts may refer to any.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.api.manifests import Manifest, annotations_of
from moorage.api.text import quoted

_ANNOTATION: Final = "kubernetes.io/enforce-mountable-secrets"
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))

_SECRET_FIELDS: Final = {
    "azureFile": "secretName",
    "cephfs": "secretRef",
    "cinder": "secretRef",
    "flexVolume": "secretRef",
    "rbd": "secretRef",
    "secret": "secretName",
    "scaleIO": "secretRef",
    "iscsi": "secretRef",
    "storageos": "secretRef",
    "csi": "nodePublishSecretRef",
}
"""The field in which each type of volume names its secret."""

_POD_CONTAINERS: Final = (("initContainers", "init container"), ("containers", "container"))
_EPHEMERAL: Final = (("ephemeralContainers", "ephemeral container"),)


def is_enforced(account: Manifest) -> bool:
    """Whether an account's pods may use only the secrets that it lists."""
    return annotations_of(account).get(_ANNOTATION) in _TRUE


def pod_problem(spec: Manifest, account: Manifest) -> str:
    """The first secret that a pod must not use, or nothing."""
    allowed = {each.get("name") for each in account.get("secrets") or ()}
    owner = account["metadata"]["name"]
    for volume in spec.get("volumes") or ():
        if "secret" in volume and (name := volume["secret"].get("secretName", "")) not in allowed:
            return f"volume with secret.secretName={quoted(name)} {_because(owner)} secret"
    if problem := _containers_problem(spec, _POD_CONTAINERS, allowed, owner):
        return problem
    pull_secrets = {each.get("name") for each in account.get("imagePullSecrets") or ()}
    for index, each in enumerate(spec.get("imagePullSecrets") or ()):
        if (name := each.get("name", "")) not in pull_secrets:
            return f"imagePullSecrets[{index}].name={quoted(name)} {_because(owner)} imagePullSecret"
    return ""


def ephemeral_problem(spec: Manifest, account: Manifest) -> str:
    """The first secret that an ephemeral container must not use, or nothing."""
    allowed = {each.get("name") for each in account.get("secrets") or ()}
    return _containers_problem(spec, _EPHEMERAL, allowed, account["metadata"]["name"])


def refers_to_secrets(spec: Manifest) -> bool:
    """Whether a pod refers to any secret at all."""
    if any(each.get("name") for each in spec.get("imagePullSecrets") or ()):
        return True
    for field, _ in (*_POD_CONTAINERS, *_EPHEMERAL):
        for container in spec.get(field) or ():
            if any(name for name, _ in _container_secrets(container)):
                return True
    return any(_volume_secret(volume) for volume in spec.get("volumes") or ())


def _volume_secret(volume: Manifest) -> bool:
    for kind, field in _SECRET_FIELDS.items():
        if kind in volume:
            named = volume[kind].get(field)
            return bool(named.get("name") if isinstance(named, dict) else named)
    sources = volume.get("projected", {}).get("sources") or ()
    return any(source["secret"].get("name") for source in sources if "secret" in source)


def _container_secrets(container: Manifest) -> Iterator[tuple[str, str]]:
    """The secrets of a container's environment, each with its variable, or empty for a whole secret."""
    for variable in container.get("env") or ():
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        if reference is not None:
            yield reference.get("name", ""), variable.get("name", "")
    for source in container.get("envFrom") or ():
        if "secretRef" in source:
            yield source["secretRef"].get("name", ""), ""


def _containers_problem(
    spec: Manifest, fields: tuple[tuple[str, str], ...], allowed: set[str | None], owner: str
) -> str:
    for field, what in fields:
        for container in spec.get(field) or ():
            for name, variable in _container_secrets(container):
                if name in allowed:
                    continue
                where = f"envVar {variable}" if variable else "envFrom"
                reference = f"referencing secret.secretName={quoted(name)}"
                return f"{what} {container['name']} with {where} {reference} {_because(owner)} secret"
    return ""


def _because(owner: str) -> str:
    return f"is not allowed because service account {owner} does not reference that"
