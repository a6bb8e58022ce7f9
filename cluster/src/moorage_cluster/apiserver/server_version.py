"""The version of Kubernetes that a server emulates, and its feature gates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from moorage.apimachinery.schema.wire import WireFormat, wire_format
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion

GENERIC_WORKLOAD: Final = "GenericWorkload"
TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: Final = "TopologyAwareWorkloadScheduling"
POD_GROUP_PREEMPTION_POLICY: Final = "PodGroupPreemptionPolicy"
COMPOSITE_POD_GROUP: Final = "CompositePodGroup"
DRA_WORKLOAD_RESOURCE_CLAIMS: Final = "DRAWorkloadResourceClaims"
WORKLOAD_WITH_JOB: Final = "WorkloadWithJob"


@dataclass(frozen=True, slots=True)
class ServerVersion:
    """The version that a server emulates.

    In v1.36 the alpha API of pod groups is always served, with all its fields, and gates have no effect.
    Since v1.37 groups and the fields that refer to them need their feature gates.
    """

    minor: str
    gates: frozenset[str]
    """The feature gates that are on."""

    @classmethod
    def of(cls, version: KubernetesVersion) -> ServerVersion:
        """What a version with its feature gates means for a server."""
        return cls(version.minor, frozenset(name for name, is_on in version.gates.enabled.items() if is_on))

    @property
    def is_1_36(self) -> bool:
        """Whether it is v1.36."""
        return self.minor == "1.36"

    @property
    def types(self) -> WireFormat:
        """The wire format; fields whose gates are off are dropped."""
        return wire_format(self.minor, None if self.is_1_36 else self.gates)

    def enabled(self, gate: str) -> bool:
        """Whether a feature gate is on; in v1.36 gates have no effect."""
        return gate in self.gates and not self.is_1_36


DEFAULT_SERVED: Final = ServerVersion.of(DEFAULT_VERSION)
"""What a server serves if nothing is chosen."""
