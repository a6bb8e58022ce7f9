"""The objects of a cluster that scheduling depends on, read once from an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.kinds import NODE, POD, Kind
from moorage.client.permissions import Permission
from moorage.client.watch_events import read_page
from moorage.explain.pod_list import PodListReader
from moorage.http.errors import RequestError
from moorage.scheduler.informers import UNFINISHED_PODS, decoder, decoder_of

_PAGE_PODS: Final = 5000
"""Number of pods in a page of a list."""


def needed_permissions(kinds: Iterable[Kind]) -> list[Permission]:
    """What may be read of a cluster in which pods are explained; kinds: beside nodes and pods."""
    listed = (Permission.on(kind, "list") for kind in (NODE, *kinds))
    return [*Permission.on(POD, "get", "list"), *(each for some in listed for each in some)]


@dataclass(slots=True)
class ClusterContent:
    """What was read of a cluster."""

    objects: list[Object] = field(default_factory=list)
    forbidden: list[Kind] = field(default_factory=list)
    """The kinds that may not be listed."""


async def read_pod(client: Client, namespace: str, name: str) -> Pod:
    """A pod; InputError if it cannot be read."""
    try:
        answer = await client.exchange("GET", POD.path(namespace, name))
    except RequestError as error:
        if error.is_not_found:
            raise InputError("", f"there is no pod {name} in namespace {namespace}") from None
        if error.code == HTTPStatus.FORBIDDEN:
            raise InputError("", forbidden_text([POD], "get", error.message)) from None
        raise InputError("", f"cannot read pod {namespace}/{name}: {error.message}") from None
    pod = decoder(Pod)(answer)
    assert isinstance(pod, Pod)
    return pod


async def read_cluster(client: Client, kinds: Iterable[Kind]) -> ClusterContent:
    """All nodes, all pods that have not ended, and all objects of some other kinds.

    Kinds that the server does not have are left out, as are those that may not be listed; without nodes there
    is nothing to explain: InputError.
    """
    content = ClusterContent()
    await asyncio.gather(*(_read_kind(client, kind, content) for kind in (NODE, *kinds, POD)))
    return content


async def _read_kind(client: Client, kind: Kind, content: ClusterContent) -> None:
    try:
        content.objects.extend(await _list(client, kind))
    except RequestError as error:
        if error.is_not_found:
            return
        if error.code != HTTPStatus.FORBIDDEN:
            raise InputError("", f"cannot list {kind.plural}: {error.message}") from None
        if kind is NODE:
            raise InputError("", forbidden_text([kind], "list", error.message)) from None
        content.forbidden.append(kind)


async def _list(client: Client, kind: Kind) -> Sequence[Object]:
    if kind is POD:
        return await _list_pods(client)
    decode = decoder_of(kind)
    body = await client.exchange("GET", kind.path())
    return [decode(bytes(raw)) for raw in read_page(body).items or ()]


async def _list_pods(client: Client) -> list[Pod]:
    """All pods that have not ended, in pages: the server makes the next one while one is decoded."""
    reader, pods = PodListReader(), list[Pod]()
    query: dict[str, str | int] = {**UNFINISHED_PODS, "limit": _PAGE_PODS}
    asked = asyncio.ensure_future(client.exchange("GET", POD.path(), query))
    while True:
        try:
            page = reader.page(await asked)
        except RequestError as error:
            if not error.is_expired or "continue" not in query:
                raise
            # The continue token has expired: list everything in one request.
            pods.clear()
            query = dict(UNFINISHED_PODS)
            asked = asyncio.ensure_future(client.exchange("GET", POD.path(), query))
            continue
        if page.metadata.continue_:
            query = {**query, "continue": page.metadata.continue_}
            asked = asyncio.ensure_future(client.exchange("GET", POD.path(), query))
            await asyncio.sleep(0)  # The request is sent before the page is decoded.
        pods.extend(reader.pods(page))
        if not page.metadata.continue_:
            return pods


def forbidden_text(kinds: Sequence[Kind], verb: str, message: str = "") -> str:
    """One line that says what is not permitted, and which rule of a role permits it; kinds: of one group."""
    group, plurals = kinds[0].group, sorted(kind.plural for kind in kinds)
    names = ", ".join(f"{plural}.{group}" if group else plural for plural in plurals)
    listed = ", ".join(f'"{plural}"' for plural in plurals)
    why = f" ({message})" if message else ""
    rule = f'{{apiGroups: ["{group}"], resources: [{listed}], verbs: ["{verb}"]}}'
    return f"no permission to {verb} {names}{why}; add to a ClusterRole: {rule}"


def left_out_texts(forbidden: Iterable[Kind], result: str = "explained without them") -> list[str]:
    """A line for each API group with kinds that may not be listed, and what follows from that."""
    by_group: dict[str, list[Kind]] = {}
    for kind in sorted(forbidden, key=lambda kind: kind.group):
        by_group.setdefault(kind.group, []).append(kind)
    return [f"{forbidden_text(kinds, 'list')}; {result}" for kinds in by_group.values()]
