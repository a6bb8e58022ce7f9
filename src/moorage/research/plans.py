"""Plans for a cluster, on paper: what fits, which nodes to have, drains, consolidation, failures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from moorage.api.base import Object
from moorage.api.decode import convert
from moorage.api.labels import ZONE
from moorage.api.pod import Pod
from moorage.planning.catalogue import Shape, read_catalogue
from moorage.planning.consolidation import Consolidation, plan_consolidation
from moorage.planning.drain import Drain, plan_drain
from moorage.planning.evictions import NOTHING_LOST, Permissions
from moorage.planning.failures import Failures, plan_failures
from moorage.planning.fit import Fit, plan_fit
from moorage.planning.node_set import NodeSet, plan_nodes
from moorage.research.frames import Row, Tabular
from moorage.research.own_thread import apart
from moorage.research.sources import Source
from moorage.simulation.settings import Settings

P = TypeVar("P", bound=msgspec.Struct)


@dataclass(frozen=True, slots=True)
class Plan(Tabular, Generic[P]):
    """A plan: `result` has the fields of `moorage plan -o json`."""

    result: P

    def tables(self) -> Mapping[str, Sequence[Row]]:
        """The lists of the result, and `summary`: all that is no list."""
        fields = msgspec.structs.asdict(self.result)
        lists = {name: value for name, value in fields.items() if isinstance(value, list)}
        summary = {name: msgspec.to_builtins(value) for name, value in fields.items() if name not in lists}
        return {"summary": [summary], **{name: [*map(_row, items)] for name, items in lists.items()}}


def _row(item: Any) -> Row:
    row = msgspec.to_builtins(item)
    return row if isinstance(row, dict) else {"value": row}


class Plans:
    """The plans for a cluster as it is now; nothing changes. See `Cluster.plan`."""

    def __init__(
        self, objects: Sequence[Object], settings: Settings, pods_of: Callable[[Source], list[Pod]]
    ) -> None:
        self._objects = objects
        self._settings = settings
        self._pods_of = pods_of

    def fit(self, pods: Source, max_rounds: int | None = None) -> Plan[Fit]:
        """How many more of these pods fit, where, and what runs out first."""
        wanted = self._pods_of(pods)
        return _planned(lambda: plan_fit(self._objects, wanted, self._settings, max_rounds))

    def nodes(
        self, catalogue: str | Path | Sequence[Shape | Mapping[str, Any]], pods: Source = ()
    ) -> Plan[NodeSet]:
        """The cheapest nodes of a catalogue for some pods, and for those that are pending."""
        new = self._pods_of(pods) if pods else []
        shapes = _shapes(catalogue)
        return _planned(lambda: plan_nodes(self._objects, new, shapes, self._settings))

    def drain(self, *nodes: str, permitted: Permissions = NOTHING_LOST) -> Plan[Drain]:
        """What becomes of the pods of some nodes if these are drained."""
        return _planned(lambda: plan_drain(self._objects, nodes, self._settings, permitted))

    def consolidation(self, permitted: Permissions = NOTHING_LOST) -> Plan[Consolidation]:
        """Which nodes could be emptied now, and the moves in an order that keeps disruption budgets."""
        return _planned(lambda: plan_consolidation(self._objects, self._settings, permitted))

    def failures(self, by: str = ZONE, *, recreates_bare: bool = False) -> Plan[Failures]:
        """What the failure of each zone leaves pending; by: another label of nodes, or `node`."""
        return _planned(
            lambda: plan_failures(self._objects, self._settings, by, recreates_bare=recreates_bare)
        )


def _planned(make: Callable[[], P]) -> Plan[P]:
    """A plan, made where no event loop runs: simulations verify some."""
    return Plan(apart(make))


def _shapes(catalogue: str | Path | Sequence[Shape | Mapping[str, Any]]) -> Sequence[Shape]:
    if isinstance(catalogue, str | Path):
        return read_catalogue(Path(catalogue))
    return [each if isinstance(each, Shape) else convert(each, Shape, "catalogue") for each in catalogue]
