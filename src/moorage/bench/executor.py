"""Runs the operations of a workload, one after another, against a cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from functools import partial
from time import perf_counter
from typing import Any, Final, TypeVar

from moorage.api.manifests import Manifest, copy
from moorage.bench.base_objects import PodSource, base_namespace, declared_features, nodes
from moorage.bench.concurrency import at_once, overlapping
from moorage.bench.devices import allocate_claims, slices_of_driver
from moorage.bench.metrics_collector import MetricsCollector
from moorage.bench.ops import (
    AllocResourceClaims,
    Barrier,
    Churn,
    CreateAny,
    CreateNamespaces,
    CreateNodes,
    CreatePodGroups,
    CreatePods,
    CreateResourceClaims,
    CreateResourceDriver,
    DeletePods,
    Op,
    Sleep,
    StartCollectingMetrics,
    StopCollectingMetrics,
    UpdateAny,
)
from moorage.bench.params import ATTEMPTED as ATTEMPTED_STAGE
from moorage.bench.params import seconds
from moorage.bench.pod_watch import ATTEMPTED, SCHEDULED, PodSelection, selected
from moorage.bench.results import WorkloadResult
from moorage.bench.target import PreparedObject, Target, WorkloadFailed
from moorage.bench.workload_files import PlannedWorkload
from moorage.client.kinds import POD, POD_GROUP
from moorage.client.waiting import sleep, within
from moorage.clock import Clock
from moorage.http.errors import ConnectionFailed, RequestError

T = TypeVar("T")

WAIT_SECONDS: Final = 600.0
"""Timeout for pods to be scheduled before the workload fails, in seconds."""
_CHURN_SECONDS: Final = 0.5
_MAX_CHURNED: Final = 100
"""Maximum number of concurrent creations where objects are created at a steady rate."""

log = logging.getLogger(__name__)


class Executor:
    """One run of one workload."""

    def __init__(
        self,
        workload: PlannedWorkload,
        target: Target,
        clock: Clock,
        wait_seconds: float = WAIT_SECONDS,
        on_collecting: Callable[[bool], None] = lambda begins: None,
    ) -> None:
        self._workload = workload
        self._target = target
        self._clock = clock
        self._wait_seconds = wait_seconds
        self._on_collecting = on_collecting
        self._namespaces: dict[str, int] = {}
        """Number of pods in each namespace that no operation has waited for yet."""
        self._nodes = 0
        self._collection: MetricsCollector | None = None
        self._results: list[tuple[str, WorkloadResult]] = []
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> list[WorkloadResult]:
        """Run all operations; returns one result for each measurement."""
        try:
            for index, op in enumerate(self._workload.ops):
                try:
                    await self._run(index, op)
                except (RequestError, ConnectionFailed) as error:
                    raise WorkloadFailed(f"op {index}: {error}") from error
                except WorkloadFailed as error:
                    raise WorkloadFailed(f"op {index}: {error}") from error
        finally:
            for task in self._background:
                task.cancel()
            await asyncio.gather(*self._background, return_exceptions=True)
        if len(self._results) > 1:
            for name, result in self._results:
                result.name += f"/{name}"
        return [result for _, result in self._results]

    async def _run(self, index: int, op: Op) -> None:
        match op:
            case CreateNodes():
                await self._create_nodes(index, op)
            case CreateNamespaces():
                await self._create_namespaces(op)
            case CreatePods():
                await self._create_pods(index, op)
            case DeletePods():
                await self._run_or_background(op.skip_wait_to_completion, self._delete_pods(op))
            case CreateAny() | CreateResourceClaims():
                await self._create_any(op)
            case CreatePodGroups():
                await self._create_pod_groups(op)
            case UpdateAny():
                await self._update_any(op)
            case CreateResourceDriver():
                slices = await slices_of_driver(self._target.client, op)
                await self._at_once(self._create(each, "") for each in slices)
            case AllocResourceClaims():
                await allocate_claims(self._target.client, op.namespace)
            case Churn():
                await self._churn(index, op)
            case Barrier():
                await self._barrier(op)
            case Sleep():
                await sleep(self._clock, seconds(op.duration))
            case StartCollectingMetrics():
                await self._start_collecting(
                    op.name or f"op{index}", PodSelection(op.namespaces, op.label_selector)
                )
            case StopCollectingMetrics():
                await self._stop_collecting()

    # -- making objects

    async def _at_once(self, work: Iterable[Coroutine[Any, Any, object]]) -> None:
        await at_once(work, self._target.concurrency)

    async def _create_nodes(self, index: int, op: CreateNodes) -> None:
        features = declared_features(self._workload.declared_features)
        made = nodes(op, index, self._workload.templates, features)
        await self._at_once(self._create_node(node, csi_node) for node, csi_node in made)
        self._nodes += op.count

    async def _create_node(self, node: Manifest, csi_node: Manifest | None) -> None:
        await self._create(node, "")
        if csi_node is not None:
            await self._create(csi_node, "")

    async def _create(self, manifest: Manifest, namespace: str) -> None:
        prepared = await self._target.prepared(manifest)
        if prepared is not None:
            await self._create_prepared(prepared, namespace)

    async def _create_namespaces(self, op: CreateNamespaces) -> None:
        path = op.namespace_template_path
        base = base_namespace() if path is None else self._workload.templates.get(path).object()
        for index in range(op.count):
            await self._need_namespace(f"{op.prefix}-{index}", base)

    async def _need_namespace(self, name: str, base: Manifest | None = None) -> None:
        if name in self._namespaces:
            return
        manifest = copy(base_namespace() if base is None else base)
        manifest.setdefault("metadata", {})["name"] = name
        try:
            await self._create(manifest, "")
        except RequestError as error:
            if not error.already_exists:
                raise
        self._namespaces[name] = 0

    async def _create_any(self, op: CreateAny | CreateResourceClaims) -> None:
        if op.namespace:
            await self._need_namespace(op.namespace)
        count = 1 if op.count is None else op.count
        params = op.template_params if isinstance(op, CreateAny) else {}
        template = self._workload.templates.get(op.template_path, params)
        for index in range(count):
            await self._create(template.object(index, count), op.namespace)

    async def _create_pod_groups(self, op: CreatePodGroups) -> None:
        """Create groups. Pods whose group has not reached the scheduler wait for it there."""
        await self._need_namespace(op.namespace)
        template = self._workload.templates.get(op.template_path, op.template_params)
        for index in range(op.count):
            group = {**template.object(index, op.count), "apiVersion": POD_GROUP.api_version}
            await self._create(group, op.namespace)

    async def _update_any(self, op: UpdateAny) -> None:
        if op.namespace:
            await self._need_namespace(op.namespace)
        count = 1 if op.count is None else op.count
        template = self._workload.templates.get(op.template_path)
        async for index in self._paced(range(count), op.update_per_second):
            await self._target.update(template.object(index, count), op.namespace, op.subresources)

    async def _paced(self, items: Iterable[T], per_second: float) -> AsyncIterator[T]:
        """The items in order, at a rate; without a pause if the rate is 0."""
        began_at = self._clock.now()
        for number, item in enumerate(items, start=1):
            if per_second:
                await self._until(began_at + number / per_second)
            yield item

    async def _until(self, moment: float) -> None:
        delay = moment - self._clock.now()
        if delay > 0:
            await sleep(self._clock, delay)

    # -- pods

    async def _create_pods(self, index: int, op: CreatePods) -> None:
        namespace = op.namespace if op.namespace is not None else f"namespace-{index}"
        await self._need_namespace(namespace)
        source = PodSource(op, self._workload.templates, self._workload.default_pod_template, namespace)
        ready = await self._prepared_pods(source, op.count)
        if op.collect_metrics:
            await self._start_collecting(namespace, PodSelection([namespace]))
        if op.steady_state:
            await self._keep_steady(op, namespace, ready)
        else:
            await self._create_all(ready, namespace)
            if op.skip_wait_to_completion:
                self._namespaces[namespace] += op.count
            else:
                await self._wait_for_count(PodSelection([namespace]), op.count, SCHEDULED)
        if op.collect_metrics:
            await self._stop_collecting()

    async def _prepared_pods(self, source: PodSource, count: int) -> list[list[PreparedObject]]:
        """All pods of an operation with what each needs, ready before the first is created."""
        return [
            [await self._ready(each) for each in (*source.storage(index), source.pod(index))]
            for index in range(count)
        ]

    async def _ready(self, manifest: Manifest) -> PreparedObject:
        prepared = await self._target.prepared(manifest)
        assert prepared is not None, manifest.get("kind")
        return prepared

    async def _create_all(self, pods: list[list[PreparedObject]], namespace: str) -> None:
        if self._collection is not None:
            self._collection.creating()
        await self._at_once(self._create_pod(parts, namespace) for parts in pods)

    async def _create_pod(self, parts: list[PreparedObject], namespace: str) -> None:
        for part in parts:
            await self._create_prepared(part, namespace)

    async def _create_prepared(self, prepared: PreparedObject, namespace: str) -> str:
        """Create an object, and record the time: a pod's latency begins here."""
        began_at = perf_counter()
        name = await self._target.create(prepared, namespace)
        if prepared.kind == POD:
            self._target.pods.was_created((namespace, name), began_at)
        return name

    async def _keep_steady(self, op: CreatePods, namespace: str, pods: list[list[PreparedObject]]) -> None:
        """Delete and recreate all pods whenever all are scheduled, until the duration is over."""
        group, cycles = PodSelection([namespace]), 0
        ends_at = self._clock.now() + seconds(op.duration)
        while (left := ends_at - self._clock.now()) > 0:
            await self._create_all(pods, namespace)
            try:
                await within(self._clock, left, self._target.pods.until(group, op.count, SCHEDULED))
            except TimeoutError:
                break
            cycles += 1
            found = selected(self._target.pods.pods(group))
            await self._at_once(self._delete_pod(*key, grace_seconds=0) for key in found)
        if not cycles and not any(pod.spec.node_name for pod in self._target.pods.pods(group)):
            raise WorkloadFailed("no pod at all got scheduled in the time that the operation has")

    async def _delete_pods(self, op: DeletePods) -> None:
        found = self._target.pods.pods(PodSelection([op.namespace], op.label_selector))
        if not op.delete_pods_per_second:
            await self._at_once(self._delete_pod(*key) for key in selected(found))
            return
        async for namespace, name in self._paced(selected(found), op.delete_pods_per_second):
            await self._delete_pod(namespace, name)

    async def _delete_pod(self, namespace: str, name: str, grace_seconds: int | None = None) -> None:
        try:
            await self._target.delete(POD, namespace, name, grace_seconds)
        except RequestError as error:
            if not error.is_not_found:
                raise

    async def _barrier(self, op: Barrier) -> None:
        for namespace in op.namespaces:
            if namespace not in self._namespaces:
                raise WorkloadFailed(f"unknown namespace {namespace}")
        at_least = ATTEMPTED if op.stage_requirement == ATTEMPTED_STAGE else SCHEDULED
        for namespace in op.namespaces or list(self._namespaces):
            group = PodSelection([namespace], op.label_selector)
            await self._wait_for_count(group, self._namespaces[namespace], at_least)
            if at_least == SCHEDULED:
                self._namespaces[namespace] = 0

    async def _wait_for_count(self, group: PodSelection, count: int, at_least: int) -> None:
        try:
            await within(self._clock, self._wait_seconds, self._target.pods.until(group, count, at_least))
        except TimeoutError:
            standing = self._target.pods.standing(group)
            raise WorkloadFailed(f"after {self._wait_seconds:g} s {standing}") from None

    # -- in the background

    async def _run_or_background(self, in_background: bool, work: Coroutine[Any, Any, None]) -> None:
        if not in_background:
            await work
            return
        task = asyncio.create_task(self._logging_failure(work))
        self._background.add(task)

    async def _logging_failure(self, work: Awaitable[None]) -> None:
        """Background work; its failure is reported, and the workload goes on."""
        try:
            await work
        except (RequestError, ConnectionFailed) as error:
            self._target.notes.append(f"in the background: {error}")

    async def _churn(self, index: int, op: Churn) -> None:
        namespace = op.namespace if op.namespace is not None else f"namespace-{index}"
        await self._need_namespace(namespace)
        ready = []
        for path in op.template_paths:
            prepared = await self._target.prepared(self._workload.templates.get(path).object())
            if prepared is not None:
                ready.append(prepared)
        churn = self._churn_create if op.mode == "create" else self._churn_recreate
        await self._run_or_background(True, churn(op, ready, namespace))

    def _rounds(self) -> Iterator[int]:
        number = 0
        while True:
            yield number
            number += 1

    async def _churn_create(self, op: Churn, ready: list[PreparedObject], namespace: str) -> None:
        """Create objects at a steady rate, independently of the server's latency."""
        async with overlapping(_MAX_CHURNED) as begin:
            async for number in self._paced(self._rounds(), 1 / _interval_seconds(op)):
                if op.number and number >= op.number:
                    return
                for each in ready:
                    await begin(partial(self._create_or_leave, each, namespace))

    async def _churn_recreate(self, op: Churn, ready: list[PreparedObject], namespace: str) -> None:
        names = [[""] * op.number for _ in ready]
        async for number in self._paced(self._rounds(), 1 / _interval_seconds(op)):
            place = number % op.number
            for each, known in zip(ready, names, strict=True):
                if known[place]:
                    await self._target.delete(each.kind, namespace, known[place])
                    known[place] = ""
                else:
                    known[place] = await self._create_or_leave(each, namespace)

    async def _create_or_leave(self, prepared: PreparedObject, namespace: str) -> str:
        """Create an object; returns the empty name if it is rejected."""
        if self._collection is not None:
            self._collection.creating()
        try:
            return await self._create_prepared(prepared, namespace)
        except RequestError as error:
            log.warning("churning: %s", error)
            return ""

    # -- measuring

    async def _start_collecting(self, name: str, group: PodSelection) -> None:
        if self._collection is not None:
            raise WorkloadFailed("metrics are being collected already")
        collection = MetricsCollector(self._target, group, name)
        await collection.begin()
        self._collection = collection
        self._on_collecting(True)

    async def _stop_collecting(self) -> None:
        collection, self._collection = self._collection, None
        if collection is None:
            raise WorkloadFailed("metrics are not being collected")
        self._on_collecting(False)
        workload = self._workload
        result = await collection.end(
            workload.name,
            self._nodes,
            [*workload.notes, *self._target.notes],
            workload.threshold,
            workload.threshold_metric,
        )
        self._results.append((collection.name, result))


def _interval_seconds(op: Churn) -> float:
    return op.interval_milliseconds / 1000 or _CHURN_SECONDS
