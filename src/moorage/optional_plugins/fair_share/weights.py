"""The weights of owners: from the arguments, else from an annotation of their namespace, else the default."""

from __future__ import annotations

import logging
from typing import Final

from moorage import Handle, Namespace
from moorage.optional_plugins.fair_share.arguments import FairShareArgs, parsed_weight

ANNOTATION: Final = "moorage.io/fair-share-weight"

log = logging.getLogger("moorage.fair_share")


class Weights:
    """The weight of each owner. Annotations count where namespaces are the owners."""

    def __init__(self, args: FairShareArgs, handle: Handle) -> None:
        self._args = args
        self._namespaces = None if args.owner_label else handle.objects.of(Namespace)
        self._version = -1
        self._annotated: dict[str, float] = {}

    def have_changed(self) -> bool:
        """Whether weights may have changed since the last call."""
        table = self._namespaces
        if table is None or table.version == self._version:
            return False
        self._version = table.version
        former, self._annotated = self._annotated, {}
        for namespace in table:
            text = namespace.metadata.annotations.get(ANNOTATION)
            if text is not None:
                self._read(namespace.name, text)
        return former != self._annotated

    def _read(self, owner: str, text: str) -> None:
        try:
            self._annotated[owner] = parsed_weight(text)
        except ValueError as error:
            log.warning("Namespace %s: its annotation %s does not count: %s", owner, ANNOTATION, error)

    def of(self, owner: str) -> float:
        """The weight of an owner."""
        weight = self._args.weights.get(owner)
        return self._annotated.get(owner, self._args.default_weight) if weight is None else weight
