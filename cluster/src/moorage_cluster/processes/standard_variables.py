"""The default variables of every process of a pod; its container may override them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from moorage.api.manifests import Manifest
from moorage.client.credentials import SERVICE_ACCOUNT_DIR, SERVICE_ACCOUNT_MOUNT
from moorage_cluster.processes.machine import Machine

_INHERITED: Final = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "TZ")
"""Variables of `moorage up` itself, in place of those of an image."""
_NAME: Final = "moorage"


def standard_variables(
    machine: Machine, pod: Manifest, folder: Path, mounts: Mapping[str, Path]
) -> dict[str, str]:
    """The variables of a container with these mounts, and with a folder of its pod.

    Clients that read an account's token from its well-known path cannot find it there. For moorage, a
    variable contains its directory; kubectl, client-go's and other clients that read a kubeconfig find one.
    """
    home, temporary = folder / "home", mounts.get("/tmp") or folder / "tmp"
    for each in (home, temporary):
        each.mkdir(parents=True, exist_ok=True)
    variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    variables |= {"HOME": str(home), "TMPDIR": str(temporary), "HOSTNAME": pod["metadata"]["name"]}
    variables |= {"PYTHONUNBUFFERED": "1"}
    account = mounts.get(str(SERVICE_ACCOUNT_MOUNT))
    if account is not None:
        kubeconfig = folder / "kubeconfig"
        kubeconfig.write_text(_kubeconfig(machine, pod, account))
        variables |= {SERVICE_ACCOUNT_DIR: str(account), "KUBECONFIG": str(kubeconfig)}
    return variables


def _kubeconfig(machine: Machine, pod: Manifest, account: Path) -> str:
    host, port = machine.server
    cluster = {"server": f"https://{host}:{port}", "certificate-authority": str(account / "ca.crt")}
    context = {"cluster": _NAME, "user": _NAME, "namespace": pod["metadata"]["namespace"]}
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": cluster}],
        "users": [{"name": _NAME, "user": {"tokenFile": str(account / "token")}}],
        "contexts": [{"name": _NAME, "context": context}],
        "current-context": _NAME,
    }
    return json.dumps(content)
