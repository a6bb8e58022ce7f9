"""Validation of taints and tolerations in any object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.api.manifests import Manifest
from moorage.api.names import label_value_problems, qualified_name_problems
from moorage.apimachinery.fields import FieldError, Problem, complaints, invalid, not_supported
from moorage.apimachinery.validation.checks import check_one_of
from moorage.apimachinery.validation.names import check_qualified_name

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
"""The effects of taints, in Kubernetes' order."""


def check_taints(taints: Sequence[Manifest], path: str) -> list[FieldError]:
    """Taints: valid keys, values and effects, each pair of key and effect once."""
    errors: list[FieldError] = []
    seen = set()
    for index, taint in enumerate(taints):
        here = f"{path}[{index}]"
        key, value, effect = taint.get("key", ""), taint.get("value", ""), taint.get("effect", "")
        errors += check_qualified_name(key, f"{here}.key")
        if problems := label_value_problems(value):
            errors.append(invalid(f"{here}.value", value, ";".join(problems)))
        errors += check_one_of(effect, EFFECTS, f"{here}.effect")
        if (key, effect) in seen:
            why = "taints must be unique by key and effect pair"
            errors.append(FieldError(Problem.DUPLICATE, here, taint, why))
        seen.add((key, effect))
    return errors


def check_tolerations(tolerations: Sequence[Manifest], path: str) -> list[FieldError]:
    """Tolerations: their fields are valid and consistent."""
    errors: list[FieldError] = []
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator = toleration.get("key", ""), toleration.get("operator", "")
        value, effect = toleration.get("value", ""), toleration.get("effect", "")
        if key:
            if problems := qualified_name_problems(key):
                errors += complaints(f"{here}.key", key, problems)
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            errors.append(invalid(f"{here}.operator", operator, why))
        if "tolerationSeconds" in toleration and effect != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            errors.append(invalid(f"{here}.effect", effect, why))
        if operator in ("Equal", ""):
            if problems := label_value_problems(value):
                errors.append(invalid(f"{here}.operator", value, ";".join(problems)))
        elif operator == "Exists":
            if value:
                why = "value must be empty when `operator` is 'Exists'"
                errors.append(invalid(f"{here}.operator", value, why))
        elif operator in ("Lt", "Gt"):
            errors.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
        else:
            errors.append(not_supported(f"{here}.operator", operator, ("Equal", "Exists")))
        if effect and effect not in EFFECTS:
            errors.append(not_supported(f"{here}.effect", effect, EFFECTS))
    return errors
