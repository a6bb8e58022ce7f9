"""Pods and nodes that keep the bytes they were decoded from, for extenders, which get whole objects.

API objects contain only the fields that scheduling reads. Where an object must be forwarded as the API server
sent it, it is decoded as one of these kinds; that costs the memory of the object's text.
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
"""A name that no field of an object has: the bytes are not decoded from a field."""
_MANAGED: Final = b'"managedFields"'
_BOUND: Final = b'"nodeName"'
_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode


class PodAsSent(Pod):
    """A pod, and the bytes it was decoded from."""

    as_sent: bytes = msgspec.field(default=b"", name=_NO_FIELD)


class NodeAsSent(Node):
    """A node, and the bytes it was decoded from."""

    as_sent: bytes = msgspec.field(default=b"", name=_NO_FIELD)


KEEPING: Final[dict[type[Object], type[Object]]] = {Pod: PodAsSent, Node: NodeAsSent}
"""The kinds that can keep the bytes of their objects, and the kinds that do."""


def keep(obj: T, raw: bytes) -> T:
    """A new object of a kind that keeps its bytes, with these bytes, without managed fields."""
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
    """An object without its managed fields, which only the API server uses."""
    if _MANAGED not in raw:
        return raw
    fields = _decode(raw)
    metadata = _decode(fields.get("metadata", msgspec.Raw(b"{}")))
    if metadata.pop("managedFields", None) is None:
        return raw
    return _encode({**fields, "metadata": metadata})


def whole(obj: Pod | Node) -> bytes:
    """The whole object as JSON; if its bytes were not kept, the fields that scheduling reads."""
    if not isinstance(obj, PodAsSent | NodeAsSent):
        return _encode(msgspec.to_builtins(obj, enc_hook=_encoded))
    if isinstance(obj, PodAsSent) and obj.spec.node_name and _BOUND not in obj.as_sent:
        # It is assumed on a node, and the API server has not confirmed the binding yet.
        fields = _decode(obj.as_sent)
        spec = {**_decode(fields["spec"]), "nodeName": obj.spec.node_name}
        return _encode({**fields, "spec": spec})
    return obj.as_sent


def _encoded(value: Any) -> Any:
    if isinstance(value, Quantity):
        return format_quantity(value)
    raise NotImplementedError(type(value))
