"""What a version leaves behind: a data directory, and what its API server showed before it ended.

The state of version 0.1.0 was written by that version, in a working tree of its own:

    git worktree add ../moorage-0.1.0 e831daab
    PYTHONPATH=../moorage-0.1.0/src:../moorage-0.1.0/cluster/src \\
        .venv/bin/python -m tests.upgrade.state tests/upgrade/data/0.1.0.tar.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from moorage import __version__
from tests.apiserver.running import Kubectl, start_server
from tests.run.running import RunningScheduler

HERE = Path(__file__).parent
WORKLOAD, APPLIED = HERE / "workload.yaml", HERE / "applied.yaml"
NAMESPACE = "harbour"
MANAGER = "harbour-master"
DIRECTORY, SHOWN = "data", "shown.json"
"""What an archive has: the data directory, and what the server showed."""

Manifest = dict[str, Any]


def main() -> None:
    """Write the archive of the version that this process runs with."""
    parser = argparse.ArgumentParser(description="Write what this version of moorage leaves behind.")
    parser.add_argument("archive", type=Path)
    archive: Path = parser.parse_args().archive
    with tempfile.TemporaryDirectory() as folder:
        leave_state(Path(folder))
        _pack(Path(folder), archive)
    print(f"{archive}: the state of {__version__}, {archive.stat().st_size} bytes")  # noqa: T201 -- a command


def leave_state(folder: Path) -> None:
    """Have a server and a scheduler write a data directory; the scheduler is killed while it leads."""
    with start_server(folder, "--data-dir", str(folder / DIRECTORY)) as server:
        kubectl = Kubectl(server, folder)
        kubectl("create", "--save-config", "-f", str(WORKLOAD))
        kubectl("wait", "crd/berths.example.com", "--for=condition=Established")
        kubectl("apply", "--server-side", f"--field-manager={MANAGER}", "-f", str(APPLIED))
        user = kubectl.with_options("--namespace", NAMESPACE)
        user("delete", "configmap", "leaving", "--wait=false")
        user("scale", "deployment", "beacon", "--replicas=3")
        kubectl("taint", "nodes", "--all", "node.kubernetes.io/not-ready-")
        with RunningScheduler(server.kubeconfig) as scheduler:
            user("wait", "pod/bound", "--for=condition=PodScheduled")
            user("wait", "pod/pending", "--for=condition=PodScheduled=false")
            scheduler.kill()
        (folder / SHOWN).write_text(json.dumps(shown(kubectl), indent=1, sort_keys=True, ensure_ascii=False))


def shown(kubectl: Kubectl) -> list[Manifest]:
    """All objects but events."""
    resources = kubectl("api-resources", "--verbs=list", "-o", "name").split()
    wanted = ",".join(sorted(name for name in resources if not name.startswith("events")))
    items: list[Manifest] = kubectl.json("get", wanted, "--all-namespaces", "--show-managed-fields")["items"]
    return items


def _pack(folder: Path, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as files,
    ):
        for name in (DIRECTORY, SHOWN):
            files.add(folder / name, name, filter=_without_owner)


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    return entry.replace(uid=0, gid=0, uname="", gname="", mtime=0, deep=False)


if __name__ == "__main__":
    main()
