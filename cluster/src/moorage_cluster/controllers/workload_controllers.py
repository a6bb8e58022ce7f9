"""All controllers of workloads."""

from __future__ import annotations

from typing import Final

from moorage_cluster.controllers.cron_job import CronJobController
from moorage_cluster.controllers.daemon_set import DaemonSetController
from moorage_cluster.controllers.deployment import DeploymentController
from moorage_cluster.controllers.job import JobController
from moorage_cluster.controllers.job_finalizers import JobFinalizerController
from moorage_cluster.controllers.job_ttl import JobTtlController
from moorage_cluster.controllers.manager import MakeController
from moorage_cluster.controllers.replicaset import ReplicaSetController, ReplicationManager
from moorage_cluster.controllers.stateful_set import StatefulSetController

WORKLOAD_CONTROLLERS: Final[tuple[MakeController, ...]] = (
    DeploymentController,
    ReplicaSetController,
    ReplicationManager,
    StatefulSetController,
    DaemonSetController,
    CronJobController,
    JobController,
    JobFinalizerController,
    JobTtlController,
)
