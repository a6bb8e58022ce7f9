"""Content negotiation: JSON objects, tables or partial metadata."""

from __future__ import annotations

from dataclasses import dataclass

from moorage.api.text_cache import cached_by_text
from moorage.apimachinery import errors

_OFFERED = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
# Clients that prefer protobuf or CBOR get JSON: they read the answer's content type.
_SUPPORTED_MEDIA_TYPES = {
    "application/json",
    "application/*",
    "*/*",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
}


@dataclass(frozen=True, slots=True)
class NegotiatedForm:
    """A form of answer."""

    transform: str = ""
    """`Table`, `PartialObjectMetadata`, `PartialObjectMetadataList`, a discovery kind, or empty."""
    group: str = ""
    version: str = ""


AS_IT_IS = NegotiatedForm()
_TRANSFORMS = {
    "Table": ("meta.k8s.io", ("v1", "v1beta1")),
    "PartialObjectMetadata": ("meta.k8s.io", ("v1", "v1beta1")),
    "PartialObjectMetadataList": ("meta.k8s.io", ("v1", "v1beta1")),
    "APIGroupDiscoveryList": ("apidiscovery.k8s.io", ("v2", "v2beta1")),
}


@cached_by_text(count=512)
def negotiate(accept: str, *, has_tables: bool = True) -> NegotiatedForm:
    """The first supported form in an Accept header; ApiError (406) if there is none."""
    if not accept:
        return AS_IT_IS
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _SUPPORTED_MEDIA_TYPES:
            continue
        values = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
        kind = values.get("as", "")
        if not kind:
            return AS_IT_IS
        if kind == "Table" and not has_tables:
            continue
        group, versions = _TRANSFORMS.get(kind, ("", ()))
        if values.get("g") == group and values.get("v") in versions:
            return NegotiatedForm(kind, group, values["v"])
    raise errors.not_acceptable(_OFFERED)
