"""The documents of the page's API: plain data, described in docs/reference/page-api.md.

Fields are only added within a version. Amounts are whole units as in scheduling: cpu in milli-CPU, memory
in bytes, all others in their own unit. Times are seconds: since 1970 for clusters, since the start for
simulations; in recordings, numbers of steps.
"""

from __future__ import annotations

from typing import Final

from moorage.api.base import Struct
from moorage.client.scheduler_api import QueueEntry

API_VERSION: Final = "moorage.io/v1"


class NodeState(Struct):
    """A node, as far as the page shows it."""

    labels: dict[str, str] = {}
    allocatable: dict[str, int] = {}
    taints: tuple[str, ...] = ()
    """`key=value:effect`."""
    conditions: tuple[str, ...] = ()
    """Types of conditions that are a problem: pressures that are true, and `NotReady`."""
    unschedulable: bool = False
    created: float = 0.0


class PodState(Struct):
    """A pod, as far as the page shows it."""

    node: str = ""
    """Empty while it is pending."""
    requests: dict[str, int] = {}
    priority: int = 0
    phase: str = ""
    scheduler: str = ""
    reason: str = ""
    """Reason of the condition PodScheduled while it is pending: `Unschedulable`, `SchedulingGated`."""
    message: str = ""
    nominated_node: str = ""
    group: str = ""
    """The PodGroup that it belongs to."""
    labels: dict[str, str] = {}
    deleting: bool = False
    created: float = 0.0
    uid: str = ""


class Changes(Struct, omit_defaults=False):
    """What has changed up to a revision; None: it is gone. Pods are keyed `namespace/name`."""

    revision: int
    time: float
    nodes: dict[str, NodeState | None] = {}
    pods: dict[str, PodState | None] = {}


class ClusterState(Struct, omit_defaults=False):
    """All nodes and pods at a revision."""

    revision: int
    time: float
    nodes: dict[str, NodeState]
    pods: dict[str, PodState]


class History(Struct, omit_defaults=False):
    """A state, and all changes since then, oldest first."""

    base: ClusterState
    changes: tuple[Changes, ...]


class SourceInfo(Struct, omit_defaults=False):
    """What the page shows, and what can be asked of it."""

    kind: str
    """`cluster`, `recording`, `simulation` or `shadow`."""
    title: str
    live: bool
    """Whether more changes may come."""
    features: tuple[str, ...]
    """What there are documents for: `queue`, `attempts`, `explain`, `what-if`, `health`, `history`, `compare`
    and `comparisons`."""
    version: str
    """moorage's version."""
    problems: tuple[str, ...] = ()
    """What cannot be read at the moment, one line each."""


class Queue(Struct, omit_defaults=False):
    """The pods without a node."""

    from_scheduler: bool
    """Whether a scheduler told its queue; otherwise the entries are what the conditions of pods say."""
    problem: str = ""
    """Why the scheduler did not."""
    items: tuple[QueueEntry, ...] = ()
