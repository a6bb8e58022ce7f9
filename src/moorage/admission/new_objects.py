"""What creating any object without a server needs: its resource, its creator, strict decoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.admission.attributes import Attributes
from moorage.admission.cluster_objects import json_copy
from moorage.admission.users import MASTERS, User
from moorage.api.manifests import Manifest
from moorage.apimachinery.schema.builtin import BuiltinSchema
from moorage.apimachinery.schema.decoding import cannot_be_handled, decode_kind
from moorage.apimachinery.schema.strictness import NO_PROBLEMS

_CREATOR: Final = User("kubernetes-admin", (MASTERS,))


@dataclass(frozen=True, slots=True)
class NewResource:
    """The resource that namespaced objects of a kind are written to."""

    group: str
    plural: str
    namespaced: bool = True
    is_custom: bool = False

    @property
    def storage(self) -> str:
        """The collection with its objects."""
        return f"{self.group}/{self.plural}"


def creation(resource: NewResource, obj: Manifest) -> Attributes:
    """The request that creates an object."""
    meta = obj["metadata"]
    return Attributes("CREATE", resource, "", meta["namespace"], meta["name"], obj, None, _CREATOR)


def decode_new(manifest: Manifest, schema: BuiltinSchema) -> Manifest:
    """An object without unknown fields, with values of the right types; ApiError (400) otherwise."""
    api_version = f"{schema.group}/{schema.version}".lstrip("/")
    obj, unknown = decode_kind(json_copy(manifest), api_version, schema.kind, schema)
    if unknown:
        raise cannot_be_handled(schema.kind, schema.version, NO_PROBLEMS.strict_error(unknown))
    return obj
