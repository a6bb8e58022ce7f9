"""ConfigMaps and Secrets of a pod's namespace, the sources of its volumes and variables."""

from __future__ import annotations

from base64 import b64decode

from moorage.api.manifests import Manifest
from moorage.client.client import Client
from moorage.client.kinds import CONFIG_MAP, SECRET, Kind
from moorage.http.errors import RequestError


class MissingObjectError(Exception):
    """A missing object, or a missing key of it."""


class NamespacedObjects:
    """ConfigMaps and Secrets of one namespace, read on demand."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._client = client
        self._namespace = namespace

    async def config_map(self, name: str, *, is_optional: bool = False) -> dict[str, bytes]:
        """The data of a ConfigMap; empty if it is missing and optional."""
        found = await self._get(CONFIG_MAP, name, is_optional)
        texts = {key: text.encode() for key, text in (found.get("data") or {}).items()}
        return texts | _decoded(found.get("binaryData"))

    async def secret(self, name: str, *, is_optional: bool = False) -> dict[str, bytes]:
        """The data of a Secret; empty if it is missing and optional."""
        return _decoded((await self._get(SECRET, name, is_optional)).get("data"))

    async def _get(self, kind: Kind, name: str, is_optional: bool) -> Manifest:
        try:
            return await self._client.get(kind, self._namespace, name)
        except RequestError as error:
            if error.is_not_found and is_optional:
                return {}
            what = f'{kind.name.lower()} "{name}" not found' if error.is_not_found else str(error)
            raise MissingObjectError(what) from None


def _decoded(data: Manifest | None) -> dict[str, bytes]:
    return {key: b64decode(text) for key, text in (data or {}).items()}
