"""Documents about the server: health, version, discovery, OpenAPI."""

from __future__ import annotations

import platform
from typing import Final

from moorage.apimachinery import errors
from moorage.emulation.kubernetes_version import KubernetesVersion
from moorage.http.transport import Request, Response
from moorage_cluster.apiserver.address import Address
from moorage_cluster.apiserver.auth.openid import CONFIGURATION_PATH, KEYS_PATH, IssuerDocuments
from moorage_cluster.apiserver.discovery import Discovery
from moorage_cluster.apiserver.negotiation import negotiate
from moorage_cluster.apiserver.openapi.endpoints import OpenApiDocuments
from moorage_cluster.apiserver.store import encode

_HEALTH: Final = ("/healthz", "/livez", "/readyz")
_ROOT_PATHS: Final = [
    CONFIGURATION_PATH,
    "/api",
    "/apis",
    *_HEALTH,
    "/openapi/v2",
    "/openapi/v3",
    KEYS_PATH,
    "/version",
]


class Documents:
    """Answers to non-resource paths."""

    def __init__(
        self,
        discovery: Discovery,
        openapi: OpenApiDocuments,
        issuer: IssuerDocuments,
        version: KubernetesVersion,
    ) -> None:
        self._version = version
        self._discovery = discovery
        self._openapi = openapi
        self._issuer = issuer

    def answer(self, address: Address, request: Request) -> Response:
        """The document at a path; ApiError (404) if there is none."""
        if request.method not in ("GET", "HEAD"):
            raise errors.not_allowed_here()
        path = request.path.rstrip("/") or "/"
        accept = request.headers.get("accept", "")
        if path == "/":
            return Response(200, encode({"paths": _ROOT_PATHS}))
        if path == "/version":
            return Response(200, encode(version_document(self._version)))
        if path in _HEALTH or path.startswith(("/livez/", "/readyz/", "/healthz/")):
            return _health(path, request.query)
        if path == "/openapi/v2":
            return self._openapi.v2(accept)
        if path == "/openapi/v3" or path.startswith("/openapi/v3/"):
            return self._openapi.v3(path)
        if path == CONFIGURATION_PATH:
            return self._issuer.configuration(request.headers.get("host", ""))
        if path == KEYS_PATH:
            return self._issuer.keys()
        if path.split("/")[1] in ("api", "apis"):
            return self._discover(path, request)
        raise errors.unknown_path()

    def _discover(self, path: str, request: Request) -> Response:
        wanted = negotiate(request.headers.get("accept", ""))
        aggregated = wanted.version if wanted.transform == "APIGroupDiscoveryList" else ""
        if path not in ("/api", "/apis"):
            aggregated = ""
        body = self._discovery.answer(path, aggregated)
        if not aggregated:
            return Response(200, body)
        etag = self._discovery.etag(body)
        headers = {"ETag": etag, "Vary": "Accept"}
        if request.headers.get("if-none-match") == etag:
            return Response(304, b"", "", headers)
        kind = f"application/json;g=apidiscovery.k8s.io;v={aggregated};as=APIGroupDiscoveryList"
        return Response(200, body, kind, headers)


def _health(path: str, query: str) -> Response:
    if "verbose" in query:
        check = path.strip("/").partition("/")[0]
        return Response(200, f"[+]ping ok\n{check} check passed\n".encode(), "text/plain; charset=utf-8")
    return Response(200, b"ok", "text/plain; charset=utf-8")


def version_document(version: KubernetesVersion) -> dict[str, str]:
    """What `kubectl version` shows of the server."""
    major, minor, _ = version.number.split(".")
    return {
        "major": major,
        "minor": minor,
        "emulationMajor": major,
        "emulationMinor": minor,
        "gitVersion": f"v{version.number}+moorage",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": f"python{platform.python_version()}",
        "compiler": platform.python_implementation(),
        "platform": f"{platform.system().lower()}/{platform.machine()}",
    }
