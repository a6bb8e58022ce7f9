"""What a kind adds to the generic verbs: defaults, what clients may not set, validation, selectable fields.

The verbs (`rest`) call a strategy in this order.

- create: `default`, admission, `prepare_create`, `validate`
- update: `default`, admission, `prepare_update`, `validate_update`
- update of the status: `default`, `prepare_status`, `validate_status`
- first deletion: admission, `prepare_delete`

Objects arrive decoded: unknown fields pruned, types right, nulls gone, quantities in canonical form. They are
the caller's own copies and are changed in place; `old` is what is stored and must not be changed. Metadata
(names, labels, annotations, finalizers, owner references) is checked by the verbs for every kind.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from moorage.api.manifests import Manifest, take
from moorage.api.names import dns_subdomain_problems
from moorage_cluster.apiserver.fields import FieldError


class Strategy:
    """A kind with nothing special; kinds with something special override what they need."""

    has_status = False
    """Whether there is a status that only the status subresource may write."""
    has_generation = False
    """Whether `metadata.generation` counts the changes of all but metadata and status."""
    allows_create_on_update = False
    """Whether a PUT makes an object that is not there."""
    allows_unconditional_update = True
    """Whether an update may leave out the resourceVersion."""
    orphans_dependents = False
    """Whether a deletion without a propagation policy leaves dependents behind."""
    is_marked_before_deletion = False
    """Whether the first DELETE only marks objects: preconditions that fail are told in words of their own."""
    deletion_warning = ""
    """What to tell clients that delete without a propagation policy; empty: nothing."""

    def name_problems(self, name: str) -> tuple[str, ...]:
        """What is wrong with a name of this kind."""
        return dns_subdomain_problems(name)

    def default(self, obj: Manifest) -> None:
        """Fill in what was left out. Called for every write, also of subresources; must be idempotent."""

    def prepare_create(self, obj: Manifest) -> None:
        """Drop what clients may not set."""
        if self.has_status:
            obj.pop("status", None)
        if self.has_generation:
            obj["metadata"]["generation"] = 1

    def prepare_update(self, obj: Manifest, old: Manifest) -> None:
        """Keep what an ordinary update may not change."""
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
        """Note on an object that its deletion begins, beyond what all objects show of it."""

    def validate(self, obj: Manifest) -> list[FieldError]:
        """What is wrong with a new object."""
        return []

    def validate_update(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """What is wrong with an update of `old` to `obj`."""
        return self.validate(obj)

    def validate_status(self, obj: Manifest, old: Manifest) -> list[FieldError]:
        """What is wrong with an update of the status."""
        return []

    def warnings(self, obj: Manifest, old: Manifest | None) -> list[str]:
        """What to tell the client although all is accepted."""
        return []

    def selectable(self, obj: Manifest) -> dict[str, str]:
        """The fields of the stored form that field selectors know, beyond metadata.name and .namespace.

        The same keys for every object of the kind.
        """
        return {}

    def selectable_names(self) -> Collection[str]:
        """The fields that a selector may name; one with another is refused."""
        return self.selectable({"metadata": {}}).keys()

    def grace_seconds(self, obj: Manifest, wanted: int | None) -> int:
        """How long a deletion waits before the object goes; 0: it goes at once. `wanted` is the client's."""
        return 0
