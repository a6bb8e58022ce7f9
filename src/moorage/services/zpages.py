"""`/flagz` and `/statusz`: the flags in force, and build and start time; as text or as documents.

Without an `Accept` header, or with one that accepts text, the response is text without a stable format. A
document has to be requested by its kind: `application/json;v=v1beta1;g=config.k8s.io;as=Flagz`.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final

from moorage.api.manifests import Manifest, timestamp
from moorage.config.manifest import dump_yaml
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.http.transport import Request, Response
from moorage.services import responses
from moorage.services.responses import Handler

COMPONENT: Final = "kube-scheduler"
_GROUP: Final = "config.k8s.io"
_VERSIONS: Final = ("v1beta1", "v1alpha1")
_DEPRECATED: Final = ("v1alpha1",)
_HEAD: Final = (
    "\n{component} {page}\n"
    "Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees "
    "and is for debugging purposes only.\n"
)
_OFFERED: Final = ("application/json", "application/yaml", "text/plain")
_NOT_ACCEPTABLE: Final = f"only the following media types are accepted: {', '.join(_OFFERED)}"


def flagz_routes(flags: Mapping[str, str]) -> dict[str, Handler]:
    """`/flagz`: every flag with its value."""
    lines = "".join(f"{name}={value}\n" for name, value in sorted(flags.items()))
    return {"/flagz": _page("flagz", "Flagz", lambda: lines, lambda: {"flags": dict(flags)})}


def statusz_routes(
    paths: Iterable[str], version: KubernetesVersion, started: datetime, now: Callable[[], datetime]
) -> dict[str, Handler]:
    """`/statusz`: start time, build information, and the served paths."""
    listed = sorted({f"/{path.split('/')[1]}" for path in paths})
    python = f"python{platform.python_version()}"

    def text() -> str:
        up_seconds = int((now() - started).total_seconds())
        up = f"{up_seconds // 3600} hr {up_seconds // 60 % 60:02} min {up_seconds % 60:02} sec"
        return (
            f"\nStarted: {started:%a %b %e %H:%M:%S} UTC {started:%Y}\n"
            f"Up: {up}\n"
            f"Go version: {python}\n"
            f"Binary version: {DEFAULT_VERSION.number}\n"
            f"Emulation version: {version.minor}\n"
            f"Paths: {' '.join(listed)}\n"
        )

    def document() -> Manifest:
        return {
            "startTime": timestamp(started),
            "uptimeSeconds": int((now() - started).total_seconds()),
            "goVersion": python,
            "binaryVersion": DEFAULT_VERSION.number,
            "emulationVersion": version.minor,
            "paths": listed,
        }

    return {"/statusz": _page("statusz", "Statusz", text, document)}


def _page(name: str, kind: str, text: Callable[[], str], document: Callable[[], Manifest]) -> Handler:
    """A page as text or as a document of a kind, by the `Accept` header."""

    async def answer(request: Request) -> Response:
        accepted = request.headers.get("accept", "").strip()
        for media_type, parameters in _accepted(accepted or "text/plain"):
            if media_type in ("text/plain", "text/*", "*/*") and "as" not in parameters:
                return responses.text(_HEAD.format(component=COMPONENT, page=name) + text())
            if media_type in _OFFERED and _is_asked_for(parameters, kind):
                version = parameters["v"]
                head = {"kind": kind, "apiVersion": f"{_GROUP}/{version}", "metadata": {"name": COMPONENT}}
                response = _encoded({**head, **document()}, media_type)
                if version in _DEPRECATED:
                    response.headers["Warning"] = (
                        f'299 - "This version of the {name} endpoint is deprecated. '
                        'Please use a newer version."'
                    )
                return response
        return responses.refusal(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", _NOT_ACCEPTABLE)

    return answer


def _is_asked_for(parameters: Mapping[str, str], kind: str) -> bool:
    wanted = (parameters.get("g"), parameters.get("as"))
    return wanted == (_GROUP, kind) and parameters.get("v") in _VERSIONS


def _encoded(document: dict[str, Any], media_type: str) -> Response:
    if media_type == "application/yaml":
        return responses.text(dump_yaml(document), media_type)
    return responses.document(document)


def _accepted(header: str) -> list[tuple[str, dict[str, str]]]:
    """The accepted media types, preferred ones first."""
    found = []
    for place, part in enumerate(header.split(",")):
        media_type, *rest = (each.strip() for each in part.split(";"))
        parameters = dict(each.split("=", 1) for each in rest if "=" in each)
        try:
            quality = float(parameters.pop("q", "1"))
        except ValueError:
            quality = 0.0
        found.append((-quality, place, media_type, parameters))
    return [
        (media_type, parameters) for _, _, media_type, parameters in sorted(found, key=lambda one: one[:2])
    ]
