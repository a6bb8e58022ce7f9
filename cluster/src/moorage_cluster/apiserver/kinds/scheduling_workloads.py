"""Workloads of v1.37 (v1beta1, v1alpha3): trees of templates for pod groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from moorage.admission.groups.rules import (
    MAX_TEMPLATES,
    check_controller,
    check_name,
    check_union,
    check_unique,
)
from moorage.admission.groups.validation import (
    CLAIMS,
    CONSTRAINTS,
    PRIORITIES,
    Immutable,
    check_disruption_mode,
    check_fields,
    check_policy,
)
from moorage.api.manifests import Manifest, child
from moorage.apimachinery.fields import FieldError, duplicate, forbidden, invalid, too_many
from moorage_cluster.apiserver.kinds.scheduling_groups import POLICY_GATES, TEMPLATE_GATES, drop_disabled
from moorage_cluster.apiserver.server_version import COMPOSITE_POD_GROUP, DEFAULT_SERVED, ServerVersion
from moorage_cluster.apiserver.strategy import Strategy

_MAX_DEPTH: Final = 4
_GROUPS: Final = "podGroupTemplates"
_COMPOSITES: Final = "compositePodGroupTemplates"
_CONTROLLER: Final = Immutable("controllerRef", check_controller)
_MODE: Final = Immutable("disruptionMode", check_disruption_mode)


class WorkloadStrategy(Strategy):
    """A Workload."""

    allows_unconditional_update = False

    def __init__(self, version: ServerVersion = DEFAULT_SERVED) -> None:
        self._version = version

    def default(self, obj: Manifest) -> None:
        """Add an empty scheduling policy where it is missing."""
        for template in _templates(child(obj, "spec")):
            child(template, "schedulingPolicy")

    def prepare_create(self, obj: Manifest) -> None:
        """Drop fields of disabled features."""
        super().prepare_create(obj)
        self._drop_disabled(obj["spec"], {})

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Drop fields of disabled features."""
        super().prepare_update(obj, old)
        self._drop_disabled(obj["spec"], old.get("spec") or {})

    def _drop_disabled(self, spec: Manifest, old: Manifest) -> None:
        drop_disabled(spec, old, ((_COMPOSITES, COMPOSITE_POD_GROUP),), self._version)
        before = old.get(_GROUPS) or []
        for index, template in enumerate(spec.get(_GROUPS) or ()):
            had = before[index] if index < len(before) else None
            drop_disabled(template, had, TEMPLATE_GATES, self._version)
        composites = {template.get("name"): template for template in old.get(_COMPOSITES) or ()}
        for template in spec.get(_COMPOSITES) or ():
            had = composites.get(template.get("name")) or {}
            drop_disabled(template, had, POLICY_GATES, self._version)
            self._drop_disabled(template, had)

    def validate(self, obj: Manifest) -> list[FieldError]:
        """Validate the tree and each template."""
        return _check_tree(obj["spec"]) + _check_spec(obj["spec"], None)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """Only the minimum of a gang can change."""
        return _check_tree(obj["spec"]) + _check_spec(obj["spec"], old.get("spec") or {})


def _templates(spec: Manifest) -> Iterator[Manifest]:
    """All templates, composite ones before those within."""
    yield from spec.get(_GROUPS) or ()
    for template in spec.get(_COMPOSITES) or ():
        yield template
        yield from _templates(template)


def _check_spec(spec: Manifest, old: Manifest | None) -> list[FieldError]:
    errors: list[FieldError] = []
    if old is None or [bool(spec.get(key)) for key in (_GROUPS, _COMPOSITES)] != [
        bool(old.get(key)) for key in (_GROUPS, _COMPOSITES)
    ]:
        errors += check_union(spec, (_GROUPS, _COMPOSITES), "spec")
    errors += _CONTROLLER.errors(spec, old, "spec")
    errors += _check_items(spec, old, _GROUPS, _check_group, "spec")
    return errors + _check_items(spec, old, _COMPOSITES, _check_composite, "spec")


_Check = Callable[[Manifest, Manifest | None, str], list[FieldError]]


def _check_items(new: Manifest, old: Manifest | None, key: str, check: _Check, path: str) -> list[FieldError]:
    """Validation errors of a list of templates: none can be added or removed later."""
    items, here = new.get(key) or [], f"{path}.{key}"
    before = {item.get("name", ""): item for item in (old or {}).get(key) or ()}
    if items == list(before.values()) and old is not None:
        return []
    errors = [too_many(here, len(items), MAX_TEMPLATES)] if len(items) > MAX_TEMPLATES else []
    if old is not None:
        errors += _check_same_names(items, before, here)
    if errors or not items:
        return errors
    errors += check_unique(items, here)
    for index, item in enumerate(items):
        had = before.get(item.get("name", ""))
        if had is None or had != item:
            errors += check(item, had, f"{here}[{index}]")
    return errors


def _check_same_names(items: Sequence[Manifest], before: Manifest, path: str) -> list[FieldError]:
    names = [item.get("name", "") for item in items]
    added = [index for index, name in enumerate(names) if name not in before]
    errors = [forbidden(f"{path}[{index}]", "item may not be added") for index in added]
    return errors + [forbidden(path, "item may not be removed") for name in before if name not in set(names)]


def _check_group(template: Manifest, old: Manifest | None, path: str) -> list[FieldError]:
    errors = _check_head(template, old, "minCount", path)
    return errors + check_fields((CONSTRAINTS, CLAIMS, _MODE, *PRIORITIES), template, old, path)


def _check_composite(template: Manifest, old: Manifest | None, path: str) -> list[FieldError]:
    errors = _check_head(template, old, "minGroupCount", path)
    errors += check_fields((CONSTRAINTS, _MODE, *PRIORITIES), template, old, path)
    errors += _check_items(template, old, _GROUPS, _check_group, path)
    return errors + _check_items(template, old, _COMPOSITES, _check_composite, path)


def _check_head(template: Manifest, old: Manifest | None, minimum: str, path: str) -> list[FieldError]:
    errors = check_name(template.get("name", ""), f"{path}.name") if old is None else []
    before = None if old is None else old.get("schedulingPolicy") or {}
    return errors + check_policy(template["schedulingPolicy"], before, minimum, f"{path}.schedulingPolicy")


def _check_tree(spec: Manifest) -> list[FieldError]:
    """Unique names, at most four levels, one priority, and no composite template without others in it."""
    path = f"spec.{_COMPOSITES}"
    names = {template.get("name", "") for template in spec.get(_GROUPS) or ()}
    errors = _check_unique_names(spec, names, "spec")
    for index, template in enumerate(spec.get(_COMPOSITES) or ()):
        if _depth(template) >= _MAX_DEPTH:
            why = f"maximum template hierarchy depth is {_MAX_DEPTH}"
            errors.append(invalid(f"{path}[{index}]", template.get(_COMPOSITES), why))
    errors += _check_one_priority(spec)
    for index, template in enumerate(spec.get(_COMPOSITES) or ()):
        errors += _check_children(template, f"{path}[{index}]")
    return errors


def _check_unique_names(spec: Manifest, names: set[str], path: str) -> list[FieldError]:
    """Names are unique in the whole tree; repetitions in one list are found elsewhere. Adds to `names`."""
    errors = _check_new_names(spec, _COMPOSITES, names, path)
    for index, template in enumerate(spec.get(_COMPOSITES) or ()):
        here = f"{path}.{_COMPOSITES}[{index}]"
        errors += _check_new_names(template, _GROUPS, names, here)
        errors += _check_unique_names(template, names, here)
    return errors


def _check_new_names(spec: Manifest, key: str, names: set[str], path: str) -> list[FieldError]:
    given = [template.get("name", "") for template in spec.get(key) or ()]
    errors = [
        duplicate(f"{path}.{key}[{index}].name", name) for index, name in enumerate(given) if name in names
    ]
    names.update(given)
    return errors


def _depth(template: Manifest) -> int:
    return 1 + max((_depth(inner) for inner in template.get(_COMPOSITES) or ()), default=0)


def _priority(template: Manifest) -> tuple[str, Any]:
    return template.get("priorityClassName", ""), template.get("priority")


def _check_one_priority(spec: Manifest) -> list[FieldError]:
    if len({_priority(template) for template in spec.get(_GROUPS) or ()}) > 1:
        return [invalid("spec", None, "detected multiple priority configurations")]
    if len({_priority(template) for template in _templates(spec)}) > 1:
        why = "all priority and priorityClassName values must be identical, detected multiple values"
        return [invalid("spec", None, why)]
    return []


def _check_children(template: Manifest, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    if not template.get(_GROUPS) and not template.get(_COMPOSITES):
        why = "must have at least one child PodGroupTemplate or CompositePodGroupTemplate"
        errors.append(invalid(path, template.get("name", ""), why))
    for index, inner in enumerate(template.get(_COMPOSITES) or ()):
        errors += _check_children(inner, f"{path}.{_COMPOSITES}[{index}]")
    return errors
