"""The controllers of workloads, all of them."""

from __future__ import annotations

from typing import Final

from moorage.controllers.cron_job import CronJobController
from moorage.controllers.daemon_set import DaemonSetController
from moorage.controllers.deployment import DeploymentController
from moorage.controllers.job import JobController
from moorage.controllers.job_finalizers import JobFinalizerController
from moorage.controllers.job_ttl import JobTtlController
from moorage.controllers.manager import MakeController
from moorage.controllers.replicaset import ReplicaSetController, ReplicationManager
from moorage.controllers.stateful_set import StatefulSetController

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
