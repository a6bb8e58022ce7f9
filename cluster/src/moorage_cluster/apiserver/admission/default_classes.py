"""Classes that are marked as the default of their kind."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.api.manifests import Manifest, annotations_of


def newest_default(classes: Iterable[Manifest], annotations: Iterable[str]) -> str | None:
    """The name of the class marked by one of the annotations: the newest, then the first by name."""
    newest: tuple[str, str] | None = None
    for each in classes:
        if not any(annotations_of(each).get(key) == "true" for key in annotations):
            continue
        created, name = each["metadata"].get("creationTimestamp", ""), each["metadata"]["name"]
        if newest is None or created > newest[0] or (created == newest[0] and name < newest[1]):
            newest = created, name
    return newest[1] if newest else None
