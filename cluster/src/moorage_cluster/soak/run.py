"""A soak: users churn in a cluster, and a sample is taken at equal intervals."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

import msgspec
import uvloop

from moorage.simulation.virtual_loop import run_in_virtual_time
from moorage_cluster.soak.clusters import Measured, cluster_here, cluster_process, process_options
from moorage_cluster.soak.followed_pods import FollowedPods
from moorage_cluster.soak.samples import Sample, percentiles
from moorage_cluster.soak.usage import Usage
from moorage_cluster.soak.users import Users

_STEP_SECONDS: Final = 0.5
"""Interval at which users create workloads, in seconds."""
_MILLI: Final = 1000.0

Taken = Callable[[Sample], None]


class SoakSettings(msgspec.Struct, frozen=True):
    """What is to be done, and for how long."""

    seconds: float
    pods_per_second: float
    live: int
    """Number of pods at a time."""
    templates: int
    """Number of templates of workloads."""
    nodes: int
    samples: int
    seed: int
    has_groups: bool
    is_virtual: bool


def run_soak(settings: SoakSettings, taken: Taken) -> None:
    """Run to the end; `taken` is called with each sample."""
    soak = _soak(settings, taken)
    if settings.is_virtual:
        run_in_virtual_time(soak)
    else:
        uvloop.run(soak)


async def _soak(settings: SoakSettings, taken: Taken) -> None:
    async with _cluster(settings) as cluster:
        users = Users(
            cluster.client,
            settings.live,
            settings.templates,
            settings.seed,
            has_groups=settings.has_groups,
        )
        await users.prepare()
        followed = FollowedPods(cluster.client, cluster.clock)
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(followed.informer.run())
            await followed.informer.synced()
            await _churn(settings, cluster, users, Sampling(cluster, followed, taken))
            following.cancel()


def _cluster(settings: SoakSettings) -> AbstractAsyncContextManager[Measured]:
    if settings.is_virtual:
        return cluster_here(settings.nodes, settings.seed, has_groups=settings.has_groups)
    return cluster_process(settings.nodes, *process_options(has_groups=settings.has_groups))


async def _churn(settings: SoakSettings, cluster: Measured, users: Users, sampling: Sampling) -> None:
    interval = settings.seconds / settings.samples
    while (passed := sampling.seconds) < settings.seconds:
        await users.advance(int(passed * settings.pods_per_second) + 1)
        if sampling.seconds >= interval * (sampling.count + 1):
            sampling.take()
        await asyncio.sleep(_STEP_SECONDS)
    sampling.take()


class Sampling:
    """Takes samples of a cluster."""

    def __init__(self, cluster: Measured, followed: FollowedPods, taken: Taken) -> None:
        self._cluster, self._followed, self._taken = cluster, followed, taken
        self._began_at = cluster.clock.now()
        self._last_seconds, self._last_bound = 0.0, followed.bound
        self._last_usage: Usage = cluster.usage()
        self.count = 0

    @property
    def seconds(self) -> float:
        """Time of the cluster since the beginning."""
        return self._cluster.clock.now() - self._began_at

    def take(self) -> None:
        """Take a sample."""
        followed, usage, seconds = self._followed, self._cluster.usage(), self.seconds
        bound = followed.bound - self._last_bound
        cpu_seconds = usage.cpu_seconds - self._last_usage.cpu_seconds
        self.count += 1
        sample = Sample(
            seconds=seconds,
            created=followed.created,
            bound=followed.bound,
            pending=followed.pending,
            usage=usage,
            pods_per_second=bound / (seconds - self._last_seconds),
            cpu_milli=cpu_seconds / max(bound, 1) * _MILLI,
            latencies=percentiles(followed.take()),
        )
        self._last_seconds, self._last_bound, self._last_usage = seconds, followed.bound, usage
        self._taken(sample)
