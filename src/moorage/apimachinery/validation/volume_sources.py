"""Validation of the volume sources that pods, PersistentVolumes and drivers share."""

from __future__ import annotations

from typing import Final

from moorage.api.manifests import Manifest
from moorage.apimachinery.fields import FieldError, invalid, required
from moorage.apimachinery.validation.checks import check_optional_word
from moorage.apimachinery.validation.paths import check_no_backsteps

_HOST_PATHS: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)
_MIN_TOKEN_SECONDS: Final = 600
_MAX_TOKEN_SECONDS: Final = 1 << 32


def check_host_path(source: Manifest, path: str) -> list[FieldError]:
    """A path on the node."""
    errors = check_local(source, path)
    if source.get("path"):
        errors += check_optional_word(source.get("type", ""), _HOST_PATHS, f"{path}.type")
    return errors


def check_local(source: Manifest, path: str) -> list[FieldError]:
    """A local disk of the node."""
    place = source.get("path", "")
    return check_no_backsteps(place, f"{path}.path") if place else [required(f"{path}.path")]


def check_nfs(source: Manifest, path: str) -> list[FieldError]:
    """A directory of an NFS server."""
    errors = [required(f"{path}.{key}") for key in ("server", "path") if not source.get(key)]
    place = source.get("path", "")
    if not place.startswith("/"):
        errors.append(invalid(f"{path}.path", place, "must be an absolute path"))
    return errors


def check_token_seconds(seconds: int, path: str) -> list[FieldError]:
    """The lifetime of a token in a volume, in seconds."""
    if seconds < _MIN_TOKEN_SECONDS:
        return [invalid(path, seconds, "may not specify a duration less than 10 minutes")]
    if seconds > _MAX_TOKEN_SECONDS:
        return [invalid(path, seconds, "may not specify a duration larger than 2^32 seconds")]
    return []
