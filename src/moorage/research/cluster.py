"""A cluster to ask, to change and to simulate with."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Self, TypeAlias, Unpack

from msgspec.structs import replace as replaced

from moorage.api.base import Object
from moorage.api.decode import InputError
from moorage.api.files import Located, completed, load_manifests
from moorage.api.pod import Pod
from moorage.client.credentials import find_access
from moorage.explain.explanation import explain
from moorage.explain.loading import fill
from moorage.explain.placing import placed
from moorage.explain.report import Report, report
from moorage.framework.interface.cycle_state import CycleState
from moorage.research.node_state import NodeState, node_states
from moorage.research.own_thread import LoopThread, apart
from moorage.research.plans import Plans
from moorage.research.results import (
    PodDecision,
    PodExplanation,
    SimulatedWorkload,
    pod_decision,
    pod_explanation,
    simulated_workload,
)
from moorage.research.scheduler_options import (
    SchedulerOptions,
    SimulationOptions,
    settings_of,
    settings_of_simulation,
)
from moorage.research.sources import (
    ClusterContent,
    Source,
    content_of,
    content_of_server,
    is_text,
    manifests_of,
)
from moorage.research.stepping import SteppedSimulation
from moorage.research.workloads import Workload, scenario_of
from moorage.sim.admission import Admission
from moorage.sim.cluster import SimulatedCluster
from moorage.simulation.run import simulated
from moorage.simulation.settings import Settings
from moorage.simulation.shapes import NodeShape, nodes_of, parse_shape
from moorage.simulation.virtual_loop import VirtualLoop

SomePod: TypeAlias = Pod | Source
"""A pod: as an object, a manifest, YAML, a file, or `namespace/name` of one that is in the cluster."""


class Cluster:
    """A cluster in memory, with a scheduler that decides about pods for it.

    `schedule` places pods in it, one after another; everything else leaves it as it is. Nothing is ever
    written to the cluster that it was read from.
    """

    def __init__(self, content: ClusterContent, options: SchedulerOptions) -> None:
        """Use `from_yaml`, `from_dump`, `from_kubeconfig` or `from_shapes`."""
        self.notes = list(content.notes)
        """What could not be read of a live cluster, one line each."""
        self._manifests = content.manifests
        self._options = options
        self._settings = settings = settings_of(options, content.version)
        self._numbers = count()
        self._simulated = SimulatedCluster(
            (), settings.config, settings.registry, settings.seed, version=settings.version
        )
        fill(self._simulated, content.objects)
        pods = (each for each in content.objects if isinstance(each, Pod))
        self._pending = {pod.key: pod for pod in pods if not pod.spec.node_name and not pod.finished}

    @classmethod
    def from_yaml(cls, source: Source, **options: Unpack[SchedulerOptions]) -> Self:
        """A cluster of manifests: text, a file, or Python's dicts."""
        settings_of(options)  # Plugins may declare kinds of objects, which are to be read.
        return cls(content_of(manifests_of(source)), options)

    @classmethod
    def from_dump(cls, *paths: str | Path, **options: Unpack[SchedulerOptions]) -> Self:
        """A cluster of files that `kubectl get -A -o json` (or yaml) wrote."""
        settings_of(options)
        manifests = [located for path in paths for located in load_manifests(Path(path))]
        return cls(content_of(manifests), options)

    @classmethod
    def from_kubeconfig(
        cls, path: str | Path | None = None, context: str = "", **options: Unpack[SchedulerOptions]
    ) -> Self:
        """A live cluster, as it is now: by default the one that kubectl uses. It is only read."""
        access = find_access(None if path is None else Path(path), context=context)
        with LoopThread() as thread:
            content = thread.run(content_of_server(access))
        return cls(content, options)

    @classmethod
    def from_shapes(cls, *shapes: NodeShape | str, **options: Unpack[SchedulerOptions]) -> Self:
        """Empty nodes, such as `count=10,cpu=16,memory=64Gi` or `name=gpu,count=2,...,nvidia.com/gpu=8`."""
        parsed = [parse_shape(each) if isinstance(each, str) else each for each in shapes]
        return cls(ClusterContent(nodes_of(parsed)), options)

    def copy(self) -> Self:
        """Another cluster with the same objects and scheduler."""
        version = self._settings.version
        content = ClusterContent(self.objects, self._manifests, self.notes, version)
        return type(self)(content, self._options)

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    # -- what there is

    @property
    def nodes(self) -> list[NodeState]:
        """All nodes, with what is on them."""
        return list(node_states(self._simulated.cache))

    @property
    def pods(self) -> list[Pod]:
        """All pods on nodes."""
        return list(self._simulated.cache.pods())

    @property
    def pending(self) -> list[Pod]:
        """All pods without a node."""
        return list(self._pending.values())

    @property
    def objects(self) -> list[Object]:
        """All objects that scheduling reads."""
        cache = self._simulated.cache
        return [*cache.nodes(), *cache.objects, *cache.pods(), *self._pending.values()]

    # -- one pod

    def decide(self, pod: SomePod) -> PodDecision:
        """Where a pod would go, and why; nothing changes. One that is on a node is taken from it first."""
        asked = self._pod(pod)
        if standing := self._simulated.not_tried(asked):
            return pod_decision(Report(asked.key, None, standing, (), 0))
        return pod_decision(self._off_its_node(asked))

    def schedule(self, pod: SomePod) -> PodDecision:
        """Decide about a pod, and place it in the cluster; if it fits nowhere, it is pending from now on.

        Pods that preemption would evict stay where they are: a simulation shows what becomes of them.
        """
        asked = self._pod(pod)
        if asked.spec.scheduling_group is not None and self._simulated.cache.pod_groups.is_enabled:
            raise InputError(f"pod {asked.key}", "it is in a group, which is decided about as a whole")
        made = apart(partial(placed, self._simulated, asked))
        self._pending.pop(asked.key, None)
        if made.node is None:
            self._pending[asked.key] = replaced(asked, spec=replaced(asked.spec, node_name=""))
        return pod_decision(made)

    def explain(self, pod: SomePod) -> PodExplanation:
        """Why a pod is where it is, or nowhere, and what would help; nothing changes."""
        return pod_explanation(explain(self._simulated, self._pod(pod)))

    def _off_its_node(self, pod: Pod) -> Report:
        """The decision for a pod as if it were pending."""
        cache = self._simulated.cache
        known = [each for each in cache.pods() if each.key == pod.key]
        for each in known:
            cache.remove_pod(each)
        pending = replaced(pod, spec=replaced(pod.spec, node_name=""))
        try:
            decision = self._simulated.decide(pending, CycleState())
            made = report(decision)
        finally:
            for each in known:
                cache.put_pod(each)
        if decision.post_filter is not None:
            decision.post_filter.done()
        return made

    def _pod(self, pod: SomePod) -> Pod:
        if isinstance(pod, Pod):
            return pod
        if isinstance(pod, str) and not is_text(pod) and (known := self._known(pod)) is not None:
            return known
        pods = self._new_pods(pod)
        if len(pods) != 1:
            raise InputError("pod", "expected the manifest of one Pod, and nothing else")
        return pods[0]

    def _new_pods(self, source: Source) -> list[Pod]:
        """The pods of manifests, admitted as an API server would."""
        manifests = [self._numbered(each) for each in manifests_of(source, "pod")]
        objects = Admission([*self._manifests, *manifests], self._settings.version.features).objects(
            manifests
        )
        pods = [each for each in objects if isinstance(each, Pod)]
        if len(pods) != len(manifests):
            raise InputError("pod", "expected manifests of Pods, and nothing else")
        return pods

    def _known(self, name: str) -> Pod | None:
        key = name if "/" in name else f"default/{name}"
        found: Iterable[Pod] = (each for each in self._simulated.cache.pods() if each.key == key)
        return self._pending.get(key) or next(iter(found), None)

    def _numbered(self, located: Located) -> Located:
        """A manifest with a name of its own, if it has only the beginning of one."""
        manifest, where = located
        return completed(manifest, next(self._numbers), where), where

    # -- workloads

    @property
    def plan(self) -> Plans:
        """Plans for this cluster, on paper: `fit`, `nodes`, `drain`, `consolidation` and `failures`."""
        return Plans(self.objects, self._settings, self._new_pods)

    def simulate(self, workload: Workload = None, **options: Unpack[SimulationOptions]) -> SimulatedWorkload:
        """What becomes of a workload in this cluster, in virtual time; nothing changes.

        workload: by default the pods that are pending.
        options: seed, config, until, script, restarts_pods; see `SimulationOptions`.
        """
        scenario = scenario_of(self.objects, self._manifests, workload, options)
        settings = self._settings_for(options)
        with LoopThread(VirtualLoop) as thread:
            run = thread.run(simulated(scenario, scenario.workload(settings.seed), settings))
        return simulated_workload(run)

    def simulation(
        self, workload: Workload = None, **options: Unpack[SimulationOptions]
    ) -> SteppedSimulation:
        """The same simulation, step by step; decisions may be one's own."""
        scenario = scenario_of(self.objects, self._manifests, workload, options)
        return SteppedSimulation(scenario, self._settings_for(options))

    def _settings_for(self, options: SimulationOptions) -> Settings:
        settings = self._settings
        if (config := options.get("config")) is not None:
            settings = settings_of({**self._options, "config": config}, settings.version)
        return settings_of_simulation(settings, options)

    def __repr__(self) -> str:
        cache, pending = self._simulated.cache, len(self._pending)
        return f"cluster of {cache.node_count:,} nodes with {cache.pod_count:,} pods, and {pending:,} pending"
