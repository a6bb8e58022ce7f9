"""Workloads of simulations: what is given in Python, as a scenario with the objects of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located
from moorage.api.pod import Pod
from moorage.research.scheduler_options import SimulationOptions
from moorage.research.sources import Source, is_text, manifests_of
from moorage.sim.admission import Admission
from moorage.simulation.controlled import OWNERS
from moorage.simulation.generator import Generator
from moorage.simulation.scenario import Scenario
from moorage.simulation.script import ScriptEvent, read_script, script_of
from moorage.simulation.traces.registry import DEFAULT_OPTIONS, read_trace
from moorage.simulation.workload import Arrival, arrivals_of, others_of

Workload: TypeAlias = Source | Generator | Mapping[str, Any] | Sequence[Pod] | None
"""Manifests, or a trace, by text or path; a generator, or its fields; pods. None: those that are pending."""

_GENERATOR_FIELDS: Final = tuple(each.name for each in fields(Generator))


class _Arrivals(NamedTuple):
    """A workload, with the objects that it brings to the cluster."""

    of_seed: Callable[[int], Iterable[Arrival]]
    pod_count: int = 0
    objects: Sequence[Object] = ()


def scenario_of(
    cluster: Sequence[Object], manifests: Sequence[Located], workload: Workload, options: SimulationOptions
) -> Scenario:
    """A workload in a cluster; InputError if something cannot be used.

    manifests: what the admission of new pods reads of the cluster.
    """
    arrivals = _arrivals_of(workload, manifests)
    return Scenario(
        [*cluster, *arrivals.objects],
        arrivals.of_seed,
        arrivals.pod_count,
        _events(options.get("script", ())),
    )


def _arrivals_of(workload: Workload, manifests: Sequence[Located]) -> _Arrivals:
    if workload is None:
        return _Arrivals(lambda seed: ())
    if isinstance(workload, Generator):
        return _Arrivals(workload.arrivals, workload.count)
    if isinstance(workload, Mapping) and "kind" not in workload:
        return _arrivals_of(_generator(workload), manifests)
    if isinstance(workload, str | Path) and not is_text(workload):
        path = Path(workload)
        if DEFAULT_OPTIONS.is_trace(path):
            return _Arrivals(lambda seed: read_trace(path))
    wanted, pods = _manifests_and_pods(workload)
    for located in wanted:
        _refuse_owner(located)
    asked = [*pods, *Admission([*manifests, *wanted]).objects(wanted)]
    arrivals = arrivals_of(asked)
    return _Arrivals(lambda seed: arrivals, len(arrivals), others_of(asked))


def _manifests_and_pods(
    workload: Source | Mapping[str, Any] | Sequence[Pod],
) -> tuple[list[Located], list[Pod]]:
    if isinstance(workload, str | Path):
        return manifests_of(workload), []
    items = [workload] if isinstance(workload, Mapping) else workload
    pods = [each for each in items if isinstance(each, Pod)]
    return manifests_of([dict(each) for each in items if not isinstance(each, Pod)]), pods


def _refuse_owner(located: Located) -> None:
    """InputError for an object that controllers make into pods: they need whole objects of a cluster."""
    manifest, where = located
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind in OWNERS:
        raise InputError(
            where, f"{kind}: there are no controllers here; give its pods, or `moorage simulate`"
        )


def _generator(given: Mapping[str, Any]) -> Generator:
    unknown = [key for key in given if key not in _GENERATOR_FIELDS]
    if unknown or "count" not in given:
        wrong = f"unknown field {unknown[0]}" if unknown else "count is missing"
        raise InputError("workload", f"{wrong}; expected {', '.join(_GENERATOR_FIELDS)}, or a manifest")
    return Generator(**given)


def _events(script: str | Path | Sequence[Mapping[str, str]]) -> Sequence[ScriptEvent]:
    return read_script(Path(script)) if isinstance(script, str | Path) else script_of(script, "script")
