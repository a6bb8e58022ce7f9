"""`moorage record`: a recording for `moorage replay`, from a scheduler's log."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

import typer
from msgspec.structs import replace

from moorage.api.base import Object
from moorage.api.decode import InputError, decode_object
from moorage.api.files import load_manifests
from moorage.api.manifests import Manifest
from moorage.cli.version_options import chosen_version, given_gates, with_gates
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import NODE, POD, Kind
from moorage.client.server_version import server_version
from moorage.config.load import default_config, load_config
from moorage.config.types import SchedulerConfiguration
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion, nearest_version
from moorage.framework.runtime.profiles import Profiles
from moorage.http.errors import ConnectionFailed, KubeconfigError, RequestError
from moorage.plugins import default_registry
from moorage.scheduler.recording_file import RecordingFile
from moorage.scheduler.watched_kinds import needed_kinds
from moorage.sim.scheduler_log.happenings import LogReader
from moorage.sim.scheduler_log.recording import LogRecording, at_several_times, recording_of_log

_FAILED: Final = 1
"""Exit status: the log or the cluster cannot be read."""
_MAX_NAMES: Final = 3
"""Maximum number of names that are shown of many."""
_GZIP_MAGIC: Final = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class RecordOptions:
    """What is recorded, from what."""

    logs: Sequence[Path]
    output: Path
    dumps: Sequence[Path]
    kubeconfig: Path | None
    config: Path | None
    emulated_version: str | None
    feature_gates: list[str] | None

    def version(self, logged: str) -> KubernetesVersion:
        """The version to emulate: the one that is chosen, else that in the log, else the API server's.

        logged: the version in the log, such as `v1.36.4`, or empty.
        """
        version = chosen_version(self.emulated_version)
        if version is None and logged:
            major, minor, *_ = [*logged.removeprefix("v").split("."), ""]
            version = nearest_version(major, minor)
        if version is None:
            version = DEFAULT_VERSION if self.dumps else asyncio.run(_version_of_server(self.kubeconfig))
        return with_gates(version, given_gates(self.feature_gates))

    def configuration(self, version: KubernetesVersion) -> SchedulerConfiguration:
        """The scheduler's configuration."""
        return default_config(version) if self.config is None else load_config(self.config, version)


def record_log(options: RecordOptions) -> None:
    """Write a recording; exits with status 1 if anything it is made from cannot be read."""
    reader = LogReader()
    try:
        for path in options.logs:
            _read(path, reader)
        attempt_count = len(list(reader.attempts))
        if not attempt_count:
            where = ", ".join(map(str, options.logs))
            raise InputError(where, "there is no attempt in it; the scheduler has to log at -v=10")
        version = options.version(reader.version)
        config = options.configuration(version)
        profiles = Profiles(config, default_registry())
        objects = _objects(options, [NODE, POD, *needed_kinds(profiles.values())])
        made = recording_of_log(reader.happenings, at_several_times(objects), profiles)
        reference = f"kube-scheduler {reader.version or f'v{version.number}'}, from its log"
        file = RecordingFile(options.output, _of_all_nodes(config), version, reference)
        file.begin(made.objects)
        file.add(*made.steps)
        file.close()
    except (InputError, RequestError, ConnectionFailed, KubeconfigError, OSError) as error:
        typer.echo(f"moorage record: {error}", err=True)
        raise typer.Exit(_FAILED) from None
    typer.echo(f"{made.attempt_count} attempts of {attempt_count} are in {options.output}")
    for note in _notes(made, reader.cut_count):
        typer.echo(note, err=True)


def _read(path: Path, reader: LogReader) -> None:
    try:
        with _opened(path) as lines:
            reader.read(lines)
    except (EOFError, zlib.error) as error:
        raise InputError(str(path), f"the compressed file is damaged: {error}") from None


def _opened(path: Path) -> TextIO:
    """A log, which may be compressed as rotated ones are."""
    with path.open("rb") as file:
        is_compressed = file.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    if is_compressed:
        return gzip.open(path, "rt", errors="replace")
    return path.open(errors="replace")


def _of_all_nodes(config: SchedulerConfiguration) -> SchedulerConfiguration:
    """A configuration without samples of nodes: the steps say which nodes were found."""
    profiles = tuple(replace(each, percentage_of_nodes_to_score=None) for each in config.profiles)
    return replace(config, percentage_of_nodes_to_score=100, profiles=profiles)


def _notes(made: LogRecording, cut_count: int) -> Iterator[str]:
    """What is not in the recording, and why."""
    for reason, pods in made.left_out.items():
        yield f"{len(pods)} left out, because {reason}: {_some(dict.fromkeys(pods))}"
    if made.unknown:
        yield f"not known, in a file or from the cluster: {_some(sorted(made.unknown))}"
    if made.updated_nodes:
        yield f"updated meanwhile, and taken as they are now: nodes {_some(sorted(made.updated_nodes))}"
    if made.unscored_count:
        yield f"{made.unscored_count} without scores, which a scheduler logs at -v=10"
    if cut_count:
        yield f"{cut_count} entries of the log are cut off, and were not read"


def _some(names: Collection[str]) -> str:
    shown = list(names)[:_MAX_NAMES]
    return ", ".join(shown) + (f" and {len(names) - len(shown)} more" if len(names) > len(shown) else "")


def _objects(options: RecordOptions, kinds: Sequence[Kind]) -> list[Object]:
    """The cluster, from files or from the API; of an object at several times, the oldest version first."""
    if not options.dumps:
        return asyncio.run(_from_server(options.kubeconfig, kinds))
    located = [each for path in options.dumps for each in load_manifests(path)]
    return _decoded((each, where) for each, where in located if isinstance(each, dict))


async def _version_of_server(kubeconfig: Path | None) -> KubernetesVersion:
    async with connected(find_access(kubeconfig), retries=False) as client:
        return await server_version(client)


async def _from_server(kubeconfig: Path | None, kinds: Sequence[Kind]) -> list[Object]:
    objects: list[Object] = []
    async with connected(find_access(kubeconfig), retries=False) as client:
        for kind in kinds:
            type_meta = {"apiVersion": kind.api_version, "kind": kind.name}
            listed = await _listed(client, kind)
            objects += _decoded(({**item, **type_meta}, kind.name) for item in listed)
    return objects


def _decoded(manifests: Iterator[tuple[Manifest, str]]) -> list[Object]:
    decoded = (decode_object(manifest, where) for manifest, where in manifests)
    return [obj for obj in decoded if obj is not None]


async def _listed(client: Client, kind: Kind) -> list[Manifest]:
    """All objects of a kind; none if the cluster does not have the kind."""
    try:
        return await client.list(kind)
    except RequestError as error:
        if not error.is_not_found:
            raise
        return []
