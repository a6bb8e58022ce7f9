"""A study: what is to be simulated with what, as a file says it (`kind: Study`)."""

from __future__ import annotations

from typing import Any, Final

from msgspec import field

from moorage.api.base import Struct
from moorage.config.duration import Duration
from moorage.simulation.random_times import Arrivals, Durations
from moorage.simulation.traces.format_names import DEFAULT_TRACE_UNIT, TraceFormat

API_VERSION: Final = "moorage.io/v1alpha1"
KIND: Final = "Study"
GRID, RANDOM = "grid", "random"
MINIMISE, MAXIMISE = "minimise", "maximise"


class Range(Struct):
    """A range that a random search draws from."""

    start: float = field(name="from")
    to: float
    logarithmic: bool = False
    """Whether each order of magnitude is as probable as the next."""
    whole: bool = False
    """Whether only whole numbers are drawn."""


class Parameter(Struct):
    """A value of a configuration that is varied: one of some values, or any of a range."""

    name: str
    path: str
    """Where it is, such as `profiles[0].plugins.multiPoint.enabled[NodeAffinity].weight`."""
    values: tuple[Any, ...] = ()
    range: Range | None = None


class StudyConfiguration(Struct):
    """A configuration of the scheduler, or many of them if it has parameters."""

    name: str
    file: str = ""
    """A KubeSchedulerConfiguration; the default one without."""
    plugins: tuple[str, ...] = ()
    """Files with plugins of one's own."""
    parameters: tuple[Parameter, ...] = ()


class StudyCluster(Struct):
    """The cluster of a scenario: files as for `moorage simulate --from`, and shapes as for `--shape`."""

    files: tuple[str, ...] = ()
    shapes: tuple[str, ...] = ()


class GeneratedWorkload(Struct):
    """Random pods, as with `moorage simulate --generate`."""

    pods: int
    mean_interval: Duration = Duration(1)
    mean_duration: Duration = Duration(600)
    cpu: tuple[str, ...] = ("100m", "250m", "500m", "1", "2", "4")
    memory: tuple[str, ...] = ("128Mi", "256Mi", "512Mi", "1Gi", "2Gi", "4Gi")
    priorities: tuple[int, ...] = (0,)
    arrivals: Arrivals = Arrivals.POISSON
    burst_size: int = 10
    durations: Durations = Durations.LOGNORMAL
    resources: dict[str, tuple[str, ...]] = {}
    """Amounts of extended resources to choose among, by name."""
    gang_share: float = 0.0
    gang_size: int = 8


class StudyWorkload(Struct):
    """The workload of a scenario: files as for `moorage simulate --workload`, or random pods."""

    files: tuple[str, ...] = ()
    generate: GeneratedWorkload | None = None
    trace_format: TraceFormat | None = None
    """The format of a file that is a trace; without it, by its name."""
    trace_unit: str = DEFAULT_TRACE_UNIT


class StudyScenario(Struct):
    """A cluster, a workload, and what happens to nodes."""

    name: str
    cluster: StudyCluster
    workload: StudyWorkload = StudyWorkload()
    controllers: bool = False
    """Whether controllers run although the workload has nothing for them."""
    script: str = ""
    until: Duration | None = None
    restarts: bool = True
    """Whether pods that are preempted, drained or lost with their node are created again."""


class Objective(Struct):
    """A figure of results, and which way is better."""

    figure: str
    goal: str = MINIMISE


class Search(Struct):
    """How values of parameters are combined: all of them, or some at random."""

    type: str = GRID
    samples: int = 0
    """Random search: the number of combinations for each configuration with parameters."""
    seed: int = 0


class Study(Struct):
    """Every configuration with every scenario, version and seed."""

    configurations: tuple[StudyConfiguration, ...]
    scenarios: tuple[StudyScenario, ...]
    objectives: tuple[Objective, ...]
    seeds: Any = 1
    """A number of seeds, from 0 on; or a list of them."""
    versions: tuple[str, ...] = ()
    """Versions of Kubernetes; the default one without."""
    feature_gates: dict[str, bool] = {}
    search: Search = Search()

    def seed_list(self) -> list[int]:
        """The seeds."""
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(self.seeds)
