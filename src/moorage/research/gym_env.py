"""An environment of Gymnasium: an agent chooses the nodes, production code does everything else.

One step is one decision: a pod was popped from the scheduler's queue, fits somewhere, and needs a node. An
action is the index of a node, or `wait`: the pod is tried again after its backoff. Pods that fit nowhere are
not asked about; they are tried again when something changes that may help them. Nothing is preempted, and
groups of pods are left to the scheduler. An episode ends with its simulation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.api.resource_requests import current_requests, resource_amounts
from moorage.research.cluster import Cluster
from moorage.research.results import SimulatedWorkload
from moorage.research.rewards import Transition, waiting_time
from moorage.research.scheduler_options import SimulationOptions
from moorage.research.stepping import PlacementError, SteppedSimulation
from moorage.research.workloads import Workload

try:
    import gymnasium
    from gymnasium import spaces
except ImportError:
    raise ImportError("gymnasium is not installed: pip install 'moorage[gym]'", name="gymnasium") from None

ID: Final = "moorage/Scheduling-v0"
Observation = dict[str, Any]
"""An array by name."""

_DEFAULT_SHAPE: Final = "count=8,cpu=16,memory=64Gi"
_DEFAULT_WORKLOAD: Final = {"count": 200, "interval_seconds": 5.0, "duration_seconds": 600.0}
_MAX_STEPS: Final = 10_000
_MAX_WAITING: Final = 1e9
"""Upper bound of what is observed of the queue."""
_SEEDS: Final = 2**31


class SchedulingEnv(gymnasium.Env[Observation, np.int64]):
    """Pods of a workload are to be placed in a cluster, one after another.

    cluster: by default eight equal nodes; the path of a file is one with manifests.
    workload: as for `Cluster.simulate`. Generators make another workload in every episode.
    resources: what is observed of nodes and pods.
    reward: the reward of a step.
    max_nodes: number of nodes that can be chosen; by default those of the cluster. More matter if a script
        adds some.
    max_steps: number of decisions after which an episode is truncated.
    options: until and script, as for `Cluster.simulate`.

    An observation has, with amounts as a share of the largest node's:

        nodes        (nodes,)            whether there is a node
        allocatable  (nodes, resources)  what pods may request of it
        free         (nodes, resources)  what they have left
        request      (resources,)        what the pod requests
        queue        (3,)                number of pending pods; for how long this one is waiting, in seconds;
                                         how often it was tried
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}

    def __init__(
        self,
        cluster: Cluster | str | Path | None = None,
        workload: Workload = None,
        *,
        resources: Sequence[str] = ("cpu", "memory"),
        reward: Callable[[Transition], float] = waiting_time,
        max_nodes: int | None = None,
        max_steps: int = _MAX_STEPS,
        options: SimulationOptions | None = None,
        render_mode: str | None = None,
    ) -> None:
        if cluster is None:
            cluster = Cluster.from_shapes(_DEFAULT_SHAPE)
        self._cluster = cluster if isinstance(cluster, Cluster) else Cluster.from_yaml(Path(cluster))
        self._workload = _DEFAULT_WORKLOAD if workload is None and not self._cluster.pending else workload
        self._resources, self._reward, self._max_steps = tuple(resources), reward, max_steps
        self._options: SimulationOptions = {} if options is None else options
        self.render_mode = render_mode
        nodes = self._cluster.nodes
        self._count = len(nodes) if max_nodes is None else max_nodes
        largest = (max(each.allocatable.get(name, 0) for each in nodes) for name in self._resources)
        self._scale = np.maximum(np.array([*largest], np.float64), 1.0)
        self.action_space = spaces.Discrete(self._count + 1)
        self.observation_space = _space(self._count, len(self._resources))
        self._simulation: SteppedSimulation | None = None
        self._steps = 0
        self._names: list[str | None] = []
        """The nodes by index; the index of a node stays the same while it is there."""
        self._mask = np.zeros(self._count + 1, np.int8)

    @property
    def wait(self) -> int:
        """The action that places the pod nowhere."""
        return self._count

    @property
    def simulation(self) -> SteppedSimulation:
        """The simulation of this episode."""
        if self._simulation is None:
            raise gymnasium.error.ResetNeeded("call reset() first")
        return self._simulation

    @property
    def node_names(self) -> Sequence[str | None]:
        """The nodes by the actions that choose them; None: there is none now."""
        return tuple(self._names)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode, whose workload and chances depend on the seed."""
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(_SEEDS))
        chosen: SimulationOptions = {**self._options, "seed": drawn}
        self._simulation = self._cluster.simulation(self._workload, **chosen)
        self._steps, self._names = 0, [None] * self._count
        self._go_on()
        return self._observation(), self._info()

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Place the pod at hand, or let it wait, and go on to the next decision."""
        simulation, pod = self.simulation, self.simulation.pod
        if pod is None:
            raise gymnasium.error.ResetNeeded("the episode is over; call reset()")
        now, waited = simulation.now, simulation.waiting_pod_seconds
        node, is_feasible = self._act(int(action))
        self._steps += 1
        self._go_on()
        transition = Transition(
            simulation,
            pod,
            node,
            is_feasible,
            simulation.now - now,
            simulation.waiting_pod_seconds - waited,
        )
        is_over = simulation.pod is None
        is_truncated = not is_over and self._steps >= self._max_steps
        return self._observation(), float(self._reward(transition)), is_over, is_truncated, self._info()

    def _act(self, action: int) -> tuple[str | None, bool]:
        """Carry out an action; the node that the pod got, and whether it was possible."""
        node = None if action == self.wait else self._names[action]
        is_feasible = bool(self._mask[action])
        if node is not None and is_feasible:
            try:
                self.simulation.place(node)
            except PlacementError:
                return None, False
            return node, True
        self.simulation.decline()
        return None, is_feasible

    def _go_on(self) -> None:
        """Go on to the next pod that fits somewhere."""
        simulation, feasible = self.simulation, list[str]()
        while not feasible and simulation.step() is not None:
            self._follow_nodes()
            feasible = [name for name in simulation.feasible() if name in self._names]
            if not feasible:
                simulation.decline()
        self._mask = np.array([*(name in set(feasible) for name in self._names), True], np.int8)

    def _follow_nodes(self) -> None:
        """Give the indices of nodes that are gone to new ones."""
        known = self.simulation.columns().names
        there = set(known)
        self._names = [name if name in there else None for name in self._names]
        new = (name for name in known if name not in set(self._names))
        for index, name in enumerate(self._names):
            if name is None:
                self._names[index] = next(new, None)

    def action_masks(self) -> NDArray[np.bool_]:
        """Which actions are possible: the nodes that pass the filters, and to wait."""
        return self._mask.astype(bool)

    def result(self) -> SimulatedWorkload:
        """What became of the workload up to now."""
        return self.simulation.result()

    def render(self) -> str | None:
        """The free share of every node's first resource, as text."""
        if self.render_mode != "ansi":
            return None
        free = self._observation()["free"][:, 0]
        lines = (f"{name} {share:4.0%} free" for name, share in zip(self._names, free, strict=True) if name)
        return "\n".join((repr(self.simulation), *lines))

    def close(self) -> None:
        """End the episode's simulation."""
        if self._simulation is not None:
            self._simulation.close()

    def _info(self) -> dict[str, Any]:
        pod = self.simulation.pod
        return {
            "action_mask": self._mask.copy(),
            "pod": "" if pod is None else pod.key,
            "now": self.simulation.now,
        }

    def _observation(self) -> Observation:
        nodes, count = self.simulation.columns(), len(self._resources)
        rows = [(index, nodes.snapshot.row_of[name]) for index, name in enumerate(self._names) if name]
        there, allocatable = np.zeros(self._count, np.int8), np.zeros((self._count, count), np.float32)
        free = allocatable.copy()
        if rows:
            places, found = (np.array(each, np.intp) for each in zip(*rows, strict=True))
            totals = np.stack([nodes.allocatable(name) for name in self._resources], 1)
            used = np.stack([nodes.requested(name) for name in self._resources], 1)
            there[places] = 1
            allocatable[places] = self._share(totals[found])
            free[places] = self._share(totals[found] - used[found])
        pod = self.simulation.pod
        return {
            "nodes": there,
            "allocatable": allocatable,
            "free": free,
            "request": self._share(self._requested(pod)),
            "queue": self._queue(),
        }

    def _share(self, amounts: NDArray[np.int64]) -> NDArray[np.float32]:
        return np.clip(amounts / self._scale, 0.0, 1.0).astype(np.float32)

    def _requested(self, pod: Pod | None) -> NDArray[np.int64]:
        amounts: Mapping[str, int] = {} if pod is None else resource_amounts(current_requests(pod))
        return np.array([amounts.get(name, 0) for name in self._resources], np.int64)

    def _queue(self) -> NDArray[np.float32]:
        simulation = self.simulation
        amounts = (len(simulation.pending), simulation.waited_seconds, simulation.attempts)
        return np.minimum(np.array(amounts, np.float32), np.float32(_MAX_WAITING))


def _space(nodes: int, resources: int) -> spaces.Dict:
    return spaces.Dict(
        {
            "nodes": spaces.MultiBinary(nodes),
            "allocatable": spaces.Box(0.0, 1.0, (nodes, resources), np.float32),
            "free": spaces.Box(0.0, 1.0, (nodes, resources), np.float32),
            "request": spaces.Box(0.0, 1.0, (resources,), np.float32),
            "queue": spaces.Box(0.0, _MAX_WAITING, (3,), np.float32),
        }
    )


if ID not in gymnasium.registry:
    gymnasium.register(ID, "moorage.research.gym_env:SchedulingEnv")
