"""Creating a PodGroup or a CompositePodGroup without a server: decoding, defaults, priority, validation."""

from __future__ import annotations

from typing import Final

from moorage.admission.attributes import Reader
from moorage.admission.chain import Chain
from moorage.admission.groups.validation import check_composite_pod_group, check_pod_group, default_group
from moorage.admission.new_objects import NewResource, creation, decode_new
from moorage.admission.plugins.priority import group_plugin
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.errors import bad_request, invalid
from moorage.apimachinery.schema.builtin import BuiltinSchema, schema_of
from moorage.apimachinery.validation.metadata import validate_metadata
from moorage.emulation.feature_gates import Features

_API_GROUP: Final = "scheduling.k8s.io"
_VERSIONS: Final = {"PodGroup": "v1beta1", "CompositePodGroup": "v1alpha3"}
"""The versions of manifests that name none."""
_CHECKS: Final = {"PodGroup": check_pod_group, "CompositePodGroup": check_composite_pod_group}


class GroupCreation:
    """Processes new groups as a server with some objects and feature gates does."""

    def __init__(self, objects: Reader, features: Features) -> None:
        self._has_policy = features.pod_group_preemption_policy
        self._chain = Chain((group_plugin(preemption_policies=self._has_policy),))
        self._objects = objects
        self._dropped = [
            field
            for field, is_kept in (
                ("schedulingConstraints", features.topology_aware_workload_scheduling),
                ("resourceClaims", features.dra_workload_resource_claims),
                ("preemptionPolicy", features.pod_group_preemption_policy),
                ("parentCompositePodGroupName", features.composite_pod_group),
            )
            if not is_kept
        ]

    def created(self, group: Manifest) -> Manifest:
        """A group with a name and a namespace as it would be stored, but for the metadata and the status
        that a server sets; ApiError if it would be rejected. Fields of features that are off are not
        validated: a server would drop them, and the scheduler does not read them.
        """
        kind = group["kind"]
        obj = decode_new(group, _schema(group))
        spec = child(obj, "spec")
        default_group(spec, has_policy=self._has_policy)
        self._chain.admit(creation(NewResource(_API_GROUP, f"{kind.lower()}s"), obj), self._objects)
        served = {field: value for field, value in spec.items() if field not in self._dropped}
        if problems := validate_metadata(obj["metadata"]) + _CHECKS[kind](served, None):
            raise invalid(_API_GROUP, kind, obj["metadata"]["name"], problems)
        return obj


def _schema(group: Manifest) -> BuiltinSchema:
    kind = group["kind"]
    api_version = group.get("apiVersion") or f"{_API_GROUP}/{_VERSIONS[kind]}"
    schema = schema_of(_API_GROUP, api_version.rpartition("/")[2], kind)
    if schema is None:
        raise bad_request(f'no matches for kind "{kind}" in version "{api_version}"')
    return schema
