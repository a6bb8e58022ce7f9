"""A recording as plain objects, as a client of an API server wants them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.api.decode import convert
from moorage.api.files import load_json
from moorage.api.manifests import Manifest
from moorage.sim.recording import Expectation

RECORDINGS = Path(__file__).parents[2] / "recordings"
_ENDING = ".json.gz"


@dataclass(frozen=True, slots=True)
class PodStep:
    """A pod, and what the real scheduler decided about it."""

    pod: Manifest
    expect: Expectation


@dataclass(frozen=True, slots=True)
class ChangeStep:
    """A change of the cluster."""

    create: list[Manifest]
    replace: list[Manifest]
    delete: list[Manifest]


@dataclass(frozen=True, slots=True)
class Recording:
    """A cluster, and what was decided in it."""

    name: str
    profiles: list[Manifest]
    """Empty: the default profile."""
    preempts: bool
    objects: list[Manifest]
    steps: list[PodStep | ChangeStep]

    @property
    def kinds(self) -> set[str]:
        """The kinds of objects there are."""
        return {obj["kind"] for obj in self.objects}


def family_of(name: str) -> str:
    """The family of a recording."""
    return name.rpartition("-")[0]


def families() -> set[str]:
    """All families that there are recordings of."""
    return {family_of(path.name.removesuffix(_ENDING)) for path in RECORDINGS.glob(f"*{_ENDING}")}


def load(name: str) -> Recording:
    """A recording by its name."""
    document: Any = load_json(RECORDINGS / f"{name}{_ENDING}")
    return Recording(
        name,
        (document.get("config") or {}).get("profiles") or [],
        bool(document.get("preempts")),
        document["objects"],
        [_step(step) for step in document["steps"]],
    )


def _step(step: Manifest) -> PodStep | ChangeStep:
    if "pod" in step:
        return PodStep(step["pod"], convert(step["expect"], Expectation))
    return ChangeStep(step.get("create") or [], step.get("replace") or [], step.get("delete") or [])
