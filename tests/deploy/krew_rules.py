"""The rules that krew has for manifests of plugins, and how it installs one."""

from __future__ import annotations

import hashlib
import re
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FIELDS = {"version", "homepage", "shortDescription", "description", "caveats", "platforms"}
_PLATFORM_FIELDS = {"selector", "uri", "sha256", "bin", "files"}
SHORT = 50
"""How long a short description may be, in krew's index."""


def problems(file: str, document: dict[str, Any]) -> Iterator[str]:
    """What krew, or the index of its plugins, would say against a manifest in a file."""
    name, spec = document["metadata"]["name"], document["spec"]
    if document["apiVersion"] != "krew.googlecontainertools.github.com/v1alpha2":
        yield "apiVersion"
    if document["kind"] != "Plugin":
        yield "kind"
    if not re.fullmatch(r"[\w-]+", name) or file != f"{name}.yaml":
        yield "name"
    if not re.fullmatch(r"v\d+\.\d+\.\d+(-[\w.]+)?", spec["version"]):
        yield "version"
    short = spec["shortDescription"]
    if not short or "\n" in short or len(short) > SHORT or short.endswith(".") or "kubectl" in short:
        yield "shortDescription"
    if spec.keys() - _FIELDS:
        yield "unknown fields"
    if not spec["platforms"]:
        yield "no platforms"
    selectors = [tuple(sorted(each["selector"]["matchLabels"].items())) for each in spec["platforms"]]
    if len(set(selectors)) != len(selectors):
        yield "one platform twice"
    for platform in spec["platforms"]:
        yield from _platform_problems(platform)


def _platform_problems(platform: dict[str, Any]) -> Iterator[str]:
    if platform.keys() != _PLATFORM_FIELDS:
        yield "fields of a platform"
    if platform["selector"]["matchLabels"].keys() != {"os", "arch"}:
        yield "selector"
    if not re.fullmatch(r"https://\S+\.(tar\.gz|zip)", platform["uri"]):
        yield "uri"
    if not re.fullmatch(r"[a-f0-9]{64}", platform["sha256"]):
        yield "sha256"
    if not platform["bin"]:
        yield "bin"
    if not platform["files"] or not all(each["from"] and each["to"] for each in platform["files"]):
        yield "files"


def install(platform: dict[str, Any], archive: Path, home: Path) -> Path:
    """Install a platform's archive as krew does; the folder with the link to the program, for PATH."""
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    unpacked, store, programs = home / "unpacked", home / "store", home / "bin"
    with tarfile.open(archive) as files:
        files.extractall(unpacked, filter="data")
    for operation in platform["files"]:
        moved = list(unpacked.glob(operation["from"]))
        assert moved, operation
        for path in moved:
            target = store / operation["to"] / path.name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(path, target)
    programs.mkdir()
    (programs / "kubectl-moorage").symlink_to(store / platform["bin"])
    return programs
