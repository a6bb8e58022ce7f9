"""A scenario: a cluster, a workload, and what happens to nodes.

It can be simulated several times, with other configurations, versions of Kubernetes, or seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located, completed, load_manifests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.emulation.kubernetes_version import DEFAULT_VERSION, KubernetesVersion
from moorage.scheduler.encoding import plain
from moorage.sim.admission import Admission
from moorage.simulation.controlled import ControlledObjects, controlled_objects
from moorage.simulation.generator import Generator
from moorage.simulation.live import NO_LIVE, LiveCluster
from moorage.simulation.script import ScriptEvent, read_script
from moorage.simulation.shapes import NodeShape, nodes_of
from moorage.simulation.traces.node_lists import is_node_list, read_nodes
from moorage.simulation.traces.registry import DEFAULT_OPTIONS, TraceOptions, read_trace
from moorage.simulation.traces.source import BadLine
from moorage.simulation.workload import Arrival, arrivals_of, others_of


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
    controlled: ControlledObjects | None = None
    """What an API server with controllers begins with; None: there are no controllers."""
    notes: Sequence[str] = ()
    """What may not be read of a live cluster, one line each."""


@dataclass(frozen=True, slots=True)
class ScenarioSource:
    """The files and options of a scenario, before they are read."""

    cluster: Sequence[Path] = ()
    """Manifests, dumps, and lists of machines."""
    shapes: Sequence[NodeShape] = ()
    workload: Sequence[Path] = ()
    """Manifests, or one trace."""
    generated: Generator | None = None
    script: Path | None = None
    trace: TraceOptions = DEFAULT_OPTIONS
    controllers: bool = False
    """Whether controllers run although the workload has nothing for them."""
    live: LiveCluster = NO_LIVE
    """What was read of a live cluster."""


def read_scenario(
    source: ScenarioSource, version: KubernetesVersion = DEFAULT_VERSION, skipped: BadLine | None = None
) -> Scenario:
    """A scenario; InputError if something in it cannot be used.

    skipped: called with the message about a line of a trace that is no pod, instead of InputError.
    """
    node_lists = [path for path in source.cluster if is_node_list(path)]
    listed = [node for path in node_lists for node in read_nodes(path, source.trace.units)]
    dumps = [path for path in source.cluster if path not in node_lists]
    manifests = [located for path in dumps for located in load_manifests(path)]
    traces = [path for path in source.workload if source.trace.is_trace(path)]
    others = [path for path in source.workload if path not in traces]
    wanted = [located for path in others for located in load_manifests(path)]
    controlled = _controlled(source, listed, manifests, wanted)
    admission = Admission([*manifests, *source.live.admission, *wanted], version.features)
    asked = admission.objects(wanted, keeps_whole=controlled is not None)
    given = [*listed, *source.live.objects, *admission.objects(manifests)]
    cluster = [*nodes_of(source.shapes), *given, *others_of(asked)]
    if not any(isinstance(each, Node) for each in cluster):
        raise InputError("", "there are no nodes; give --nodes, --shape, --from or --kubeconfig")
    arrivals, generated = arrivals_of(asked), source.generated
    sources = [bool(arrivals or (controlled and controlled.owners)), bool(traces), generated is not None]
    is_pending = any(isinstance(each, Pod) and not each.spec.node_name for each in cluster)
    if sum(sources) > 1 or len(traces) > 1:
        raise InputError("", "give one workload: manifests, one trace, or --generate")
    if not any(sources) and not is_pending and controlled is None:
        raise InputError("", "there are no pods to schedule; give --workload or --generate")
    script = [] if source.script is None else read_script(source.script)
    if generated is not None and generated.gang_share and not version.features.generic_workload:
        raise InputError("--gangs", "needs --emulated-version 1.37 --feature-gates GenericWorkload=true")
    notes = source.live.notes
    if traces:
        pods = partial(read_trace, traces[0], skipped, source.trace)
        return Scenario(cluster, lambda seed: pods(), 0, script, controlled, notes)
    if generated is not None:
        return Scenario(cluster, generated.arrivals, generated.count, script, controlled, notes)
    count = 0 if controlled is not None else len(arrivals)
    return Scenario(cluster, lambda seed: arrivals, count, script, controlled, notes)


def _controlled(
    source: ScenarioSource, listed: Sequence[Node], manifests: Sequence[Located], wanted: Sequence[Located]
) -> ControlledObjects | None:
    nodes = [(plain(node), "shapes") for node in (*nodes_of(source.shapes), *listed)]
    dump = [(completed(manifest, number, where), where) for number, (manifest, where) in enumerate(manifests)]
    controlled = controlled_objects([*nodes, *dump], wanted, source.controllers)
    if controlled is not None and source.live.objects:
        raise InputError(
            "--kubeconfig", "controllers need whole objects; give a dump of the cluster with --from"
        )
    return controlled
