"""Pods and nodes that keep the bytes they came as, for those who want whole objects: extenders.

Objects here hold only the fields that scheduling reads. Where somebody else is to be shown an object as the
API server sent it, it is decoded as one of these kinds; that costs as much memory as the object has text.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

import msgspec

from moorage.api.base import Object
from moorage.api.manifests import Manifest
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import Quantity, format_quantity

T = TypeVar("T", bound=Object)

_NO_FIELD: Final = "/as sent"
"""What no field of an object is called: the bytes are not read from the object itself."""
_MANAGED: Final = b'"managedFields"'
_BOUND: Final = b'"nodeName"'
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class PodAsSent(Pod):
    """A pod, and all of it as it came."""

    as_sent: bytes = msgspec.field(default=b"", name=_NO_FIELD)


class NodeAsSent(Node):
    """A node, and all of it as it came."""

    as_sent: bytes = msgspec.field(default=b"", name=_NO_FIELD)


KEEPING: Final[dict[type[Object], type[Object]]] = {Pod: PodAsSent, Node: NodeAsSent}
"""The kinds that can keep the bytes of their objects, and how they do."""


def keep(obj: T, raw: bytes) -> T:
    """A new object of a kind that keeps its bytes, with these, but for who manages which field."""
    msgspec.structs.force_setattr(obj, "as_sent", without_managers(raw))
    return obj


def kept(obj: Object, manifest: Manifest) -> Object:
    """An object with the manifest it was read from; of kinds that do not keep it, the object alone."""
    kind = KEEPING.get(type(obj))
    if kind is None:
        return obj
    given = {"name": obj.name, "namespace": obj.namespace} if obj.namespace else {"name": obj.name}
    raw = _encode({**manifest, "metadata": {**(manifest.get("metadata") or {}), **given}})
    fields = {field: getattr(obj, field) for field in obj.__struct_fields__}
    return keep(kind(**fields), raw)


def without_managers(raw: bytes) -> bytes:
    """An object without its managed fields, which are of no use to anybody but the API server."""
    if _MANAGED not in raw:
        return raw
    fields = _decode(raw)
    metadata = _decode(fields.get("metadata", msgspec.Raw(b"{}")))
    if metadata.pop("managedFields", None) is None:
        return raw
    return _encode({**fields, "metadata": metadata})


def whole(obj: Pod | Node) -> bytes:
    """All of an object as JSON; of one that was not kept, what scheduling reads of it."""
    if not isinstance(obj, PodAsSent | NodeAsSent):
        return _encode(msgspec.to_builtins(obj, enc_hook=_encoded))
    if isinstance(obj, PodAsSent) and obj.spec.node_name and _BOUND not in obj.as_sent:
        # It is on its way to a node, of which the API server has not told yet.
        fields = _decode(obj.as_sent)
        spec = {**_decode(fields["spec"]), "nodeName": obj.spec.node_name}
        return _encode({**fields, "spec": spec})
    return obj.as_sent


def _encoded(value: Any) -> Any:
    if isinstance(value, Quantity):
        return format_quantity(value)
    raise NotImplementedError(type(value))
