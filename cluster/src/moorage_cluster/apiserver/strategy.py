"""What a kind adds to the generic verbs: defaulting, read-only fields, validation, selectable fields.

The verbs (`rest`) call a strategy in this order.

- create: `default`, admission, `prepare_create`, `validate`
- update: `default`, admission, `prepare_update`, `validate_update`
- update of the status: `default`, `prepare_status`, `validate_status`
- first deletion: admission, `prepare_delete`

Objects arrive decoded: unknown fields and nulls pruned, types valid, quantities in canonical form. They are
private copies and are changed in place; `old` is what is stored and must not be changed. Metadata
(names, labels, annotations, finalizers, owner references) is checked by the verbs for every kind.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from moorage.api.manifests import Manifest, take
from moorage.api.names import dns_subdomain_problems
from moorage.apimachinery.fields import FieldError


class Strategy:
    """The default strategy; kinds override what they need."""

    has_status = False
    """Whether there is a status that only the status subresource may write."""
    has_generation = False
    """Whether `metadata.generation` counts the changes of all but metadata and status."""
    allows_create_on_update = False
    """Whether a PUT creates a missing object."""
    allows_unconditional_update = True
    """Whether an update may leave out the resourceVersion."""
    orphans_dependents = False
    """Whether a delete without a propagation policy orphans dependents."""
    is_marked_before_deletion = False
    """Whether the first DELETE only marks objects: failed preconditions have a message of their own."""
    deletion_warning = ""
    """The warning for deletes without a propagation policy; empty: none."""

    def name_problems(self, name: str) -> tuple[str, ...]:
        """The errors of a name of this kind."""
        return dns_subdomain_problems(name)

    def default(self, obj: Manifest) -> None:
        """Set defaults. Called for every write, also of subresources; must be idempotent."""

    def prepare_create(self, obj: Manifest) -> None:
        """Drop fields that clients may not set."""
        if self.has_status:
            obj.pop("status", None)
        if self.has_generation:
            obj["metadata"]["generation"] = 1

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep fields that an ordinary update may not change."""
        if self.has_status:
            take(obj, old, "status")
        if self.has_generation:
            changed = any(
                obj.get(key) != old.get(key)
                for key in (obj.keys() | old.keys()) - {"metadata", "status", "apiVersion", "kind"}
            )
            before = old["metadata"].get("generation", 0)
            obj["metadata"]["generation"] = before + 1 if changed else before

    def prepare_status(self, obj: Manifest, old: Manifest) -> None:
        """Keep all but the status (and what metadata a status writer may change)."""
        for key in (obj.keys() | old.keys()) - {"metadata", "status"}:
            take(obj, old, key)
        if self.has_generation:
            obj["metadata"]["generation"] = old["metadata"].get("generation", 0)

    def prepare_delete(self, obj: Manifest, now: datetime) -> None:
        """Mark an object at the start of its deletion, beyond the generic metadata."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """The errors of a new object."""
        return []

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The errors of an update of `old` to `obj`."""
        return self.validate(obj)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """The errors of an update of the status."""
        return []

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """Warnings about an accepted object."""
        return []

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """The selectable fields of the stored form, beyond metadata.name and .namespace.

        The same keys for every object of the kind.
        """
        return {}

    def selectable_names(self) -> Collection[str]:
        """The fields that a selector may use; others are rejected."""
        return self.selectable({"metadata": {}}).keys()

    def grace_seconds(self, obj: Manifest, wanted: int | None) -> int:
        """The grace period of a deletion, in seconds; 0: immediate. `wanted` is the client's."""
        return 0
