"""Templates of simulated nodes, and settings of their kubelets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from moorage.emulation.kubernetes_version import DEFAULT_VERSION

HARD_EVICTION: Final = (
    "memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%,"
    "imagefs.available<15%,imagefs.inodesFree<5%"
)
"""The kubelet's default hard eviction thresholds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTemplate:
    """The machine of any number of nodes; amounts are quantities such as `8` or `32Gi`."""

    cpu: str = "8"
    memory: str = "32Gi"
    pods: int = 110
    ephemeral_storage: str = "100Gi"
    resources: Mapping[str, str] = field(default_factory=dict)
    """Extended resources by name: `example.com/gpu`."""
    zones: int = 1
    """Number of zones that nodes are spread over, round robin."""
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    reserved: Mapping[str, str] = field(default_factory=lambda: {"cpu": "100m", "memory": "256Mi"})
    """Resources reserved for the system: pods get the rest, less what hard eviction keeps free."""
    name_prefix: str = "node"
    instance_type: str = "moorage.simulated"


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeletSettings:
    """Settings of all kubelets of a simulation; latencies vary by `jitter` around their value."""

    start_seconds: float = 1.0
    pull_seconds: float = 2.0
    """Additional start latency the first time a node needs an image, in seconds."""
    init_seconds: float = 1.0
    """Run time of init containers without a duration of their own, in seconds."""
    stop_seconds: float = 1.0
    jitter: float = 0.2
    lease_seconds: int = 40
    status_seconds: float = 300.0
    monitor_seconds: float = 10.0
    eviction_hard: str = HARD_EVICTION
    eviction_soft: str = ""
    eviction_soft_grace_period: str = ""
    eviction_minimum_reclaim: str = ""
    pressure_transition_seconds: float = 300.0
    eviction_max_pod_grace_seconds: int = 0
    """Longest grace period of evictions for a soft threshold, in seconds; negative: the pod's own."""
    max_pids: int = 32768
    cpu_share: float = 0.5
    memory_share: float = 0.8
    """Default usage of containers, as a fraction of their requests."""
    version: str = DEFAULT_VERSION.number
    """The kubelet's version."""
    normal_events: bool = True
    """Whether pods get the usual events (Pulled, Created, Started, Killing) beside warnings."""

    @property
    def renew_seconds(self) -> float:
        """Interval of lease renewals in seconds: a quarter of the lease's duration."""
        return self.lease_seconds / 4
