"""A scenario: a cluster, a workload, and what happens to nodes.

It can be simulated several times, with other configurations, versions of Kubernetes, or seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located, load_manifests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.sim.admission import Admission
from moorage.simulation.generator import Generator
from moorage.simulation.script import ScriptEvent, read_script
from moorage.simulation.shapes import NodeShape, nodes_of
from moorage.simulation.trace import BadLine, read_trace
from moorage.simulation.workload import Arrival, arrivals_of, others_of

_TRACE_SUFFIXES: Final = (".jsonl", ".csv", ".jsonl.gz", ".csv.gz")
_OWNERS: Final = (
    "Deployment",
    "ReplicaSet",
    "ReplicationController",
    "StatefulSet",
    "DaemonSet",
    "Job",
    "CronJob",
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """What is simulated."""

    cluster: Sequence[Object]
    """The objects that are there at the start."""
    workload: Callable[[int], Iterable[Arrival]]
    """The pods that arrive, for a seed; every call begins with the first."""
    pod_count: int = 0
    """The number of pods that arrive; 0 if it is not known."""
    script: Sequence[ScriptEvent] = ()


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """The files and options of a scenario, before they are read."""

    cluster: Sequence[Path] = ()
    """Manifests and dumps."""
    shapes: Sequence[NodeShape] = ()
    workload: Sequence[Path] = ()
    """Manifests, or one trace."""
    generated: Generator | None = None
    script: Path | None = None


def read_scenario(
    source: ScenarioSource, version: KubernetesVersion = DEFAULT_VERSION, skipped: BadLine | None = None
) -> Scenario:
    """A scenario; InputError if something in it cannot be used.

    skipped: called with the message about a line of a trace that is no pod, instead of InputError.
    """
    manifests = [located for path in source.cluster for located in load_manifests(path)]
    traces = [path for path in source.workload if path.name.endswith(_TRACE_SUFFIXES)]
    others = [path for path in source.workload if path not in traces]
    wanted = [located for path in others for located in load_manifests(path)]
    for located in wanted:
        refuse_owner(located)
    admission = Admission([*manifests, *wanted], version.features)
    asked = admission.objects(wanted)
    cluster = [*nodes_of(source.shapes), *admission.objects(manifests), *others_of(asked)]
    if not any(isinstance(each, Node) for each in cluster):
        raise InputError("", "there are no nodes; give --nodes, --shape or --from")
    arrivals, generated = arrivals_of(asked), source.generated
    sources = [bool(arrivals), bool(traces), generated is not None]
    is_pending = any(isinstance(each, Pod) and not each.spec.node_name for each in cluster)
    if sum(sources) > 1 or len(traces) > 1:
        raise InputError("", "give one workload: manifests, one trace, or --generate")
    if not any(sources) and not is_pending:
        raise InputError("", "there are no pods to schedule; give --workload or --generate")
    script = [] if source.script is None else read_script(source.script)
    if traces:
        return Scenario(cluster, lambda seed: read_trace(traces[0], skipped), 0, script)
    if generated is not None:
        return Scenario(cluster, generated.arrivals, generated.count, script)
    return Scenario(cluster, lambda seed: arrivals, len(arrivals), script)


def refuse_owner(located: Located) -> None:
    """InputError for an object that is made into pods by a controller: there is none in a simulation."""
    manifest, where = located
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    if kind in _OWNERS:
        raise InputError(where, f"{kind}: there are no controllers in a simulation; give its pods")
