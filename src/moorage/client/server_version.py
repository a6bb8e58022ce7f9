"""The version of an API server, which decides what the scheduler emulates where no flag does."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from moorage.client.client import Client
from moorage.client.waiting import sleep
from moorage.clock import Clock
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion, nearest_version
from moorage.http.errors import ConnectionFailed, RequestError
from moorage.klog import Logger

_PATH: Final = "/version"
_RETRY_SECONDS: Final = 1.0
"""Pause between two requests to a server that does not answer, in seconds, beyond that of the client."""

log = Logger(__name__)


class _Document(msgspec.Struct, rename="camel"):
    """What an API server says of its version."""

    major: str = ""
    minor: str = ""
    git_version: str = ""


async def server_version(client: Client) -> KubernetesVersion:
    """The version to emulate for an API server; the default one for a server that does not tell its version.

    ConnectionFailed or RequestError if it does not answer.
    """
    try:
        document = msgspec.json.decode(await client.exchange("GET", _PATH), type=_Document)
    except RequestError as error:
        if error.code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return _unknown(str(error))
    except msgspec.MsgspecError as error:
        return _unknown(str(error))
    version = nearest_version(document.major, document.minor)
    server = document.git_version
    log.info(0, "Emulating the API server's version", server=server, emulated=f"v{version.minor}")
    return version


async def emulated_by_server(client: Client, clock: Clock) -> KubernetesVersion:
    """The version to emulate for an API server; waits until the server answers."""
    while True:
        try:
            return await server_version(client)
        except (ConnectionFailed, RequestError) as error:
            log.warning("Waiting for the API server's version", err=str(error))
            await sleep(clock, _RETRY_SECONDS)


def _unknown(problem: str) -> KubernetesVersion:
    emulated = f"v{DEFAULT_VERSION.minor}"
    log.warning("API server does not tell its version, emulating the default", err=problem, emulated=emulated)
    return DEFAULT_VERSION
