"""Pods of a list, for an explanation: tens of thousands of them, once.

Most pods are copies of a few templates. Of each template the spec is decoded once, and its copies share what
is computed from it: requests, ports, affinity terms. The bytes of a spec are compared without what differs
between copies: the node, and the name of the volume with the service account's token.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Final, NamedTuple

import msgspec
from msgspec.structs import replace

from moorage.api.base import ObjectMeta
from moorage.api.decode import convert, decode_hook
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.api.resource_requests import resources_in_status
from moorage.client.watch_events import Page, PageMetadata, read_page
from moorage.cluster.pod_table import PodInfo

_NODE_NAME: Final = b'"nodeName":"'
_TOKEN_VOLUME: Final = b'"kube-api-access-'
"""How the name of a volume with a token begins; an API server adds five characters."""
_TOKEN_NAME_SIZE: Final = len(_TOKEN_VOLUME) + 6


class _ListedPod(msgspec.Struct, gc=False):
    """A pod whose spec is not decoded."""

    metadata: ObjectMeta
    spec: msgspec.Raw = msgspec.Raw(b"{}")
    status: PodStatus = PodStatus()


class PodPage(msgspec.Struct, gc=False):
    """A list of pods, or a page of one."""

    items: list[_ListedPod] | None = None
    metadata: PageMetadata = msgspec.field(default_factory=PageMetadata)


class _NodeName(msgspec.Struct, rename="camel", gc=False):
    node_name: str = ""


_read_page: Final = msgspec.json.Decoder(PodPage, dec_hook=decode_hook).decode
_read_spec: Final = msgspec.json.Decoder(PodSpec, dec_hook=decode_hook).decode
_read_node_name: Final = msgspec.json.Decoder(_NodeName).decode
_encode: Final = msgspec.msgpack.Encoder(enc_hook=int).encode
"""Resources in a status as a key; quantities are integers."""


class PodListReader:
    """Decodes the pages of a list of pods, in two steps; the next page may be on its way in the second."""

    def __init__(self) -> None:
        self._specs: dict[_Template, PodSpec] = {}

    def page(self, body: bytes) -> PodPage | Page:
        """A page whose specs are not decoded; AnswerLost if it is none."""
        try:
            return _read_page(body)
        except msgspec.MsgspecError:
            # Unexpected nulls: rare, and handled by the slow path.
            return read_page(body)

    def pods(self, page: PodPage | Page) -> Iterator[Pod]:
        """The pods of a page; equal specs of all pages share their parts."""
        for each in page.items or ():
            if isinstance(each, _ListedPod):
                yield Pod(metadata=each.metadata, spec=self._spec(bytes(each.spec)), status=each.status)
            else:
                yield convert(msgspec.json.decode(each), Pod)

    def _spec(self, encoded: bytes) -> PodSpec:
        template, node_name = _template(encoded)
        spec = self._specs.get(template)
        if spec is None:
            if _read_node_name(encoded).node_name != node_name:
                # It is the key of a node selector.
                template, node_name = _Template(encoded, 0), ""
            spec = self._specs[template] = _decoded_spec(template.spec)
        return replace(spec, node_name=node_name) if node_name else spec


def _decoded_spec(encoded: bytes) -> PodSpec:
    try:
        return _read_spec(encoded)
    except msgspec.ValidationError:
        return convert(msgspec.json.decode(encoded), PodSpec)


class _Template(NamedTuple):
    """A spec without what differs between the pods of a template, and where the node was named in it."""

    spec: bytes
    node_name_start: int


def _template(spec: bytes) -> tuple[_Template, str]:
    """The template of a spec, and the node's name."""
    start = spec.find(_TOKEN_VOLUME)
    if start >= 0:
        name = spec[start : start + _TOKEN_NAME_SIZE]
        # Names of other volumes may matter: those of ephemeral volumes are part of the names of claims.
        if name.endswith(b'"') and b'"name":%b,"projected":{' % name in spec:
            spec = spec.replace(name, _TOKEN_VOLUME + b'"')
    start = spec.find(_NODE_NAME)
    if start >= 0:
        name_start = start + len(_NODE_NAME)
        end = spec.find(b'",', name_start)
        if end >= 0:
            return _Template(spec[:start] + spec[end + 2 :], start), spec[name_start:end].decode()
    return _Template(spec, start), ""


class PodInfos:
    """The infos of pods; those with equal values and the same parts of a spec share what is computed."""

    def __init__(self) -> None:
        self._known: dict[Hashable, PodInfo] = {}

    def of(self, pod: Pod) -> PodInfo:
        """The info of a pod."""
        spec, meta = pod.spec, pod.metadata
        key = (
            id(spec.containers),
            id(spec.init_containers),
            id(spec.affinity),
            id(spec.overhead),
            id(spec.resources),
            id(spec.volumes),
            meta.namespace,
            pod.terminating,
            tuple(meta.labels.items()),
            _resources_given(pod),
        )
        known = self._known.get(key)
        if known is None:
            # It keeps the parts alive, so that no other object has their identity.
            known = self._known[key] = PodInfo(pod)
            return known
        return known.renewed(pod)


def _resources_given(pod: Pod) -> bytes:
    """The resources that the kubelet reports for a pod, as a key; empty if there are none."""
    status = pod.status
    statuses = (*status.container_statuses, *status.init_container_statuses)
    if status.resources is None and all(each.resources is None for each in statuses):
        return b""
    return _encode(resources_in_status(pod))
