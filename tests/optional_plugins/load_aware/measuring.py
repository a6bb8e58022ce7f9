"""Nodes, pods and what is measured of them: for tests of LoadAware."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from moorage import Cache, Engine, Handle, Nodes, Object, Pod, default_registry, parse_config
from moorage.api.decode import convert
from moorage.clock import VirtualClock
from moorage.engine.decision import Decision
from moorage.framework.interface.handle import Live
from moorage.framework.runtime.framework import Framework
from moorage.optional_plugins.load_aware.plugin import LoadAware
from moorage.optional_plugins.load_aware.readings import NodeMetrics
from tests.builders import make_node, make_pod

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 1 << 30
ROOM = {"cpu": "10", "memory": "10Gi", "pods": "20"}


def time(seconds: float) -> str:
    """A time some seconds after NOW, as objects have it."""
    return f"{NOW + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def manifest(name: str, cpu: str = "1", memory: str = "1Gi", at: float = 0.0, window: str = "10s") -> Any:
    """What metrics.k8s.io says of a node."""
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "NodeMetrics",
        "metadata": {"name": name},
        "timestamp": time(at),
        "window": window,
        "usage": {"cpu": cpu, "memory": memory},
    }


def metrics(name: str, cpu: str = "1", memory: str = "1Gi", at: float = 0.0) -> NodeMetrics:
    return convert(manifest(name, cpu, memory, at), NodeMetrics)


def node(name: str) -> Object:
    return make_node(name, allocatable=ROOM)


def running(name: str, on: str, started: float | None = -3600.0, **requests: str) -> Pod:
    """A pod on a node that started some seconds after NOW; None: its kubelet has not said so yet."""
    status = {} if started is None else {"startTime": time(started)}
    return make_pod(name, uid=name, on=on, requests=requests, status=status)


def configuration(args: Mapping[str, Any] | None = None, *others: str) -> dict[str, Any]:
    """The plugin with arguments beside some other ones, and no more."""
    names = ("PrioritySort", *others, "LoadAware", "DefaultBinder")
    enabled = [{"name": name} for name in names]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": enabled, "disabled": [{"name": "*"}]}},
                "pluginConfig": [{"name": "LoadAware", "args": dict(args or {})}],
            }
        ],
    }


class Scene:
    """A cluster that is decided in: by the plugin beside NodeResourcesFit, which scores nothing.

    client: what usage is read from; None: a cluster from files.
    """

    def __init__(
        self, objects: Iterable[Object], args: Mapping[str, Any] | None = None, client: Any = None
    ) -> None:
        self.clock = VirtualClock(epoch=NOW)
        self.cache = Cache(objects)
        self.announced: list[str] = []
        live = None if client is None else self._live(client)
        self.handle = Handle(
            self.cache.objects, clock=self.clock, snapshot=self.cache.latest_snapshot, live=live
        )
        config = configuration(args, "NodeResourcesFit")
        profile = config["profiles"][0]
        profile["plugins"]["score"] = {"disabled": [{"name": "NodeResourcesFit"}]}
        (parsed,) = parse_config(config, "test").profiles
        self.framework = Framework(parsed, default_registry(), self.handle)
        self.engine = Engine(seed=1)
        self.cache.snapshot()

    def _live(self, client: Any) -> Live:
        nothing = cast(Any, None)
        return Live(client, nothing, nothing, nothing, announce=lambda name, _: self.announced.append(name))

    @property
    def plugin(self) -> LoadAware:
        made = self.framework.plugins["LoadAware"]
        assert isinstance(made, LoadAware)
        return made

    @property
    def nodes(self) -> Nodes:
        return Nodes(self.cache.snapshot())

    def decide(self, pod: Pod) -> Decision:
        return self.engine.decide(self.framework, pod, self.cache.snapshot())

    def place(self, pod: Pod) -> str | None:
        """Decide for a pod and assume it on its node."""
        found = self.decide(pod).node
        if found is not None:
            self.cache.assume_pod(pod, found)
        return found

    def scores(self, pod: Pod) -> dict[str, int]:
        decision = self.decide(pod)
        assert decision.scores is not None
        scores = decision.scores.by_plugin["LoadAware"].tolist()
        return dict(zip(decision.feasible.names, scores, strict=True))

    async def poll(self) -> None:
        """Do what is done again and again."""
        for call in self.handle.periodic._calls:
            await call.method()
