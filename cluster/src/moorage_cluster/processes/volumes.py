"""A pod's volumes as directories: ConfigMaps, Secrets, tokens and the downward API as files in them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from moorage.api.manifests import Manifest, Now, moment
from moorage.client.client import Client
from moorage.client.kinds import SERVICE_ACCOUNT
from moorage.http.errors import RequestError
from moorage_cluster.nodes.workload import Host
from moorage_cluster.processes.downward import DownwardError, field_value, resource_value
from moorage_cluster.processes.objects import MissingObjectError, NamespacedObjects

_DEFAULT_MODE: Final = 0o644
_DEFAULT_TOKEN_SECONDS: Final = 3600
_TOKEN_LIFETIME_USED: Final = 0.8
"""Fraction of its lifetime after which the kubelet rotates a token."""


class MountError(Exception):
    """A volume that cannot be mounted (yet); the message is that of its FailedMount event."""


class _File(NamedTuple):
    content: bytes
    mode: int


_Files = dict[str, _File]
"""Files by their paths within a volume."""


class _Token(NamedTuple):
    text: bytes
    renewed_after: datetime


class PodVolumes:
    """The volumes of one pod below a folder of its own; those of claims are below a shared one."""

    def __init__(
        self, client: Client, objects: NamespacedObjects, folder: Path, claims: Path, now: Now
    ) -> None:
        self._client = client
        self._objects = objects
        self._folder = folder
        self._claims = claims
        self._now = now
        self._tokens: dict[tuple[str, int], _Token] = {}

    def path(self, pod: Manifest, name: str) -> Path:
        """The directory of a volume."""
        volume = next(each for each in pod["spec"].get("volumes") or () if each["name"] == name)
        if source := volume.get("hostPath"):
            return Path(source["path"])
        if source := volume.get("persistentVolumeClaim"):
            return self._claims.joinpath(pod["metadata"]["namespace"], source["claimName"])
        return self._folder / name

    async def write(self, pod: Manifest, address: str, host: Host) -> None:
        """Update all volumes; MountError for the first that cannot be mounted."""
        for volume in pod["spec"].get("volumes") or ():
            try:
                await self._write(volume, _Facts(pod, address, host))
            except (MissingObjectError, DownwardError, RequestError, OSError) as error:
                raise MountError(
                    f'MountVolume.SetUp failed for volume "{volume["name"]}" : {error}'
                ) from None

    async def _write(self, volume: Manifest, facts: _Facts) -> None:
        folder = self.path(facts.pod, volume["name"])
        if "hostPath" in volume:
            return
        folder.mkdir(parents=True, exist_ok=True)
        kind, source = next((kind, source) for kind, source in volume.items() if kind != "name")
        if kind in ("emptyDir", "persistentVolumeClaim"):
            return
        mode = source.get("defaultMode", _DEFAULT_MODE)
        if kind == "projected":
            files: _Files = {}
            for each in source.get("sources") or ():
                ((part_kind, part),) = each.items()
                files |= await self._files(part_kind, part, facts, mode)
        else:
            files = await self._files(kind, source, facts, mode)
        _synchronise(folder, files)

    async def _files(self, kind: str, source: Manifest, facts: _Facts, mode: int) -> _Files:
        is_optional = bool(source.get("optional"))
        if kind == "configMap":
            data = await self._objects.config_map(source["name"], is_optional=is_optional)
            return _chosen(data, source, mode, "references non-existent config key")
        if kind == "secret":
            # The field has another name than in a projected volume.
            name = source.get("secretName") or source["name"]
            data = await self._objects.secret(name, is_optional=is_optional)
            return _chosen(data, source, mode, "references non-existent secret key")
        if kind == "downwardAPI":
            return {item["path"]: facts.file(item, mode) for item in source.get("items") or ()}
        if kind == "serviceAccountToken":
            return {source["path"]: _File(await self._token(source, facts.pod), mode)}
        raise MissingObjectError(f"{kind} is not supported by containers that run as processes")

    async def _token(self, source: Manifest, pod: Manifest) -> bytes:
        audience = source.get("audience") or ""
        seconds = source.get("expirationSeconds") or _DEFAULT_TOKEN_SECONDS
        known = self._tokens.get((audience, seconds))
        if known is None or known.renewed_after <= self._now():
            known = self._tokens[audience, seconds] = await self._request_token(audience, seconds, pod)
        return known.text

    async def _request_token(self, audience: str, seconds: int, pod: Manifest) -> _Token:
        meta = pod["metadata"]
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec: Manifest = {"expirationSeconds": seconds, "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        path = SERVICE_ACCOUNT.path(meta["namespace"], pod["spec"]["serviceAccountName"], "token")
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        status = (await self._client.call("POST", path, None, request))["status"]
        now = self._now()
        lifetime = moment(status["expirationTimestamp"]) - now
        return _Token(status["token"].encode(), now + _TOKEN_LIFETIME_USED * lifetime)


class _Facts(NamedTuple):
    """The sources of the downward API."""

    pod: Manifest
    address: str
    host: Host

    def file(self, item: Manifest, mode: int) -> _File:
        if ref := item.get("fieldRef"):
            text = field_value(self.pod, ref["fieldPath"], self.address, self.host)
        else:
            text = resource_value(self.pod, item["resourceFieldRef"], None, self.host)
        return _File(text.encode(), item.get("mode", mode))


def _chosen(data: Mapping[str, bytes], source: Manifest, mode: int, complaint: str) -> _Files:
    """The files of an object: one for each key, or the listed items."""
    if not source.get("items"):
        return {key: _File(content, mode) for key, content in data.items()}
    files = {}
    for item in source["items"]:
        if item["key"] in data:
            files[item["path"]] = _File(data[item["key"]], item.get("mode", mode))
        elif not source.get("optional"):
            raise MissingObjectError(f"{complaint}: {item['key']}")
    return files


def _synchronise(folder: Path, files: _Files) -> None:
    """Make a directory contain exactly these files; each is replaced atomically."""
    for path, file in files.items():
        target = folder / path
        if not target.resolve().is_relative_to(folder.resolve()):
            raise MissingObjectError(f"{path!r} is not a path within a volume")
        if not target.is_file() or target.read_bytes() != file.content:
            target.parent.mkdir(parents=True, exist_ok=True)
            written = target.with_name(f".{target.name}.new")
            written.write_bytes(file.content)
            # Its owner must be able to read it, since here every container runs as the same user.
            written.chmod(file.mode | 0o400)
            os.replace(written, target)
    kept = {folder / path for path in files}
    for each in list(folder.rglob("*")):
        if each.is_file() and each not in kept:
            each.unlink()
