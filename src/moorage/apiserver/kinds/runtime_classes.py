"""RuntimeClasses: ways to run containers, what they cost and where they work."""

from __future__ import annotations

from collections.abc import Sequence

from moorage.api.manifests import Manifest
from moorage.apiserver.fields import FieldError, duplicate, invalid, required
from moorage.apiserver.kinds.checks import check_unchanged, unsupported
from moorage.apiserver.kinds.names import check_label, check_qualified_name, value_problems
from moorage.apiserver.kinds.nodes import check_effect
from moorage.apiserver.kinds.resource_names import check_amount, container_resource_problems
from moorage.apiserver.kinds.selectors import check_labels
from moorage.apiserver.strategy import Strategy

_OPERATORS = ("Equal", "Exists")


class RuntimeClassStrategy(Strategy):
    """A RuntimeClass."""

    allows_create_on_update = True
    allows_unconditional_update = False

    def validate(self, obj: Manifest) -> list[FieldError]:
        """There is a handler, and pods can be sent where it works."""
        handler = obj.get("handler", "")
        errors = check_label(handler, "handler") if handler else [required("handler")]
        for name, quantity in ((obj.get("overhead") or {}).get("podFixed") or {}).items():
            path = f"overhead.limits[{name}]"
            errors += [invalid(path, name, why) for why in container_resource_problems(name)]
            errors += check_amount(name, quantity, path)
        scheduling = obj.get("scheduling") or {}
        errors += check_labels(scheduling.get("nodeSelector") or {}, "scheduling.nodeSelector")
        return errors + check_tolerations(scheduling.get("tolerations") or (), "scheduling.tolerations")

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The handler stays."""
        return check_unchanged(obj.get("handler", ""), old.get("handler", ""), "handler")


def check_tolerations(tolerations: Sequence[Manifest], path: str) -> list[FieldError]:
    """Tolerations, each there once."""
    errors: list[FieldError] = []
    seen = set()
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        errors += _check_toleration(toleration, here)
        key = tuple(toleration.get(part, "") for part in ("key", "operator", "value", "effect"))
        if key in seen:
            errors.append(duplicate(here, toleration))
        seen.add(key)
    return errors


def _check_toleration(toleration: Manifest, path: str) -> list[FieldError]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    errors = check_qualified_name(key, f"{path}.key") if key else []
    if not key and operator != "Exists":
        why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(invalid(f"{path}.operator", operator, why))
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(invalid(f"{path}.effect", effect, why))
    if operator in ("Equal", ""):
        if problems := value_problems(value):
            errors.append(invalid(f"{path}.operator", value, ";".join(problems)))
    elif operator == "Exists":
        if value:
            why = "value must be empty when `operator` is 'Exists'"
            errors.append(invalid(f"{path}.operator", value, why))
    elif operator in ("Lt", "Gt"):
        errors.append(unsupported(f"{path}.operator", operator, ("Equal", "Exists", "Lt", "Gt")))
    else:
        errors.append(unsupported(f"{path}.operator", operator, _OPERATORS))
    return errors + (check_effect(effect, f"{path}.effect") if effect else [])
