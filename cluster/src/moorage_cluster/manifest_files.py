"""Creating the objects of manifest files as `kubectl create -f` does: in order, also after errors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.http.errors import RequestError
from moorage_cluster.dump import served_kinds

_BATCH_OBJECTS: Final = 50
"""Objects created before other tasks get their turn on the loop."""


class FileObject(NamedTuple):
    """An object and its file."""

    manifest: Manifest
    file: str

    def __str__(self) -> str:
        meta = self.manifest.get("metadata")
        namespace, name = (_text(meta, key) for key in ("namespace", "name"))
        name = name or f"{_text(meta, 'generateName')}*"
        return f"{self.manifest.get('kind', 'object')} {namespace and namespace + '/'}{name} of {self.file}"


def _text(meta: Any, key: str) -> str:
    return str(meta.get(key) or "") if isinstance(meta, dict) else ""


async def create_objects(client: Client, objects: Iterable[FileObject]) -> list[str]:
    """Create objects in order; returns a line for each that was rejected. Existing ones are kept."""
    kinds = await served_kinds(client)
    refused = []
    for index, each in enumerate(objects):
        if index % _BATCH_OBJECTS == 0:
            await asyncio.sleep(0)
        api_version, name = (str(each.manifest.get(key) or "") for key in ("apiVersion", "kind"))
        kind = kinds.get((api_version, name))
        if kind is None:
            refused.append(f"{each}: no matches for kind {name!r} in version {api_version!r}")
            continue
        namespace = _text(each.manifest.get("metadata"), "namespace") or "default"
        try:
            await client.create(
                kind, namespace if kind.namespaced else "", each.manifest, fieldValidation="Strict"
            )
        except RequestError as error:
            if not error.already_exists:
                refused.append(f"{each}: {error.message}")
        if name == "CustomResourceDefinition":
            kinds = await served_kinds(client)
    return refused
