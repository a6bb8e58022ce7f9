"""A live cluster as the start of a simulation: what scheduling needs of it, read once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final, NamedTuple

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import Access
from moorage.client.kinds import NAMESPACE, POD, PRIORITY_CLASS, Kind
from moorage.explain.cluster_reader import forbidden_text, left_out_texts, read_cluster
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.scheduler.watched_kinds import read_kinds
from moorage.sim.cluster import SimulatedCluster
from moorage.simulation.settings import Settings

_OF_ADMISSION: Final = (
    NAMESPACE,
    PRIORITY_CLASS,
    Kind("", "v1", "LimitRange", "limitranges"),
    Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", False),
)
"""The kinds that say what an API server makes of new pods."""
_WITHOUT: Final = "simulated without them"


class LiveCluster(NamedTuple):
    """What was read of a cluster."""

    objects: Sequence[Object]
    admission: Sequence[Located] = ()
    """Manifests of the objects that new pods depend on."""
    notes: Sequence[str] = ()
    """What may not be read, one line each."""


NO_LIVE: Final = LiveCluster(())


async def read_live(access: Access, settings: Settings, *, has_new_pods: bool) -> LiveCluster:
    """A cluster from an API server; InputError if it cannot be read.

    has_new_pods: whether pods from manifests are created in it.
    """
    try:
        async with connected(access, user_agent="moorage-simulate") as client:
            return await read_with(client, settings, has_new_pods=has_new_pods)
    except ConnectionFailed as error:
        raise InputError("", f"the API server does not answer: {error}") from None
    except RequestError as error:
        raise InputError("", f"the API server at {access.endpoint.url} fails: {error.message}") from None


async def read_with(client: Client, settings: Settings, *, has_new_pods: bool) -> LiveCluster:
    """The same with a client; also RequestError and ConnectionFailed."""
    profiles = SimulatedCluster((), settings.config, settings.registry, version=settings.version).profiles
    content = await read_cluster(client, read_kinds(profiles.values()))
    if POD in content.forbidden:
        raise InputError("", forbidden_text([POD], "list"))
    forbidden = list(content.forbidden)
    admission = await _listed(client, _OF_ADMISSION, forbidden) if has_new_pods else ()
    return LiveCluster(content.objects, admission, left_out_texts(dict.fromkeys(forbidden), _WITHOUT))


async def _listed(client: Client, kinds: Iterable[Kind], forbidden: list[Kind]) -> list[Located]:
    """All objects of some kinds; those that may not be listed are added to `forbidden`."""
    found: list[Located] = []
    for kind in kinds:
        try:
            items = await client.list(kind)
        except RequestError as error:
            if error.code != HTTPStatus.FORBIDDEN:
                raise
            forbidden.append(kind)
            continue
        named = {"apiVersion": kind.api_version, "kind": kind.name}
        found += ((named | item, kind.plural) for item in items)
    return found
