"""The objects of a cluster that scheduling depends on, read once from an API server."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import defstruct

from moorage.api.base import Object
from moorage.api.decode import KINDS, InputError, decode_hook
from moorage.api.pod import Pod
from moorage.client.client import Client
from moorage.client.kinds import NODE, POD, Kind
from moorage.client.permissions import Permission
from moorage.client.watch_events import read_page
from moorage.http.errors import RequestError
from moorage.scheduler.informers import UNFINISHED_PODS, decoder


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
            raise InputError("", forbidden_text(POD, "get", error.message)) from None
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
            raise InputError("", forbidden_text(kind, "list", error.message)) from None
        content.forbidden.append(kind)


async def _list(client: Client, kind: Kind) -> list[Object]:
    query: Mapping[str, str | int] = UNFINISHED_PODS if kind is POD else {}
    stream = await client.stream(kind.path(), query)
    body = b"".join([piece async for piece in stream])
    decoded = KINDS[kind.name]
    page: Any = defstruct("Page", [("items", list[decoded] | None, None)])  # type: ignore[valid-type]
    try:
        # All at once: half the time of one by one.
        return msgspec.json.decode(body, type=page, dec_hook=decode_hook).items or []
    except msgspec.MsgspecError:
        # Unexpected nulls: rare, and handled by the slow path.
        return [decoder(decoded)(bytes(raw)) for raw in read_page(body).items or ()]


def forbidden_text(kind: Kind, verb: str, message: str = "") -> str:
    """One line that says what is not permitted, and which rule of a role permits it."""
    rule = f'{{apiGroups: ["{kind.group}"], resources: ["{kind.plural}"], verbs: ["{verb}"]}}'
    resource = f"{kind.plural}.{kind.group}" if kind.group else kind.plural
    why = f" ({message})" if message else ""
    return f"no permission to {verb} {resource}{why}; add to a ClusterRole: {rule}"
