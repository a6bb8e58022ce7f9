"""The resources of a definition: one for each of its served versions."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from moorage.api.manifests import Manifest
from moorage.api.names import qualified_name_problems
from moorage.api.text import quoted
from moorage.apimachinery.fields import FieldError, invalid
from moorage_cluster.apiserver.extensions.conversion import CustomConversion
from moorage_cluster.apiserver.extensions.scale import scale_problems
from moorage_cluster.apiserver.extensions.structural import CustomSchema
from moorage_cluster.apiserver.resources import STATUS_VERBS, APIResource, Subresource
from moorage_cluster.apiserver.strategy import Strategy
from moorage_cluster.apiserver.tables.base import NAME_AND_AGE
from moorage_cluster.apiserver.tables.custom import columns_of_custom

_STANDARD_FINALIZERS: Final = ("orphan", "foregroundDeletion", "kubernetes")
_VERSION: Final = re.compile(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_STABILITY: Final = {"alpha": 1, "beta": 2, None: 3}


@dataclass(frozen=True, slots=True, eq=False)
class CustomResource(APIResource):
    """A version of a custom kind."""

    named_list_kind: str = ""

    @property
    def list_kind(self) -> str:
        """The kind of a list of these, which a definition may choose."""
        return self.named_list_kind


class CustomStrategy(Strategy):
    """The strategy of a custom kind, by its schema and subresources."""

    has_generation = True
    allows_unconditional_update = False

    def __init__(
        self,
        schema: CustomSchema,
        api_version: str,
        kind: str,
        version: Manifest,
        versions: Sequence[Manifest],
    ) -> None:
        subresources = version.get("subresources") or {}
        self.has_status = subresources.get("status") is not None
        self._schema = schema
        self._api_version = api_version
        self._kind = kind
        self._scale: Manifest | None = subresources.get("scale")
        self._own_selectable = _selectable_names([version])
        self._selectable = {name: name.split(".") for name in _selectable_names(versions)}

    def default(self, obj: Manifest) -> None:
        """The schema's defaults."""
        self._schema.apply_defaults(obj)

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep the status if it is a subresource; otherwise its changes count for the generation."""
        super().prepare_update(obj, old)
        if not self.has_status and obj.get("status") != old.get("status"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Keep all but the status, metadata included."""
        managed = obj["metadata"].get("managedFields")
        super().prepare_status(obj, old)
        obj["metadata"] = dict(old["metadata"])
        if managed is not None:
            obj["metadata"]["managedFields"] = managed

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The errors of a new object, by the schema and the scale."""
        return self._type_problems(obj) or self._schema.validate(obj) + scale_problems(obj, self._scale)

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The errors of an update; an unchanged value that was invalid before is allowed."""
        return self._type_problems(obj) or (
            self._schema.validate(obj, old) + scale_problems(obj, self._scale)
        )

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The errors of a status."""
        return self._type_problems(obj) or (
            self._schema.validate_status(obj, old) + scale_problems(obj, self._scale, status_only=True)
        )

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warnings about finalizers that may clash with others."""
        finalizers = obj["metadata"].get("finalizers") or ()
        before = old["metadata"].get("finalizers") or () if old else ()
        return [
            text
            for finalizer in sorted(set(finalizers) - set(before))
            for text in _finalizer_warnings(finalizer)
        ]

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """The selectable fields of the definition; empty where an object has none.

        Those of all versions: one stored object is what all of them select from.
        """
        return {name: _text_at(obj, steps) for name, steps in self._selectable.items()}

    def selectable_names(self) -> Collection[str]:
        """The selectable fields of this version."""
        return self._own_selectable

    def _type_problems(self, obj: Manifest) -> list[FieldError]:
        found = []
        if obj.get("kind") != self._kind:
            found.append(invalid("kind", obj.get("kind", ""), f"must be {self._kind}"))
        if obj.get("apiVersion") != self._api_version:
            found.append(invalid("apiVersion", obj.get("apiVersion", ""), f"must be {self._api_version}"))
        return found


def resources_of(crd: Manifest) -> list[APIResource]:
    """The resources that an accepted definition serves; all versions share one collection."""
    schemas = _schemas(crd)
    return [_resource(crd, version, schemas) for version in crd["spec"]["versions"] if version.get("served")]


def stored_resource_of(crd: Manifest) -> APIResource:
    """The resource of the version in which objects are stored, whether it is served or not."""
    stored = next(version for version in crd["spec"]["versions"] if version.get("storage"))
    return _resource(crd, stored, _schemas(crd))


def _schemas(crd: Manifest) -> dict[str, CustomSchema]:
    """The schemas of all versions by their apiVersion."""
    return {
        f"{crd['spec']['group']}/{version['name']}": CustomSchema(
            (version.get("schema") or {}).get("openAPIV3Schema") or {}
        )
        for version in crd["spec"]["versions"]
    }


def deprecation_warning(crd: Manifest, version: str) -> str:
    """The warning for clients of a deprecated version; empty: none."""
    spec = crd["spec"]
    group, kind = spec["group"], spec["names"]["kind"]
    chosen: Manifest = next((each for each in spec["versions"] if each.get("name") == version), {})
    if not chosen.get("deprecated"):
        return ""
    if chosen.get("deprecationWarning") is not None:
        return str(chosen["deprecationWarning"])
    text = f"{group}/{version} {kind} is deprecated"
    better = [
        each["name"]
        for each in spec["versions"]
        if each.get("served") and not each.get("deprecated") and _age(each["name"]) > _age(version)
    ]
    return f"{text}; use {group}/{max(better, key=_age)} {kind}" if better else text


def _resource(crd: Manifest, version: Manifest, schemas: Mapping[str, CustomSchema]) -> CustomResource:
    spec = crd["spec"]
    names = (crd.get("status") or {}).get("acceptedNames") or {}
    if not names.get("plural"):
        names = spec["names"]
    group = spec["group"]
    api_version = f"{group}/{version['name']}"
    schema = schemas[api_version]
    columns: list[dict[str, Any]] = version.get("additionalPrinterColumns") or []
    return CustomResource(
        group=group,
        version=version["name"],
        kind=names["kind"],
        plural=names["plural"],
        namespaced=spec.get("scope") == "Namespaced",
        strategy=CustomStrategy(schema, api_version, names["kind"], version, spec["versions"]),
        schema=schema,
        printer=columns_of_custom(columns) if columns else NAME_AND_AGE,
        deprecation=deprecation_warning(crd, version["name"]),
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        singular=names.get("singular") or "",
        subresources=_subresources(version, names["kind"]),
        conversion=_conversion(spec, schemas, api_version),
        is_custom=True,
        named_list_kind=names.get("listKind") or f"{names['kind']}List",
    )


def _conversion(
    spec: Manifest, schemas: Mapping[str, CustomSchema], api_version: str
) -> CustomConversion | None:
    """The conversion of a version; objects with webhook conversion are stored as written."""
    if (spec.get("conversion") or {}).get("strategy") == "Webhook":
        return None
    storage = next(version["name"] for version in spec["versions"] if version.get("storage"))
    return CustomConversion(schemas, api_version, f"{spec['group']}/{storage}")


def _selectable_names(versions: Iterable[Manifest]) -> list[str]:
    return [
        each["jsonPath"].removeprefix(".")
        for version in versions
        for each in version.get("selectableFields") or ()
    ]


def _subresources(version: Manifest, kind: str) -> tuple[Subresource, ...]:
    declared = version.get("subresources") or {}
    served = []
    if declared.get("status") is not None:
        served.append(Subresource("status", kind, STATUS_VERBS))
    if declared.get("scale") is not None:
        served.append(Subresource("scale", "Scale", STATUS_VERBS, group="autoscaling", version="v1"))
    return tuple(served)


def _text_at(obj: Manifest, steps: list[str]) -> str:
    value: Any = obj
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _finalizer_warnings(finalizer: str) -> list[str]:
    path = f"metadata.finalizers: {quoted(finalizer)}"
    found = [f"{path}: {problem}" for problem in qualified_name_problems(finalizer)]
    if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        path_too = " including a path (/)" if "." in finalizer else ""
        found.append(
            f"{path}: prefer a domain-qualified finalizer name{path_too} to avoid accidental conflicts with "
            "other finalizer writers"
        )
    return found


def _age(version: str) -> tuple[int, int, int]:
    """Sorts versions from experimental to stable, and from old to new."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (0, 0, 0)
    return (_STABILITY[match[2]], int(match[1]), int(match[3] or 0))
