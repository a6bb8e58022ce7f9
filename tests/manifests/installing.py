"""A scheduler as it would run in a pod of the printed Deployment: its arguments, its files, its account."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import yaml

from tests.apiserver.running import Kubectl, RunningServer
from tests.manifests.printing import Manifest, pod_of, the
from tests.run.running import RunningScheduler

MOUNT = "/etc/moorage"
DEFINITION = Path(__file__).parent / "data" / "podmonitors.yaml"


def as_text(objects: Sequence[Manifest]) -> str:
    return yaml.safe_dump_all(objects)


def account_kubeconfig(server: RunningServer, kubectl: Kubectl, account: str, folder: Path) -> Path:
    """How an account of kube-system reaches the server."""
    content = yaml.safe_load(server.kubeconfig.read_text())
    token = kubectl("create", "token", account, "--namespace=kube-system").strip()
    content["users"][0]["user"] = {"token": token}
    path = folder / f"{account}.kubeconfig"
    path.write_text(yaml.safe_dump(content))
    return path


def start(
    objects: list[Manifest],
    kubeconfig: Path,
    folder: Path,
    *options: str,
    name: str = "moorage",
    leads: bool = True,
) -> RunningScheduler:
    """A process with a printed container's arguments and options, its files in a folder instead of its mount.

    What a pod knows from its mounted token, this one knows from a kubeconfig.
    """
    for file, text in the(objects, "ConfigMap", name)["data"].items():
        (folder / file).write_text(text)
    config = folder / "config.yaml"
    document = yaml.safe_load(config.read_text())
    document["clientConnection"] = {"kubeconfig": str(kubeconfig)}
    config.write_text(yaml.safe_dump(document))
    command, *printed = pod_of(objects, name)["containers"][0]["args"]
    assert command == "run"
    here = [option.replace(MOUNT, str(folder)) for option in printed]
    return RunningScheduler(kubeconfig, *here, *options, leads=leads)
