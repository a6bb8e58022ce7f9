"""PersistentVolumeClaims: requests for storage."""

from __future__ import annotations

from moorage.api.manifests import Manifest, annotations_of, child
from moorage.api.persistent_volumes import BETA_STORAGE_CLASS
from moorage.api.quantity import parse_quantity
from moorage.apimachinery.fields import FieldError, forbidden, invalid
from moorage.apimachinery.validation.checks import check_unchanged
from moorage.apimachinery.validation.claim_specs import check_claim_spec, storage_size
from moorage_cluster.apiserver.kinds.base import StatusStrategy

_SNAPSHOTS = "snapshot.storage.k8s.io"
_FIXED = (
    "spec is immutable after creation except resources.requests and "
    "volumeAttributesClassName for bound claims"
)


class PersistentVolumeClaimStrategy(StatusStrategy):
    """A PersistentVolumeClaim."""

    empty_status = {"phase": "Pending"}

    def default(self, obj: Manifest) -> None:
        """The volume mode is Filesystem, the phase Pending."""
        super().default(obj)
        default_claim(obj)

    def prepare_create(self, obj: Manifest) -> None:
        """Make the two fields for a data source equal."""
        super().prepare_create(obj)
        spec = obj["spec"]
        if "dataSourceRef" not in spec:
            _drop_unknown_source(spec)
        _align_sources(spec)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Make the two fields for a data source equal."""
        super().prepare_update(obj, old)
        spec, before = child(obj, "spec"), old.get("spec") or {}
        if not before.get("dataSource") and not before.get("dataSourceRef") and "dataSourceRef" not in spec:
            _drop_unknown_source(spec)
        _align_sources(spec)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the claim."""
        return check_claim_spec(obj.get("spec") or {}, "spec")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """A claim may be bound to a volume and expanded; nothing else may change."""
        return self.validate(obj) + _check_change(obj, old)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Amounts are not negative."""
        errors = []
        for part in ("capacity", "allocatedResources"):
            for name, quantity in (obj.get("status", {}).get(part) or {}).items():
                amount = parse_quantity(quantity).value
                if amount < 0:
                    why = "must be a valid resource quantity"
                    errors.append(invalid(f"status.{part}[{name}]", amount, why))
        return errors


def default_claim(claim: Manifest) -> None:
    """Set the defaults of a claim, or of a template for one."""
    child(claim, "spec").setdefault("volumeMode", "Filesystem")
    child(claim, "status").setdefault("phase", "Pending")


def _drop_unknown_source(spec: Manifest) -> None:
    """The older field supports only claims and snapshots, and other sources are dropped from it."""
    source = spec.get("dataSource")
    if source is None:
        return
    group, kind = source.get("apiGroup", ""), source.get("kind", "")
    if (group, kind) not in (("", "PersistentVolumeClaim"), (_SNAPSHOTS, "VolumeSnapshot")):
        del spec["dataSource"]


def _align_sources(spec: Manifest) -> None:
    if "dataSource" in spec and "dataSourceRef" not in spec:
        spec["dataSourceRef"] = dict(spec["dataSource"])
    elif "dataSourceRef" in spec and "dataSource" not in spec and not spec["dataSourceRef"].get("namespace"):
        reference = spec["dataSourceRef"]
        spec["dataSource"] = {key: reference[key] for key in ("apiGroup", "kind", "name") if key in reference}


def _check_change(obj: Manifest, old: Manifest) -> list[FieldError]:
    spec, before = obj["spec"], old.get("spec") or {}
    bound = (old.get("status") or {}).get("phase") == "Bound"
    ignored = set()
    if not before.get("volumeName"):
        ignored.add("volumeName")
    if "storageClassName" not in before and not annotations_of(old).get(BETA_STORAGE_CLASS):
        ignored.add("storageClassName")  # a default class that was created later may still be filled in
    if bound:
        ignored |= {"volumeAttributesClassName", "resources"}
    changed = any(spec.get(key) != before.get(key) for key in (spec.keys() | before.keys()) - ignored)
    if bound and _without_size(spec) != _without_size(before):
        changed = True
    errors = [forbidden("spec", _FIXED)] if changed else []
    errors += _check_size(spec, before, old)
    errors += check_unchanged(spec.get("volumeMode"), before.get("volumeMode"), "volumeMode")
    return errors + _check_attributes_class(spec, before, old)


def _without_size(spec: Manifest) -> Manifest:
    resources = dict(spec.get("resources") or {})
    resources["requests"] = {
        name: quantity for name, quantity in (resources.get("requests") or {}).items() if name != "storage"
    }
    return resources


def _check_size(spec: Manifest, before: Manifest, old: Manifest) -> list[FieldError]:
    wanted, had = parse_quantity(storage_size(spec) or "0"), parse_quantity(storage_size(before) or "0")
    is_there = parse_quantity(((old.get("status") or {}).get("capacity") or {}).get("storage", "0"))
    if wanted < had and wanted <= is_there:
        why = "field can not be less than status.capacity"
        return [forbidden("spec.resources.requests.storage", why)]
    return []


def _check_attributes_class(spec: Manifest, before: Manifest, old: Manifest) -> list[FieldError]:
    wanted = spec.get("volumeAttributesClassName")
    if wanted == before.get("volumeAttributesClassName"):
        return []
    if "currentVolumeAttributesClassName" not in (old.get("status") or {}) or wanted:
        return []
    nothing = "nil" if wanted is None else "empty string"
    why = f"update to {nothing} is forbidden when status.currentVolumeAttributesClassName is not nil"
    return [forbidden("spec.volumeAttributesClassName", why)]
