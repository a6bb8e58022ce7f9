"""Making a probe: a request to the container, a connection, or a command."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cache
from typing import Final

from moorage.api.manifests import Manifest
from moorage.emulation.kubernetes_version import DEFAULT_VERSION
from moorage.http.client_transport import Endpoint, HttpTransport
from moorage.http.errors import ConnectionFailed
from moorage.http.transport import Request

_HEADERS: Final = {
    "user-agent": f"kube-probe/{DEFAULT_VERSION.minor}",
    "accept": "*/*",
    "connection": "close",
}
_MAX_OUTPUT_BYTES: Final = 10 << 10


@cache
def _unverified() -> ssl.SSLContext:
    """TLS without verification: as with kubelets, probes ignore certificates."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


RunCommand = Callable[[Sequence[str]], Awaitable[tuple[int, bytes]]]
"""Runs a command in a container; returns its exit code and its output."""


class Probing:
    """Makes the probes of one container. address: the address of its ports."""

    def __init__(self, container: Manifest, address: str, run_command: RunCommand) -> None:
        ports = container.get("ports") or ()
        self._ports = {each["name"]: int(each["containerPort"]) for each in ports if each.get("name")}
        self._address = address
        self._run_command = run_command

    async def check(self, probe: Manifest) -> str:
        """Make a probe; returns the failure, or empty."""
        seconds = probe.get("timeoutSeconds") or 1
        try:
            async with asyncio.timeout(seconds):
                return await self._check(probe)
        except TimeoutError:
            return f"command timed out after {seconds}s" if "exec" in probe else "context deadline exceeded"
        except (OSError, ValueError) as error:
            return str(error)

    async def _check(self, probe: Manifest) -> str:
        if action := probe.get("httpGet"):
            return await self._get(action)
        if action := probe.get("exec"):
            code, output = await self._run_command(action.get("command") or ())
            return (
                output[:_MAX_OUTPUT_BYTES].decode(errors="replace") or f"exit status {code}" if code else ""
            )
        # Of gRPC only the connection is probed.
        action = probe.get("tcpSocket") or probe["grpc"]
        return await self._connect(action.get("host") or self._address, self._port(action["port"]))

    def _port(self, port: int | str) -> int:
        """The number of a port; ValueError if no port has this name."""
        return port if isinstance(port, int) else self._ports.get(port) or int(port)

    async def _get(self, action: Manifest) -> str:
        host, port = action.get("host") or self._address, self._port(action["port"])
        is_secure = (action.get("scheme") or "HTTP").upper() == "HTTPS"
        path, _, query = str(action.get("path") or "/").partition("?")
        url = f"{'https' if is_secure else 'http'}://{host}:{port}"
        headers = _HEADERS | {each["name"].lower(): each["value"] for each in action.get("httpHeaders") or ()}
        try:
            async with HttpTransport(Endpoint(url, _unverified() if is_secure else None)) as transport:
                response = await transport.handle(Request("GET", f"/{path.lstrip('/')}", query, headers))
        except ConnectionFailed as error:
            return f'Get "{url}/{path.lstrip("/")}": {error}'
        if 200 <= response.status < 400:
            return ""
        return f"HTTP probe failed with statuscode: {response.status}"

    async def _connect(self, host: str, port: int) -> str:
        try:
            _, writer = await asyncio.open_connection(host, port)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            return f"dial tcp {host}:{port}: connect: {reason}"
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
        return ""
