from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import CONFIG_MAP
from moorage_cluster.processes.objects import NamespacedObjects
from moorage_cluster.processes.volumes import MountError, PodVolumes
from tests.sim_processes.harness import ADDRESS, HOST, create_data, create_pod, new_client


class Pod:
    """A pod with volumes that are mounted below a folder."""

    def __init__(self, client: Client, folder: Path) -> None:
        self.client = client
        self.time = datetime.now(UTC)
        objects = NamespacedObjects(client, "default")
        self._folder = folder
        self._volumes = PodVolumes(client, objects, folder / "pod", folder / "claims", lambda: self.time)
        self._pod: Manifest = {}

    async def create(self, *volumes: dict[str, Any]) -> None:
        await create_data(self.client)
        self._pod = await create_pod(self.client, volumes=list(volumes))

    async def mounted(self) -> dict[str, str]:
        """All files and what is in them."""
        await self._volumes.write(self._pod, ADDRESS, HOST)
        files = (path for path in (self._folder / "pod").rglob("*") if path.is_file())
        return {str(path.relative_to(self._folder / "pod")): path.read_text() for path in files}


def files_of(folder: Path, *volumes: dict[str, Any]) -> dict[str, str]:
    async def run() -> dict[str, str]:
        pod = Pod(new_client(), folder)
        await pod.create(*volumes)
        files = await pod.mounted()
        return {name: text for name, text in files.items() if "kube-api-access" not in name}

    return asyncio.run(run())


def test_volumes_are_files(tmp_path: Path) -> None:
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    cpu = {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}}
    assert files_of(
        tmp_path,
        {"name": "all", "configMap": {"name": "settings"}},
        {"name": "one", "configMap": {"name": "settings", "items": [{"key": "colour", "path": "a/b"}]}},
        {"name": "secret", "secret": {"secretName": "keys"}},
        {"name": "empty", "emptyDir": {}},
        {"name": "about", "downwardAPI": {"items": [labels, cpu]}},
        {"name": "optional", "configMap": {"name": "missing", "optional": True}},
        {
            "name": "projected",
            "projected": {"sources": [{"configMap": {"name": "settings"}}, {"secret": {"name": "keys"}}]},
        },
    ) == {
        "all/colour": "blue",
        "all/path": "/data/x",
        "one/a/b": "blue",
        "secret/key": "secret",
        "about/labels": 'app="web"',
        "about/cpu": "8",
        "projected/colour": "blue",
        "projected/path": "/data/x",
        "projected/key": "secret",
    }
    assert (tmp_path / "pod" / "empty").is_dir()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"configMap": {"name": "missing"}}, 'configmap "missing" not found'),
        (
            {"configMap": {"name": "settings", "items": [{"key": "x", "path": "x"}]}},
            "references non-existent config key: x",
        ),
        ({"nfs": {"server": "a", "path": "/"}}, "nfs is not supported by containers that run as processes"),
    ],
)
def test_a_volume_that_cannot_be_mounted_says_why(
    source: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(MountError, match=f'MountVolume.SetUp failed for volume "v" : {message}'):
        files_of(tmp_path, {"name": "v", **source})


def test_files_follow_their_objects_and_tokens_are_renewed(tmp_path: Path) -> None:
    async def run() -> None:
        pod = Pod(new_client(), tmp_path)
        token = {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}}
        await pod.create(
            {"name": "all", "configMap": {"name": "settings"}},
            {"name": "token", "projected": {"sources": [token]}},
        )
        first = await pod.mounted()
        change = {"data": {"colour": "red", "path": None}}
        await pod.client.patch(CONFIG_MAP, "default", "settings", change, "merge")
        pod.time += timedelta(minutes=47)
        second = await pod.mounted()
        assert (first["all/colour"], second["all/colour"]) == ("blue", "red")
        assert "all/path" not in second
        assert first["token/token"] == second["token/token"]
        pod.time += timedelta(minutes=2)
        third = await pod.mounted()
        assert third["token/token"] != second["token/token"]

    asyncio.run(run())
