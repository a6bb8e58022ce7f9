"""PodGroups and CompositePodGroups of v1.37 (v1beta1, v1alpha3): pods that are scheduled together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.admission.groups.rules import check_claim_statuses
from moorage.admission.groups.validation import (
    check_composite_pod_group,
    check_pod_group,
    default_group,
)
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import FieldError, too_many
from moorage.apimachinery.validation.checks import check_conditions
from moorage_cluster.apiserver.kinds.base import StatusStrategy, keep_metadata
from moorage_cluster.apiserver.server_version import (
    COMPOSITE_POD_GROUP,
    DEFAULT_SERVED,
    DRA_WORKLOAD_RESOURCE_CLAIMS,
    POD_GROUP_PREEMPTION_POLICY,
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    ServerVersion,
)

MAX_CLAIM_STATUSES: Final = 4


def drop_disabled(
    new: Manifest, old: Manifest | None, gates: Sequence[tuple[str, str]], version: ServerVersion
) -> None:
    """Drop fields (by name and gate) whose feature gate is off, unless the object had them before."""
    for name, gate in gates:
        if not version.enabled(gate) and not (old and old.get(name)):
            new.pop(name, None)


POLICY_GATES: Final = (("preemptionPolicy", POD_GROUP_PREEMPTION_POLICY),)
TEMPLATE_GATES: Final = (
    ("schedulingConstraints", TOPOLOGY_AWARE_WORKLOAD_SCHEDULING),
    ("resourceClaims", DRA_WORKLOAD_RESOURCE_CLAIMS),
    *POLICY_GATES,
)
_GROUP_GATES: Final = (*TEMPLATE_GATES, ("parentCompositePodGroupName", COMPOSITE_POD_GROUP))


class _GroupStrategy(StatusStrategy):
    """What groups and composite groups have in common."""

    allows_unconditional_update = False
    gates: Sequence[tuple[str, str]] = ()

    def __init__(self, version: ServerVersion = DEFAULT_SERVED) -> None:
        self._version = version

    def default(self, obj: Manifest) -> None:
        """Single pods are disrupted, and groups preempt."""
        super().default(obj)
        default_group(obj["spec"], has_policy=self._version.enabled(POD_GROUP_PREEMPTION_POLICY))

    def prepare_create(self, obj: Manifest) -> None:
        """Drop fields of disabled features."""
        super().prepare_create(obj)
        drop_disabled(obj["spec"], None, self.gates, self._version)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Drop fields of disabled features."""
        super().prepare_update(obj, old)
        drop_disabled(obj["spec"], old.get("spec"), self.gates, self._version)

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Status updates do not change the metadata."""
        super().prepare_status(obj, old)
        keep_metadata(obj, old)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the spec."""
        return self._check(obj["spec"], None)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Only the minimum of a gang can change."""
        return self._check(obj["spec"], old.get("spec") or {})

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid."""
        return check_conditions((obj.get("status") or {}).get("conditions") or (), "status.conditions")

    def _check(self, spec: Manifest, old: Manifest | None) -> list[FieldError]:
        raise NotImplementedError


class PodGroupStrategy(_GroupStrategy):
    """A PodGroup."""

    gates = _GROUP_GATES

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Claims of the group are dropped without the feature."""
        super().prepare_status(obj, old)
        if not self._version.enabled(DRA_WORKLOAD_RESOURCE_CLAIMS) and not obj["spec"].get("resourceClaims"):
            child(obj, "status").pop("resourceClaimStatuses", None)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Conditions are valid, and claims are those of the spec."""
        claims = (obj.get("status") or {}).get("resourceClaimStatuses") or ()
        errors = super().validate_status(obj, old)
        if len(claims) > MAX_CLAIM_STATUSES:
            errors.append(too_many("status.resourceClaimStatuses", len(claims), MAX_CLAIM_STATUSES))
        return errors + check_claim_statuses(obj)

    def _check(self, spec: Manifest, old: Manifest | None) -> list[FieldError]:
        return check_pod_group(spec, old)


class CompositePodGroupStrategy(_GroupStrategy):
    """A CompositePodGroup: a group of groups."""

    gates = POLICY_GATES

    def _check(self, spec: Manifest, old: Manifest | None) -> list[FieldError]:
        return check_composite_pod_group(spec, old)
