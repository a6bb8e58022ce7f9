"""`moorage record`: a recording for `moorage replay`, from a scheduler's log."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import typer

from moorage.api.base import Object
from moorage.api.decode import InputError, decode_object
from moorage.api.manifests import Manifest
from moorage.cli.version_options import emulated
from moorage.client.client import Client
from moorage.client.connect import connected
from moorage.client.credentials import find_access
from moorage.client.kinds import NODE, POD, Kind
from moorage.config.load import default_config, load_config
from moorage.framework.runtime.profiles import Profiles
from moorage.http.errors import ConnectionFailed, KubeconfigError, RequestError
from moorage.plugins import default_registry
from moorage.scheduler.recording_file import RecordingFile
from moorage.scheduler.watched_kinds import needed_kinds
from moorage.sim.log_recording import recording_of_log
from moorage.sim.scheduler_log import logged_attempts

_FAILED: Final = 1
"""Exit status: the log or the cluster cannot be read."""


def record_log(
    log: Path,
    output: Path,
    kubeconfig: Path | None,
    config_file: Path | None,
    *,
    emulated_version: str | None,
    feature_gates: list[str] | None,
) -> None:
    """Write a recording; exits with status 1 if anything it is made from cannot be read."""
    try:
        version = emulated(emulated_version, feature_gates)
        config = default_config(version) if config_file is None else load_config(config_file, version)
        with log.open(errors="replace") as lines:
            attempts = logged_attempts(lines)
        if not attempts:
            raise InputError(str(log), "there is no attempt in it; the scheduler has to log at -v=10")
        kinds = [NODE, POD, *needed_kinds(Profiles(config, default_registry()).values())]
        made = recording_of_log(attempts, asyncio.run(_objects(kubeconfig, kinds)))
        file = RecordingFile(output, config, version, f"kube-scheduler v{version.number}, from its log")
        file.begin(made.objects)
        file.add(*made.steps)
        file.close()
    except (InputError, RequestError, ConnectionFailed, KubeconfigError, OSError) as error:
        typer.echo(f"moorage record: {error}", err=True)
        raise typer.Exit(_FAILED) from None
    typer.echo(f"{len(made.steps)} attempts of {len(attempts)} are in {output}")
    if made.missing:
        shown = ", ".join(made.missing[:3]) + (", ..." if len(made.missing) > 3 else "")
        typer.echo(f"left out, because they are not in the cluster any more: {shown}", err=True)


async def _objects(kubeconfig: Path | None, kinds: list[Kind]) -> list[Object]:
    objects: list[Object] = []
    async with connected(find_access(kubeconfig), retries=False) as client:
        for kind in kinds:
            for item in await _listed(client, kind):
                manifest = {**item, "apiVersion": kind.api_version, "kind": kind.name}
                if (obj := decode_object(manifest, kind.name)) is not None:
                    objects.append(obj)
    return objects


async def _listed(client: Client, kind: Kind) -> list[Manifest]:
    """All objects of a kind; none if the cluster does not have the kind."""
    try:
        return await client.list(kind)
    except RequestError as error:
        if not error.is_not_found:
            raise
        return []
