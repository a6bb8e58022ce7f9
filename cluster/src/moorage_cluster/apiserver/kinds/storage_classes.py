"""StorageClasses and VolumeAttributesClasses: types of storage, and mutable attributes of volumes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.persistent_volumes import WAIT_FOR_FIRST_CONSUMER
from moorage.apimachinery.fields import FieldError, duplicate, forbidden, invalid, required, too_long
from moorage.apimachinery.validation.checks import check_optional_word, check_unchanged, repetitions
from moorage.apimachinery.validation.names import check_qualified_name
from moorage_cluster.apiserver.strategy import Strategy

_RECLAIM_POLICIES: Final = ("Delete", "Retain")
_BINDING_MODES: Final = ("Immediate", WAIT_FOR_FIRST_CONSUMER)
_MAX_PARAMETERS: Final = 512
_MAX_PARAMETER_BYTES: Final = 256 * 1024


class StorageClassStrategy(Strategy):
    """A StorageClass."""

    def default(self, obj: Manifest) -> None:
        """Volumes are deleted with their claims, and bound immediately."""
        obj.setdefault("reclaimPolicy", "Delete")
        obj.setdefault("volumeBindingMode", "Immediate")

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The provisioner is required; parameters, policies and topologies are valid."""
        errors = _check_provisioner(obj.get("provisioner", ""), "provisioner")
        errors += _check_parameters(obj.get("parameters") or {})
        policy, mode = obj.get("reclaimPolicy"), obj.get("volumeBindingMode")
        if policy:
            errors += check_optional_word(policy, _RECLAIM_POLICIES, "reclaimPolicy")
        errors += check_optional_word(mode, _BINDING_MODES, "volumeBindingMode")
        return errors + _check_topologies(obj.get("allowedTopologies") or ())

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """All fields that volumes are provisioned with are immutable."""
        errors = self.validate(obj)
        for key in ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"):
            errors += check_unchanged(obj.get(key), old.get(key), key)
        return errors


class VolumeAttributesClassStrategy(Strategy):
    """A VolumeAttributesClass."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The driver's name and at least one parameter are required."""
        errors = _check_provisioner(obj.get("driverName", ""), "driverName")
        parameters = obj.get("parameters") or {}
        errors += _check_parameters(parameters)
        if not parameters:
            errors.append(required("parameters", "must contain at least one key/value pair"))
        return errors

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The driver's name and the parameters are immutable."""
        errors = [
            forbidden(key, f"updates to {key} are forbidden.")
            for key in ("driverName", "parameters")
            if obj.get(key) != old.get(key)
        ]
        return errors + self.validate(obj)


def _check_provisioner(name: str, path: str) -> list[FieldError]:
    return check_qualified_name(name.lower(), path) if name else [required(path)]


def _check_parameters(parameters: dict[str, str]) -> list[FieldError]:
    if len(parameters) > _MAX_PARAMETERS:
        return [too_long("parameters", _MAX_PARAMETERS)]
    errors = [invalid("parameters", "", "field can not be empty.")] if "" in parameters else []
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > _MAX_PARAMETER_BYTES:
        errors.append(too_long("parameters", _MAX_PARAMETER_BYTES))
    return errors


def _check_topologies(topologies: Sequence[Manifest]) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[frozenset[tuple[str, frozenset[str]]]] = set()
    for index, term in enumerate(topologies):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        wanted: dict[str, frozenset[str]] = {}
        for place, expression in enumerate(term.get("matchLabelExpressions") or ()):
            here, key = f"{path}[{place}]", expression.get("key", "")
            errors += _check_values(expression.get("values") or [], f"{here}.values")
            errors += check_qualified_name(key, f"{here}.key")
            if key in wanted:
                errors.append(duplicate(f"{here}.key", key))
            wanted[key] = frozenset(expression.get("values") or ())
        requirements = frozenset(wanted.items())
        if requirements in seen:
            errors.append(duplicate(path, ""))
        seen.add(requirements)
    return errors


def _check_values(values: Sequence[str], path: str) -> list[FieldError]:
    if not values:
        return [required(path)]
    return [duplicate(f"{path}[{index}]", values[index]) for index in repetitions(values)]
