"""Eviction rates by zone: reduced when much of a zone is down, since the zone itself may have failed.

Each zone gets one node at once and then as many per second as its state allows. When no node of any zone is
ready, the control plane itself may be disconnected, and no node is tainted for eviction.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from moorage.api.conditions import condition_status
from moorage.api.labels import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.api.manifests import Manifest, labels_of
from moorage_cluster.controllers.node_conditions import READY

EVICTIONS_PER_SECOND: Final = 0.1
SECONDARY_EVICTIONS_PER_SECOND: Final = 0.01
LARGE_ZONE: Final = 50
"""Largest size of a zone without evictions while it is partly down, in nodes."""
UNHEALTHY_FRACTION: Final = 0.55
_EXCLUDED: Final = "node.kubernetes.io/exclude-disruption"

Zone = tuple[str, str]


class ZoneState(Enum):
    """How many of a zone's nodes are down."""

    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


def zone_of(node: Manifest) -> Zone:
    """The region and zone that a node is in."""
    labels = labels_of(node)
    return labels.get(REGION) or labels.get(BETA_REGION, ""), labels.get(ZONE) or labels.get(BETA_ZONE, "")


class Zones:
    """Counts nodes by zone, and limits the rate of evictions."""

    def __init__(self) -> None:
        self._nodes: dict[str, tuple[Zone, bool]] = {}
        self._ready: dict[Zone, int] = {}
        self._down: dict[Zone, int] = {}
        self._next_at: dict[Zone, float] = {}

    def put(self, node: Manifest) -> None:
        """Add or update a node."""
        name = node["metadata"]["name"]
        self.remove(name)
        if _EXCLUDED in labels_of(node):
            return
        zone, is_ready = zone_of(node), condition_status(node, READY) == "True"
        counts = self._ready if is_ready else self._down
        counts[zone] = counts.get(zone, 0) + 1
        self._nodes[name] = (zone, is_ready)

    def remove(self, name: str) -> None:
        """Remove a node."""
        zone, was_ready = self._nodes.pop(name, (None, False))
        if zone is not None:
            (self._ready if was_ready else self._down)[zone] -= 1

    def state(self, zone: Zone) -> ZoneState:
        """The state of a zone."""
        ready, down = self._ready.get(zone, 0), self._down.get(zone, 0)
        if down and not ready:
            return ZoneState.FULL_DISRUPTION
        if down > 2 and down / (down + ready) >= UNHEALTHY_FRACTION:
            return ZoneState.PARTIAL_DISRUPTION
        return ZoneState.NORMAL

    @property
    def all_disrupted(self) -> bool:
        """Whether no node at all is ready, so that the control plane may be disconnected."""
        return any(self._down.values()) and not any(self._ready.values())

    def rate(self, zone: Zone) -> float:
        """Number of nodes of a zone from which pods may be evicted, per second."""
        if self.all_disrupted:
            return 0.0
        if self.state(zone) is not ZoneState.PARTIAL_DISRUPTION:
            return EVICTIONS_PER_SECOND
        size = self._ready.get(zone, 0) + self._down.get(zone, 0)
        return SECONDARY_EVICTIONS_PER_SECOND if size > LARGE_ZONE else 0.0

    def take_turn(self, zone: Zone, now_seconds: float) -> float | None:
        """Take one node of a zone's rate: 0 if taken, else seconds to wait; None while the rate is zero."""
        rate = self.rate(zone)
        if not rate:
            return None
        wait = self._next_at.get(zone, now_seconds) - now_seconds
        if wait > 0:
            return wait
        self._next_at[zone] = now_seconds + 1 / rate
        return 0.0
