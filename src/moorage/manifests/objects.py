"""Metadata that all objects of an installation share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.api.manifests import Manifest
from moorage.manifests.installation import Installation

RBAC: Final = "rbac.authorization.k8s.io"
_PROGRAM: Final = "moorage"


def selector(installation: Installation) -> dict[str, str]:
    """The labels that select an installation's pods."""
    return {"app.kubernetes.io/name": _PROGRAM, "app.kubernetes.io/instance": installation.name}


def labels(installation: Installation) -> dict[str, str]:
    """The labels of all objects of an installation."""
    return {**selector(installation), "app.kubernetes.io/component": "scheduler"}


def new_object(
    api_version: str, kind: str, name: str, namespace: str, installation: Installation, **fields: object
) -> Manifest:
    """An object of an installation; cluster-scoped without a namespace."""
    metadata: Manifest = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    metadata["labels"] = labels(installation)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}


def account(name: str, namespace: str) -> Mapping[str, str]:
    """A service account as a binding names it."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def role(kind: str, name: str) -> Mapping[str, str]:
    """A role as a binding names it."""
    return {"apiGroup": RBAC, "kind": kind, "name": name}
