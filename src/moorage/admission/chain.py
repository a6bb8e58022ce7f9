"""The admission chain: every write passes the plugins that handle it, in a fixed order, and no others."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.admission.attributes import Admit, Attributes, Reader
from moorage.admission.plugin import Call, Plugin


class Chain:
    """Plugins in order."""

    def __init__(self, plugins: Iterable[Plugin]) -> None:
        self.plugins = tuple(plugins)
        # Custom resources come and go, so the plugins for a kind of write are looked up when it first occurs.
        self._steps: dict[tuple[str, str, str], tuple[Admit, ...]] = {}

    def admit(self, attributes: Attributes, reader: Reader) -> None:
        """Let all plugins that handle a write change or reject it."""
        key = (attributes.operation, attributes.resource.storage, attributes.subresource)
        steps = self._steps.get(key)
        if steps is None:
            steps = self._steps[key] = self._concerned(
                Call(attributes.operation, attributes.resource.storage, attributes.subresource)
            )
        for step in steps:
            step(attributes, reader)

    def _concerned(self, call: Call) -> tuple[Admit, ...]:
        return tuple(
            plugin.admit for plugin in self.plugins if any(each.covers(call) for each in plugin.handles)
        )
