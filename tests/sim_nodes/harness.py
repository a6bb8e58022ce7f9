"""An API server with simulated nodes, in one process under virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from moorage.api.manifests import Manifest
from moorage.client.kinds import NODE, POD
from moorage_cluster.nodes.settings import KubeletSettings, NodeTemplate
from moorage_cluster.nodes.simulation import SimulatedNodes
from tests.controllers.harness import Harness

IMAGE = "registry.example/app:1"


class NodesHarness(Harness):
    """Settings are those of the kubelets; latencies do not vary unless they are told to."""

    def __init__(
        self,
        nodes: NodeTemplate | None = None,
        count: int = 1,
        seed: int = 7,
        before: Callable[[NodesHarness], object] = lambda harness: None,
        runtime: Any = None,
        **settings: Any,
    ) -> None:
        super().__init__(run=False)
        before(self)
        kubelets = KubeletSettings(**{"jitter": 0.0, **settings})
        self.nodes = SimulatedNodes(self.cluster, kubelets, seed, runtime)
        self.manager.controllers.append(self.nodes)  # type: ignore[arg-type]  # run as one of them
        self.start()
        if nodes is not None:
            self.made = self._settling(self.nodes.create(nodes, count))

    def __enter__(self) -> Self:
        return self

    def pod(
        self,
        name: str,
        node: str = "node-0",
        *,
        requests: dict[str, str] | None = None,
        limits: dict[str, str] | None = None,
        says: dict[str, str] | None = None,
        container: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Manifest:
        """A pod on a node; `says` are annotations without their `moorage.io/`."""
        main = {
            "name": "main",
            "image": IMAGE,
            "resources": {"requests": requests or {}, "limits": limits or {}},
            **(container or {}),
        }
        annotations = {f"moorage.io/{key}": value for key, value in (says or {}).items()}
        return self.create(
            POD,
            {
                "metadata": {"name": name, "namespace": "default", "annotations": annotations},
                "spec": {"nodeName": node, "containers": [main], **spec},
            },
        )

    def status(self, name: str) -> Manifest:
        status: Manifest = self.get(POD, name)["status"]
        return status

    def phase(self, name: str) -> str:
        phase: str = self.status(name)["phase"]
        return phase

    def state(self, name: str, container: str = "main") -> Manifest:
        return self.container(name, container)["state"]

    def container(self, name: str, container: str = "main") -> Manifest:
        status = self.status(name)
        listed = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
        return next(each for each in listed if each["name"] == container)

    def conditions(self, name: str) -> dict[str, Manifest]:
        return {each["type"]: each for each in self.status(name).get("conditions") or ()}

    def ready(self, name: str) -> str:
        return self.conditions(name)["Ready"]["status"]

    def node_conditions(self, name: str = "node-0") -> dict[str, str]:
        return {each["type"]: each["status"] for each in self.get(NODE, name)["status"]["conditions"]}
