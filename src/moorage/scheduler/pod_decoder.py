"""Decoding of pods from watch events.

A pod arrives at least twice: when it is created, and when it is bound. Its spec is the same both times but
for the node, and often the same as that of other pods. So the bytes of a spec are looked up before they are
decoded: equal specs are one object, which saves memory and makes later comparisons cheap.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import msgspec

from moorage.api.base import ObjectMeta
from moorage.api.coscheduling import POD_GROUP_LABEL, in_group
from moorage.api.decode import convert, decode_hook
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.client.watch_events import Head, ObjectDecoder

_MAX_KEPT_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of the encoded specs that are kept; the least recently used are dropped."""
_MAX_KEPT_SPECS: Final = 1024
"""Maximum number of specs of members of groups that are kept."""
_NODE_NAME: Final = b'"nodeName":"'


class _PodHead(msgspec.Struct, gc=False):
    """A pod whose spec is not decoded."""

    metadata: ObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodStatus = PodStatus()


class _NodeName(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


_read_head = msgspec.json.Decoder(_PodHead, dec_hook=decode_hook).decode
_read_spec = msgspec.json.Decoder(PodSpec, dec_hook=decode_hook).decode
_read_node_name = msgspec.json.Decoder(_NodeName).decode


class PodDecoder(ObjectDecoder[Pod]):
    """Decodes pods; equal specs are decoded once."""

    def __init__(self) -> None:
        self._specs: OrderedDict[bytes, PodSpec] = OrderedDict()
        self._kept_bytes = 0

    def head(self, raw: bytes | msgspec.Raw) -> Head:
        """The pod without its spec; only its metadata, where something has an unexpected type."""
        try:
            return _read_head(raw)
        except msgspec.ValidationError:
            return super().head(raw)

    def decode(self, head: Head, raw: bytes) -> Pod:
        """The pod."""
        if isinstance(head, _PodHead):
            try:
                return Pod(
                    api_version="v1",
                    kind="Pod",
                    metadata=head.metadata,
                    spec=self._spec(bytes(head.spec)),
                    status=head.status,
                )
            except msgspec.ValidationError:
                pass
        # Unexpected nulls: rare, and handled by the slow path.
        return convert(msgspec.json.decode(raw), Pod)

    def _spec(self, encoded: bytes) -> PodSpec:
        if _NODE_NAME in encoded:
            name = _read_node_name(encoded).node_name
            field = b'%b%b",' % (_NODE_NAME, name.encode())
            # Once: otherwise a node selector may have the same key and value.
            if name and encoded.count(field) == 1:
                spec = self._shared_spec(encoded.replace(field, b""))
                return msgspec.structs.replace(spec, node_name=name)
        return self._shared_spec(encoded)

    def _shared_spec(self, encoded: bytes) -> PodSpec:
        spec = self._specs.get(encoded)
        if spec is not None:
            self._specs.move_to_end(encoded)
            return spec
        spec = self._specs[encoded] = _read_spec(encoded)
        self._kept_bytes += len(encoded)
        while self._kept_bytes > _MAX_KEPT_BYTES:
            dropped, _ = self._specs.popitem(last=False)
            self._kept_bytes -= len(dropped)
        return spec


class LabelledPodDecoder(PodDecoder):
    """Decodes pods whose groups are named by a label; equal specs of a group are one object."""

    def __init__(self) -> None:
        super().__init__()
        self._members: dict[tuple[int, str], tuple[PodSpec, PodSpec]] = {}
        """Specs as sent and with their groups, by the identity of the first and the name of the group."""

    def decode(self, head: Head, raw: bytes) -> Pod:
        """The pod, as a member of its group."""
        pod = super().decode(head, raw)
        name = pod.labels.get(POD_GROUP_LABEL, "")
        if not name and pod.spec.scheduling_group is None:
            return pod
        return msgspec.structs.replace(pod, spec=self._member(pod.spec, name))

    def _member(self, spec: PodSpec, group: str) -> PodSpec:
        known = self._members.get((id(spec), group))
        if known is None:
            if len(self._members) >= _MAX_KEPT_SPECS:
                self._members.clear()
            known = self._members[id(spec), group] = (spec, in_group(spec, group))
        return known[1]
