"""The file with the server's address and the user's credentials for kubectl and other clients."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import yaml

from moorage.http.private_files import write_private

NAME = "moorage"
"""The name of the cluster, the user and the context."""


def kubeconfig(server_url: str, token: str, ca_pem: str | None) -> str:
    """A kubeconfig with one context; `ca_pem` is None for a server without TLS."""
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
    """Write or replace a kubeconfig atomically, readable by its owner only; OSError if that fails."""
    write_private(path, kubeconfig(server_url, token, ca_pem).encode())
