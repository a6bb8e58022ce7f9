"""What clusters are made of: manifests from text, files or Python, and the content of a live cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located, load_documents, load_manifests, unfolded
from moorage.api.manifests import Manifest
from moorage.api.node import Node
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access
from moorage.client.kinds import PRIORITY_CLASS, Kind
from moorage.client.server_version import server_version
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.explain.cluster_reader import left_out_texts, read_cluster
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.scheduler.watched_kinds import WATCHED_BY_DEFAULT_PLUGINS
from moorage.sim.admission import Admission

Source: TypeAlias = str | Path | Manifest | Sequence[Manifest]
"""Manifests: text, a file, one, or several."""

_ADMISSION_KINDS: Final = (
    PRIORITY_CLASS,
    Kind("", "v1", "LimitRange", "limitranges"),
    Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False),
)
"""What an API server's admission of new pods reads, and scheduling does not."""


class ClusterContent(NamedTuple):
    """The objects of a cluster."""

    objects: Sequence[Object]
    manifests: Sequence[Located] = ()
    """Those that the admission of new pods reads, as they were written."""
    notes: Sequence[str] = ()
    """What is missing, one line each."""
    version: KubernetesVersion | None = None
    """That of the API server, if there is one."""


def is_text(source: object) -> bool:
    """Whether a source is YAML or JSON itself, not the name of a file."""
    return isinstance(source, str) and ("\n" in source or source.lstrip()[:1] in ("{", "["))


def manifests_of(source: Source, where: str = "") -> list[Located]:
    """The manifests of a source, lists unfolded; InputError if they cannot be read."""
    if isinstance(source, Mapping):
        return unfolded([source], where)
    if isinstance(source, str) and is_text(source):
        return unfolded(load_documents(source, where or "text"), where)
    if isinstance(source, str | Path):
        return load_manifests(Path(source))
    return unfolded(source, where)


def content_of(manifests: Iterable[Located]) -> ClusterContent:
    """The content of manifests; InputError if there are no nodes."""
    manifests = list(manifests)
    objects = Admission(manifests).objects(manifests)
    if not any(isinstance(each, Node) for each in objects):
        raise InputError(manifests[0][1] if manifests else "", "there are no nodes in it")
    return ClusterContent(objects, manifests)


async def content_of_server(access: Access) -> ClusterContent:
    """The content of a live cluster, which is only read; InputError if that is not possible."""
    try:
        async with connected(access, user_agent="moorage-research") as client:
            version = await server_version(client)
            content = await read_cluster(client, WATCHED_BY_DEFAULT_PLUGINS)
            manifests = await asyncio.gather(*(_listed(client, kind) for kind in _ADMISSION_KINDS))
    except ConnectionFailed as error:
        raise InputError("", f"the API server does not answer: {error}") from None
    except RequestError as error:
        raise InputError("", f"the API server at {access.endpoint.url} fails: {error.message}") from None
    located = [each for some in manifests for each in some]
    return ClusterContent(content.objects, located, left_out_texts(content.forbidden), version)


async def _listed(client: Client, kind: Kind) -> list[Located]:
    """The objects of a kind; none if it may not be read."""
    try:
        items = await client.list(kind)
    except RequestError as error:
        if error.code in (HTTPStatus.FORBIDDEN, HTTPStatus.NOT_FOUND):
            return []
        raise
    named = {"apiVersion": kind.api_version, "kind": kind.name}
    return [({**named, **item}, f"{kind.name} of the cluster") for item in items]
