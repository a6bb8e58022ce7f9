"""What the real kube-scheduler decided is decided again by `moorage run`, over the API, pod by pod."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import yaml

from tests.apiserver.running import RunningServer
from tests.end_to_end.recordings.cluster import recorded_cluster
from tests.end_to_end.recordings.controlling import controlled
from tests.end_to_end.recordings.driving import Drive
from tests.end_to_end.recordings.loading import Recording, families, family_of, load
from tests.run.running import RunningScheduler

DRIVEN = (
    "added-affinity-0", "capacity-ratio-0", "churn-0", "default-spread-0", "dra-0", "dra-deep-0",
    "gates-0", "images-0", "inline-disks-0", "large-0", "late-binding-0", "least-allocated-0",
    "list-spread-0", "mixed-1", "most-allocated-0", "node-affinity-1", "overhead-0", "owned-spread-0",
    "partitions-1", "pod-affinity-1", "ports-0", "preemption-0", "preemption-hard-1", "profile-0",
    "provisioning-1", "resources-1", "taints-0", "topology-spread-0", "volumes-0",
)  # fmt: skip
"""One recording of each family: that with more kinds of refusals where there is a choice."""

ASKED_FOR_WITHOUT_NEED = "extension-apiserver-authentication"
"""The one thing that neither role lets a scheduler read: how to tell who asks it for its metrics."""


def configuration(path: Path, kubeconfig: Path, recording: Recording) -> str:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": -1},
        "percentageOfNodesToScore": 100,
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": 1,
    }
    if recording.profiles:
        document["profiles"] = recording.profiles
    path.write_text(yaml.safe_dump(document))
    return f"--config={path}"


async def drive(recording: Recording, admin: Path, scheduler: Path, option: str) -> None:
    async with (
        recorded_cluster(admin, recording.objects) as cluster,
        controlled(cluster.client, family_of(recording.name)),
    ):
        with RunningScheduler(scheduler, option) as running:
            try:
                await Drive(recording, cluster).run()
            except AssertionError as error:
                error.add_note(running.log)
                raise
        refused = [line for line in running.log.splitlines() if "forbidden" in line]
        assert all(ASKED_FOR_WITHOUT_NEED in line for line in refused), running.log


def test_there_is_a_recording_of_every_family() -> None:
    assert sorted(map(family_of, DRIVEN)) == sorted(families())


@pytest.mark.parametrize("name", DRIVEN)
def test_decisions_are_those_of_the_recording(
    name: str, server: RunningServer, kubeconfig: Path, tmp_path: Path
) -> None:
    recording = load(name)
    option = configuration(tmp_path / "scheduler.yaml", kubeconfig, recording)
    asyncio.run(drive(recording, server.kubeconfig, kubeconfig, option))
