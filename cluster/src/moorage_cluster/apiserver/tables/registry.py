"""Which table shows which kind."""

from __future__ import annotations

from typing import Final

from moorage_cluster.apiserver.tables import (
    autoscaling,
    certificates,
    cluster,
    core,
    events,
    extensions,
    networking,
    nodes,
    scheduling,
    storage,
    workloads,
)
from moorage_cluster.apiserver.tables.base import NAME_AND_AGE, Printer
from moorage_cluster.apiserver.tables.pods import PODS

_PRINTERS: Final[dict[tuple[str, str], Printer]] = {
    ("", "Pod"): PODS,
    **core.PRINTERS,
    **events.PRINTERS,
    **nodes.PRINTERS,
    **workloads.PRINTERS,
    **autoscaling.PRINTERS,
    **networking.PRINTERS,
    **extensions.PRINTERS,
    **scheduling.PRINTERS,
    **storage.PRINTERS,
    **cluster.PRINTERS,
    **certificates.PRINTERS,
}


def printer_for(group: str, kind: str) -> Printer:
    """The table of a built-in kind; a kind without one shows name and age."""
    return _PRINTERS.get((group, kind), NAME_AND_AGE)
