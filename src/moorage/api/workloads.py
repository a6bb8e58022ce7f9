"""Objects that own or group pods: services, controllers, disruption budgets, pod groups."""

from __future__ import annotations

from moorage.api.base import LabelSelector, Object, Struct


class ServiceSpec(Struct):
    """Which pods a service sends traffic to."""

    selector: dict[str, str] = {}


class Service(Object):
    """A service."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Struct):
    """Which pods a replication controller counts."""

    selector: dict[str, str] = {}


class ReplicationController(Object):
    """A replication controller."""

    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class WorkloadSpec(Struct):
    """Which pods a replica set or stateful set counts."""

    selector: LabelSelector | None = None


class ReplicaSet(Object):
    """A replica set."""

    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(Object):
    """A stateful set."""

    spec: WorkloadSpec = WorkloadSpec()


class PodDisruptionBudgetSpec(Struct):
    """How many matching pods must stay available."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str = ""


class PodDisruptionBudgetStatus(Struct):
    """How many pods may be disrupted now."""

    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(Object):
    """A limit on the voluntary disruption of matching pods."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
