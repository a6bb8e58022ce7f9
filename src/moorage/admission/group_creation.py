"""Creating a PodGroup or a CompositePodGroup without a server: decoding, defaults and priority."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.admission.attributes import Attributes, Reader
from moorage.admission.chain import Chain
from moorage.admission.cluster_objects import json_copy
from moorage.admission.plugins.priority import group_plugin
from moorage.admission.users import MASTERS, User
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.errors import bad_request
from moorage.apimachinery.schema.builtin import schema_of
from moorage.apimachinery.schema.decoding import cannot_be_handled, decode_kind
from moorage.apimachinery.schema.strictness import NO_PROBLEMS

_API_GROUP: Final = "scheduling.k8s.io"
_VERSIONS: Final = {"PodGroup": "v1beta1", "CompositePodGroup": "v1alpha3"}
"""The versions of manifests that name none."""
_CREATOR: Final = User("kubernetes-admin", (MASTERS,))


@dataclass(frozen=True, slots=True)
class _GroupResource:
    """The resource that groups of a kind are written to."""

    plural: str
    group: str = _API_GROUP
    namespaced: bool = True
    is_custom: bool = False

    @property
    def storage(self) -> str:
        """The collection with its objects."""
        return f"{self.group}/{self.plural}"


class GroupCreation:
    """Processes new groups as a server with some objects does.

    preemption_policies: whether groups have a preemption policy.
    """

    def __init__(self, objects: Reader, *, preemption_policies: bool) -> None:
        self._chain = Chain((group_plugin(preemption_policies=preemption_policies),))
        self._objects = objects
        self._preemption_policies = preemption_policies

    def created(self, group: Manifest) -> Manifest:
        """A group as it would be stored, but for the metadata and the status that a server sets; ApiError if
        it would be rejected.
        """
        obj = _decoded(group)
        spec, meta = child(obj, "spec"), obj["metadata"]
        if self._preemption_policies:
            spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
        resource = _GroupResource(f"{group['kind'].lower()}s")
        attributes = Attributes("CREATE", resource, "", meta["namespace"], meta["name"], obj, None, _CREATOR)
        self._chain.admit(attributes, self._objects)
        return obj


def _decoded(group: Manifest) -> Manifest:
    """A group without unknown fields, with values of the right types; ApiError (400) otherwise."""
    kind = group["kind"]
    api_version = group.get("apiVersion") or f"{_API_GROUP}/{_VERSIONS[kind]}"
    version = api_version.rpartition("/")[2]
    schema = schema_of(_API_GROUP, version, kind)
    if schema is None:
        raise bad_request(f'no matches for kind "{kind}" in version "{api_version}"')
    obj, unknown = decode_kind(json_copy(group), api_version, kind, schema)
    if unknown:
        raise cannot_be_handled(kind, version, NO_PROBLEMS.strict_error(unknown))
    return obj
