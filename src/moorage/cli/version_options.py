"""Options of commands that emulate a version of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Final

import typer

from moorage.api.decode import InputError
from moorage.emulation.feature_gates import GateError, parse_gates
from moorage.emulation.kubernetes_version import (
    DEFAULT_VERSION,
    KUBERNETES_VERSIONS,
    KubernetesVersion,
    VersionError,
    parse_version,
)

VERSION_FLAG: Final = "--emulated-version"
GATES_FLAG: Final = "--feature-gates"
POSSIBLE_VERSIONS: Final = " or ".join(KUBERNETES_VERSIONS)
VERSION_HELP: Final = f"Behave like Kubernetes {POSSIBLE_VERSIONS} (or kube={DEFAULT_VERSION.minor})"

GATES_HELP: Final = "Feature gates of that version to set: Name=true,Other=false; may be repeated."

EmulatedVersion = Annotated[
    str | None,
    typer.Option(VERSION_FLAG, metavar="VERSION", help=f"{VERSION_HELP}. [default: {DEFAULT_VERSION.minor}]"),
]
VersionOfServer = Annotated[
    str | None,
    typer.Option(
        VERSION_FLAG,
        metavar="VERSION",
        help=f"Behave like Kubernetes {POSSIBLE_VERSIONS}.  [default: the server's version]",
    ),
]
FeatureGateFlags = Annotated[list[str] | None, typer.Option(GATES_FLAG, metavar="GATES", help=GATES_HELP)]


def chosen_version(text: str | None) -> KubernetesVersion | None:
    """The version that the option chooses, None without one; InputError if it cannot be emulated."""
    try:
        return parse_version(() if text is None else (text,))
    except VersionError as error:
        raise InputError(VERSION_FLAG, str(error)) from None


def given_gates(texts: Iterable[str] | None) -> Mapping[str, bool]:
    """The values of feature gates that the option sets; InputError if one is not a value."""
    try:
        return parse_gates(texts or ())
    except GateError as error:
        raise InputError(GATES_FLAG, str(error)) from None


def with_gates(version: KubernetesVersion, gates: Mapping[str, bool]) -> KubernetesVersion:
    """A version with gates set; InputError if that version does not allow it."""
    try:
        return version.with_gates(gates)
    except GateError as error:
        raise InputError(GATES_FLAG, str(error)) from None


def emulated(version: str | None, gates: Iterable[str] | None) -> KubernetesVersion:
    """The version that the two options choose, by default the newest; InputError if one is invalid."""
    return with_gates(chosen_version(version) or DEFAULT_VERSION, given_gates(gates))
