"""All controllers of workloads, and of the groups of their pods."""

from __future__ import annotations

from functools import partial
from typing import Final

from moorage_cluster.controllers.cron_job import CronJobController
from moorage_cluster.controllers.daemon_set import DaemonSetController
from moorage_cluster.controllers.deployment import DeploymentController
from moorage_cluster.controllers.job import JobController
from moorage_cluster.controllers.job_finalizers import JobFinalizerController
from moorage_cluster.controllers.job_ttl import JobTtlController
from moorage_cluster.controllers.manager import MakeController
from moorage_cluster.controllers.pod_groups import PodGroupProtection
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


def workload_controllers(*, has_groups: bool, groups_of_jobs: bool) -> tuple[MakeController, ...]:
    """The controllers of a cluster with pod groups, or without; `groups_of_jobs`: jobs get groups, too."""
    controllers = list(WORKLOAD_CONTROLLERS)
    if groups_of_jobs:
        controllers[controllers.index(JobController)] = partial(JobController, makes_groups=True)
    return (*controllers, *((PodGroupProtection,) if has_groups else ()))
