"""Pack single-file builds for krew: `python -m tools.krew dist/*.pyz --url URL --output dist`.

krew installs archives. There is one for each platform, with the builds for all versions of Python; the
manifest `moorage.yaml` has their digests. URL is where the archives will be.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import re
import sys
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Any, Final, NamedTuple

import yaml

_ROOT: Final = Path(__file__).parent.parent
_TEMPLATE: Final = _ROOT / "deploy/krew/moorage.yaml"
_LAUNCHER: Final = _ROOT / "deploy/krew/kubectl-moorage"
_LICENSE: Final = _ROOT / "LICENSE"
_BUILD: Final = re.compile(
    r"moorage-(?P<version>\d+\.\d+\.\d+)-py3\.\d+-(?P<system>linux|macosx)-(?P<machine>.+)\.pyz"
)
_SYSTEMS: Final = {"linux": "linux", "macosx": "darwin"}
_MACHINES: Final = {
    "x86_64": ("amd64",),
    "aarch64": ("arm64",),
    "arm64": ("arm64",),
    "universal2": ("amd64", "arm64"),
}
"""Go's names of what Python calls a machine."""


class BuildError(ValueError):
    """A file that is no build of a release for a known platform."""


class Platform(NamedTuple):
    """An operating system and an architecture, in Go's names."""

    os: str
    arch: str


def main() -> int:
    """Write the archives and the manifest."""
    parser = argparse.ArgumentParser(description="Write archives and a manifest for krew.")
    parser.add_argument("builds", type=Path, nargs="+", help="single-file builds of one version")
    parser.add_argument("--url", required=True, help="where the archives will be")
    parser.add_argument("--output", type=Path, required=True, help="the folder to write into")
    chosen = parser.parse_args()
    try:
        version, builds = by_platform(chosen.builds)
    except BuildError as error:
        print(f"krew: {error}", file=sys.stderr)  # noqa: T201
        return 1
    digests = {}
    for platform, files in builds.items():
        content = archive(files)
        name = f"kubectl-moorage-{version}-{platform.os}-{platform.arch}.tar.gz"
        (chosen.output / name).write_bytes(content)
        digests[platform] = (name, hashlib.sha256(content).hexdigest())
    (chosen.output / "moorage.yaml").write_text(manifest(version, chosen.url.rstrip("/"), digests))
    return 0


def by_platform(builds: Iterable[Path]) -> tuple[str, dict[Platform, list[Path]]]:
    """The version of some builds, which must be one, and the builds of each platform."""
    found: dict[Platform, list[Path]] = {}
    versions = set()
    for path in sorted(builds):
        version, platforms = _platforms(path.name)
        versions.add(version)
        for platform in platforms:
            found.setdefault(platform, []).append(path)
    if len(versions) != 1:
        raise BuildError(f"builds of one version are expected, not of {', '.join(sorted(versions))}")
    return versions.pop(), found


def _platforms(name: str) -> tuple[str, list[Platform]]:
    match = _BUILD.fullmatch(name)
    if match is None:
        raise BuildError(f"{name} is not the name of a single-file build of a release")
    machine = match["machine"].rpartition("-")[2]  # On macOS, its version comes first.
    if machine not in _MACHINES:
        raise BuildError(f"{name}: there is no architecture {machine}")
    return match["version"], [Platform(_SYSTEMS[match["system"]], each) for each in _MACHINES[machine]]


def archive(builds: Iterable[Path]) -> bytes:
    """An archive of builds with what starts one; the same for the same content."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0, filename="") as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archived,
    ):
        for path in (_LAUNCHER, _LICENSE, *builds):
            content = path.read_bytes()
            entry = tarfile.TarInfo(path.name)
            entry.size, entry.mode = len(content), 0o755 if path == _LAUNCHER else 0o644
            archived.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def manifest(version: str, url: str, archives: Mapping[Platform, tuple[str, str]]) -> str:
    """The manifest: the template with one platform for each archive, which has a name and a digest."""
    document: Any = yaml.safe_load(_TEMPLATE.read_text())
    (pattern,) = document["spec"]["platforms"]
    document["spec"]["platforms"] = [
        filled(pattern, {"OS": os, "ARCH": arch, "URL": url, "ARCHIVE": name, "SHA256": digest})
        for (os, arch), (name, digest) in sorted(archives.items())
    ]
    return yaml.safe_dump(filled(document, {"VERSION": version}), sort_keys=False, width=110)


def filled(value: Any, facts: Mapping[str, str]) -> Any:
    """A value with facts in place of their names."""
    if isinstance(value, dict):
        return {key: filled(each, facts) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, facts) for each in value]
    return Template(value).substitute(facts)


if __name__ == "__main__":
    sys.exit(main())
