"""What commands with an API server of their own have in common."""

from __future__ import annotations

import socket
from pathlib import Path

from moorage.api.decode import InputError
from moorage_cluster.apiserver.embedded import EmbeddedServer
from moorage_cluster.apiserver.kubeconfig import write_kubeconfig


def write_admin_kubeconfig(kubeconfig: Path, url: str, server: EmbeddedServer) -> None:
    """Write the kubeconfig with which kubectl reaches a server."""
    try:
        write_kubeconfig(kubeconfig, url, server.token, server.certificate.ca_pem)
    except OSError as error:
        raise InputError(str(kubeconfig), f"cannot be written: {error.strerror}") from None


def advertise(server: EmbeddedServer, listener: socket.socket) -> None:
    """Show in the cluster where its server listens."""
    address, port = listener.getsockname()[:2]
    server.advertising.advertise(_local(address), port)


def server_url(address: str, port: int) -> str:
    """Where clients on this machine find the server."""
    host = _local(address)
    return f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}"


def _local(address: str) -> str:
    return "127.0.0.1" if address == "0.0.0.0" else "::1" if address == "::" else address
