"""The file that tells kubectl and other clients where the server is and who they are."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import yaml

from moorage.http.private_files import write_private

NAME = "moorage"
"""What the cluster, the user and the context are called."""


def kubeconfig(server_url: str, token: str, ca_pem: str | None) -> str:
    """A kubeconfig with one context; `ca_pem` is None when the server speaks plain HTTP."""
    cluster = {"server": server_url}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = b64encode(ca_pem.encode()).decode()
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": {"token": token}}],
        "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": NAME}}],
        "current-context": NAME,
    }
    # The encoded CA must stay on one line, which the default width would fold.
    return yaml.safe_dump(content, sort_keys=False, width=float("inf"))


def write_kubeconfig(path: Path, server_url: str, token: str, ca_pem: str | None) -> None:
    """Write a kubeconfig in place of what is there, at once and readable by its owner only, or OSError."""
    write_private(path, kubeconfig(server_url, token, ca_pem).encode())
