"""Workload files for tests, and their runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import yaml

from moorage.bench.engine_target import EngineTarget, engine_target
from moorage.bench.pod_watch import PodSelection, SeenPod
from moorage.bench.results import BenchmarkReport, WorkloadResult
from moorage.bench.runner import OpenTarget, Runner, new_report
from moorage.bench.workload_files import PlannedWorkload, read_workloads
from moorage.sim.object_store import ObjectStore

BENCH = Path(__file__).parents[2] / "bench"
WAIT_SECONDS = 20.0


def node(**fields: Any) -> dict[str, Any]:
    """A node's template with room for ten pods."""
    status = {"capacity": {"cpu": "1", "memory": "4Gi", "pods": "10"}}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": "node-"},
        "status": status,
    } | fields


def pod(
    name: str = "", labels: dict[str, str] | None = None, cpu: str = "100m", **spec: Any
) -> dict[str, Any]:
    """A pod's template."""
    meta: dict[str, Any] = {"name": name} if name else {"generateName": "pod-"}
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


NODES = {"opcode": "createNodes", "count": 2, "nodeTemplatePath": "node.yaml"}
MEASURED = {"opcode": "createPods", "count": 3, "podTemplatePath": "pod.yaml", "collectMetrics": True}
SIZE = {"name": "tiny"}


class Files:
    """A directory with a workload file and templates."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "performance-config.yaml"
        self.template("node.yaml", node())
        self.template("pod.yaml", pod())

    def template(self, name: str, content: dict[str, Any] | str) -> None:
        """Write a template: an object, or any text."""
        text = content if isinstance(content, str) else yaml.safe_dump(content)
        (self.directory / name).write_text(text)

    def case(self, *ops: dict[str, Any], name: str = "Case", **fields: Any) -> Path:
        """Write a file with one test case, of one workload unless told otherwise."""
        return self.cases({"name": name, "workloadTemplate": list(ops), "workloads": [SIZE], **fields})

    def cases(self, *cases: dict[str, Any]) -> Path:
        """Write a file with these test cases."""
        self.path.write_text(yaml.safe_dump(list(cases)))
        return self.path

    def run(self, *ops: dict[str, Any], **fields: Any) -> WorkloadResult:
        """The result of a test case with these operations, which has to have exactly one."""
        report = run(read_workloads(self.case(*ops, **fields)))
        assert not report.failed, report.failed
        (result,) = report.workloads
        return result

    def failure(self, *ops: dict[str, Any], **fields: Any) -> str:
        """Why a test case with these operations fails."""
        (failed,) = run(read_workloads(self.case(*ops, **fields)), wait_seconds=0.2).failed
        assert failed.name == "Case/tiny"
        return failed.reason


def run(
    workloads: list[PlannedWorkload],
    wait_seconds: float = WAIT_SECONDS,
    open_target: OpenTarget = lambda workload: engine_target(
        workload.config, features=workload.declared_features
    ),
) -> BenchmarkReport:
    """What comes of workloads over a store."""
    report = new_report("engine")
    asyncio.run(Runner(open_target=open_target, wait_seconds=wait_seconds).run(workloads, report))
    return report


class EngineRun:
    """A run whose cluster can be looked at afterwards."""

    def __init__(self, files: Files, *ops: dict[str, Any], **fields: Any) -> None:
        self._targets: list[EngineTarget] = []
        workloads = read_workloads(files.case(*ops, **fields))
        self.report: BenchmarkReport = run(workloads, open_target=self._opened)
        assert not self.report.failed, self.report.failed

    @asynccontextmanager
    async def _opened(self, workload: PlannedWorkload) -> AsyncIterator[EngineTarget]:
        async with engine_target(workload.config, features=workload.declared_features) as target:
            self._targets.append(target)
            yield target
            target.scheduler.queue.validate()
            target.scheduler.cache.validate()

    @property
    def store(self) -> ObjectStore:
        return self._targets[-1]._store

    def all(self, kind: Any) -> list[Any]:
        return list(self.store.table(kind).values())

    def pods(self, namespace: str) -> list[SeenPod]:
        return self._targets[-1].pods.pods(PodSelection([namespace]))
