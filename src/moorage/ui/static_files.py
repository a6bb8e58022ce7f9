"""The files of the page, from the package."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from moorage.http.transport import Response
from moorage.services.responses import error

INDEX: Final = "index.html"
_CONTENT_TYPES: Final[Mapping[str, str]] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


class StaticFiles:
    """All files of the page, read once."""

    def __init__(self) -> None:
        self._files = dict(_read(files("moorage.ui") / "static"))

    def response(self, path: str) -> Response:
        """A file; 404 if there is none of that name."""
        name = path.strip("/") or INDEX
        body = self._files.get(name)
        if body is None:
            return error(HTTPStatus.NOT_FOUND, "there is no such page")
        return Response(int(HTTPStatus.OK), body, _CONTENT_TYPES[name.rpartition(".")[2]], {})


def _read(folder: Traversable, prefix: str = "") -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for each in folder.iterdir():
        if each.is_dir():
            found |= _read(each, f"{prefix}{each.name}/")
        elif each.name.rpartition(".")[2] in _CONTENT_TYPES:
            found[f"{prefix}{each.name}"] = each.read_bytes()
    return found
