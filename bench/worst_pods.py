"""What the most expensive pods that a user of one namespace can create cost the scheduler, at 5,000 nodes.

Run `.venv/bin/python bench/worst_pods.py [PART_OF_A_NAME ...]`; progress goes to standard error. A shape from
`SHAPES` is created in a cluster that is a store in this process, with the production scheduler, all default
plugins, its queue and its failure handling beside it. Figures are CPU milliseconds of the one event loop, the
best of a few attempts, and kibibytes that are still held after everything the shape created was deleted.

A further shape is one more entry of `SHAPES`: a name and a function from a prefix, which makes its names and
labels different from those of the last round, to manifests. The last manifest is the pod that is measured.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from time import process_time
from typing import Any

from rich.console import Console
from rich.table import Table

from moorage.api.base import Object
from moorage.api.decode import KINDS, convert
from moorage.api.manifests import Manifest, utc_now
from moorage.api.pod import Pod
from moorage.bench.store import Store
from moorage.bench.store_client import StoreClient, StoreInformer
from moorage.client import kinds
from moorage.client.kinds import POD, Kind
from moorage.clock import VirtualClock
from moorage.config.load import default_config
from moorage.plugins import default_registry
from moorage.scheduler.scheduler import Scheduler

NODES = 5000
ZONES = 10
BACKGROUND_PODS = 10_000
BACKGROUND_APPS = 200
REPEATS = 2
TENANT = "tenant"
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
_KINDS = {each.name: each for each in vars(kinds).values() if isinstance(each, Kind)}

Objects = Iterable[Manifest]


@dataclass(frozen=True, slots=True)
class Shape:
    """Something a user can create; the last object is the pod whose attempts are measured."""

    name: str
    build: Callable[[str], Objects]


# Manifests


def pod(prefix: str, name: str = "worst", *, cpu: str = "100m", labels: Any = None, **spec: Any) -> Manifest:
    containers = [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}]
    return {
        "kind": "Pod",
        "metadata": {"name": f"{prefix}-{name}", "namespace": TENANT, "labels": labels or {"app": prefix}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 0, **spec},
    }


def node_affinity(terms: Sequence[Manifest], *, preferred: bool = False) -> Manifest:
    if preferred:
        weighted = [{"weight": 1 + index % 100, "preference": term} for index, term in enumerate(terms)]
        return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
    selector = {"nodeSelectorTerms": list(terms)}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def pod_affinity(field: str, terms: Sequence[Manifest], *, preferred: bool = False) -> Manifest:
    if preferred:
        weighted = [{"weight": 1 + index % 100, "podAffinityTerm": term} for index, term in enumerate(terms)]
        return {field: {"preferredDuringSchedulingIgnoredDuringExecution": weighted}}
    return {field: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def term(key: str, labels: Manifest | None = None, **fields: Any) -> Manifest:
    selector = {"matchLabels": labels} if labels is not None else {}
    return {"topologyKey": key, "labelSelector": selector, **fields}


def expression(key: str, operator: str, *values: str) -> Manifest:
    return {"key": key, "operator": operator, "values": list(values)}


def spread(key: str, labels: Manifest, when: str = "DoNotSchedule") -> Manifest:
    selector = {"matchLabels": labels}
    return {"maxSkew": 10_000, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": selector}


def claim(prefix: str, index: int, **spec: Any) -> Manifest:
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **spec}
    meta = {"name": f"{prefix}-{index}", "namespace": TENANT}
    return {"kind": "PersistentVolumeClaim", "metadata": meta, "spec": wanted}


def claimed(prefix: str, count: int) -> list[Manifest]:
    return [
        {"name": f"v{index}", "persistentVolumeClaim": {"claimName": f"{prefix}-{index}"}}
        for index in range(count)
    ]


# Shapes: each takes how many of something a pod has


def node_selector(count: int) -> Callable[[str], Objects]:
    return lambda prefix: [pod(prefix, nodeSelector={f"{prefix}-{n}": "x" for n in range(count)})]


def known_node_selector(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        terms = [{"matchExpressions": [expression(f"known-{n % 20}", "Exists") for n in range(count)]}]
        return [pod(prefix, affinity=node_affinity(terms))]

    return build


def node_terms(count: int, width: int, operator: str = "In", *, preferred: bool = False) -> Any:
    def build(prefix: str) -> Objects:
        terms = [
            {"matchExpressions": [_node_expression(prefix, operator, n, w) for w in range(width)]}
            for n in range(count)
        ]
        return [pod(prefix, affinity=node_affinity(terms, preferred=preferred))]

    return build


def _node_expression(prefix: str, operator: str, number: int, place: int) -> Manifest:
    if operator in ("Gt", "Lt"):
        return expression(HOSTNAME, operator, str(number))
    if operator == "NotIn":
        return expression(HOSTNAME, operator, f"node-{number}")
    return expression(HOSTNAME, operator, f"node-{number}", f"{prefix}-{place}")


def node_values(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        values = [f"{prefix}-{n}" for n in range(count)]
        return [
            pod(prefix, affinity=node_affinity([{"matchExpressions": [expression(ZONE, "In", *values)]}]))
        ]

    return build


def node_fields(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        terms = [{"matchFields": [expression("metadata.name", "In", f"{prefix}-{n}")]} for n in range(count)]
        return [pod(prefix, affinity=node_affinity(terms))]

    return build


def pod_terms(
    field: str, count: int, *, preferred: bool = False, keys: bool = False, labels: str = "own", **more: Any
) -> Callable[[str], Objects]:
    """labels: `own` for selectors that mean nothing, `apps` for others' pods, `any` for all pods."""

    def build(prefix: str) -> Objects:
        terms = []
        for number in range(count):
            key = f"{prefix}-{number}" if keys else (ZONE, HOSTNAME)[number % 2]
            made = term(key, {"app": f"{prefix}-{number}"}, **more)
            if labels == "apps":
                made = term(key, {"app": f"app-{number % BACKGROUND_APPS}"}, namespaces=["default"])
            elif labels == "any":
                some = expression(f"{prefix}-{number}", "DoesNotExist")
                made = {"topologyKey": key, "labelSelector": {"matchExpressions": [some]}}
                made["namespaceSelector"] = {}
            terms.append(made)
        return [pod(prefix, affinity=pod_affinity(field, terms, preferred=preferred))]

    return build


def pod_term_namespaces(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        named = [f"{prefix}-{n}" for n in range(count)]
        terms = [term(ZONE, {"app": prefix}, namespaces=named)]
        return [pod(prefix, affinity=pod_affinity("podAntiAffinity", terms))]

    return build


def spreads(count: int, when: str, *, keys: bool = False) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        all_keys = (ZONE, HOSTNAME, *(f"known-{n}" for n in range(20)))
        wanted = [
            spread(f"{prefix}-{n}" if keys else all_keys[n % 22], {"app": f"{prefix}-{n}"}, when)
            for n in range(count)
        ]
        return [pod(prefix, topologySpreadConstraints=wanted)]

    return build


def tolerations(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        wanted = [{"key": f"{prefix}-{n}", "operator": "Exists"} for n in range(count)]
        return [pod(prefix, tolerations=wanted)]

    return build


def containers(count: int, requests: Callable[[str, int], Manifest], **more: Any) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        made = [
            {
                "name": f"c{n}",
                "image": f"{prefix}:{n}",
                "resources": {"requests": requests(prefix, n)},
                **more,
            }
            for n in range(count)
        ]
        return [pod(prefix, containers=made)]

    return build


def host_ports(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        ports = [{"containerPort": 1, "hostPort": 1 + n, "hostIP": f"10.0.0.{n % 200}"} for n in range(count)]
        taken = [
            pod(prefix, f"on-{n}", nodeName=f"node-{n}", containers=[{"name": "c", "ports": ports[n::50]}])
            for n in range(50)
        ]
        return [*taken, pod(prefix, containers=[{"name": "c", "ports": ports}])]

    return build


def volumes(count: int, state: str) -> Callable[[str], Objects]:
    def build(prefix: str) -> Iterator[Manifest]:
        late = {"kind": "StorageClass", "metadata": {"name": "late"}, "provisioner": "example.com/disk"}
        if state == "waiting" and prefix.endswith("0"):
            yield {**late, "volumeBindingMode": "WaitForFirstConsumer"}
        for index in range(count if state in ("bound", "waiting") else 0):
            if state == "bound":
                volume = f"{prefix}-pv-{index}"
                source = {"csi": {"driver": "example.com/disk", "volumeHandle": volume}}
                spec = {
                    "capacity": {"storage": "1Gi"},
                    "claimRef": {"namespace": TENANT, "name": f"{prefix}-{index}"},
                }
                yield {"kind": "PersistentVolume", "metadata": {"name": volume}, "spec": {**spec, **source}}
                bound = claim(prefix, index, volumeName=volume)
                bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
                yield {**bound, "status": {"phase": "Bound"}}
            else:
                yield claim(prefix, index, storageClassName="late")
        yield pod(prefix, volumes=claimed(prefix, count))

    return build


def disks(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        made = [{"name": f"v{n}", "gcePersistentDisk": {"pdName": f"{prefix}-{n}"}} for n in range(count)]
        taken = [pod(prefix, f"on-{n}", nodeName=f"node-{n}", volumes=made[n::50]) for n in range(50)]
        return [*taken, pod(prefix, volumes=made)]

    return build


def ephemeral(count: int) -> Callable[[str], Objects]:
    def build(prefix: str) -> Objects:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        made = [{"name": f"v{n}", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}} for n in range(count)]
        return [pod(prefix, volumes=made)]

    return build


def labels(count: int) -> Callable[[str], Objects]:
    return lambda prefix: [pod(prefix, labels={f"{prefix}-{n}": "x" for n in range(count)})]


def gates(count: int) -> Callable[[str], Objects]:
    return lambda prefix: [pod(prefix, schedulingGates=[{"name": f"{prefix}.io/{n}"} for n in range(count)])]


def preempting(
    affinity: Callable[[str], Manifest], *, budgets: int = 0, **more: Any
) -> Callable[[str], Objects]:
    """A pod that fits nowhere unless others go, from every node."""

    def build(prefix: str) -> Iterator[Manifest]:
        for index in range(budgets):
            meta = {"name": f"{prefix}-{index}", "namespace": TENANT}
            spec = {"selector": {"matchLabels": {"app": f"{prefix}-{index}"}}, "maxUnavailable": 1}
            yield {"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
        yield pod(prefix, cpu="3900m", priority=1000, **affinity(prefix), **more)

    return build


def selecting(kind: str, count: int) -> Callable[[str], Objects]:
    """Services or replica sets that all mean the pod."""

    def build(prefix: str) -> Iterator[Manifest]:
        for index in range(count):
            meta = {"name": f"{prefix}-{index}", "namespace": TENANT}
            wanted = {"app": prefix}
            selector = wanted if kind == "Service" else {"matchLabels": wanted}
            yield {"kind": kind, "metadata": meta, "spec": {"selector": selector}}
        yield pod(prefix)

    return build


def bound(count: int, affinity: Callable[[str], Manifest]) -> Callable[[str], Objects]:
    """Pods that their user has put onto nodes; measured is a plain pod beside them."""

    def build(prefix: str) -> Iterator[Manifest]:
        for index in range(count):
            yield pod(
                prefix,
                f"on-{index}",
                nodeName=f"node-{index % NODES}",
                cpu="0",
                affinity=affinity(f"{prefix}-{index}"),
            )
        yield pod(prefix)

    return build


def bound_labels(count: int) -> Callable[[str], Objects]:
    """Pods on nodes with a label each of its own; measured is one that looks at all of them."""

    def build(prefix: str) -> Iterator[Manifest]:
        for index in range(count):
            yield pod(
                prefix, f"on-{index}", nodeName=f"node-{index}", cpu="0", labels={"app": f"{prefix}-{index}"}
            )
        terms = [term(ZONE, {"app": f"{prefix}-{n}"}) for n in range(100)]
        yield pod(prefix, affinity=pod_affinity("podAntiAffinity", terms))

    return build


def anti_terms(count: int, **more: Any) -> Callable[[str], Manifest]:
    return lambda prefix: pod_affinity(
        "podAntiAffinity", [term(ZONE, {"app": f"{prefix}-{n}"}, **more) for n in range(count)]
    )


def _any_terms(count: int) -> Callable[[str], Manifest]:
    return anti_terms(count, namespaceSelector={})


def _few_anti_terms(prefix: str) -> Manifest:
    return {"affinity": anti_terms(10)(prefix)}


def zone_spreads(count: int) -> Callable[[str], Manifest]:
    return lambda prefix: {
        "topologySpreadConstraints": [spread(ZONE, {"app": f"{prefix}-{n}"}) for n in range(count)]
    }


def _gpu(prefix: str, number: int) -> Manifest:
    return {f"{prefix}.io/{number}": "1"}


def _cpu(prefix: str, number: int) -> Manifest:
    return {"cpu": "1m"}


SHAPES: list[Shape] = [
    Shape("plain pod", lambda prefix: [pod(prefix)]),
]


def shape(name: str, build: Callable[[int], Callable[[str], Objects]], *sizes: int) -> None:
    """Add a shape in several sizes."""
    SHAPES.extend(Shape(f"{name}: {size:,}", build(size)) for size in sizes)


_hard, _soft = "DoNotSchedule", "ScheduleAnyway"

shape("nodeSelector, unknown keys", node_selector, 500, 100_000)
shape("nodeAffinity, known keys", known_node_selector, 500, 5000)
shape("nodeAffinity, terms", lambda n: node_terms(n, 1), 500, 30_000)
shape("nodeAffinity, NotIn terms", lambda n: node_terms(n, 1, "NotIn"), 500)
shape("nodeAffinity, 10 requirements in each term", lambda n: node_terms(n, 10), 50)
shape("nodeAffinity, Gt terms", lambda n: node_terms(n, 1, "Gt"), 500)
shape("nodeAffinity, values", node_values, 5000, 100_000)
shape("nodeAffinity, matchFields", node_fields, 500, 30_000)
shape("nodeAffinity, preferred terms", lambda n: node_terms(n, 1, preferred=True), 500, 30_000)
for _field in ("podAffinity", "podAntiAffinity"):
    shape(f"{_field}", partial(pod_terms, _field), 100, 30_000)
    shape(f"{_field}, others' pods", partial(pod_terms, _field, labels="apps"), 100)
    shape(f"{_field}, any pod", partial(pod_terms, _field, labels="any"), 100)
    shape(f"{_field}, keys", partial(pod_terms, _field, keys=True), 100)
    shape(f"{_field}, preferred", partial(pod_terms, _field, preferred=True), 100, 30_000)
    shape(f"{_field}, preferred, any pod", partial(pod_terms, _field, preferred=True, labels="any"), 100)
shape("podAntiAffinity, namespaces", pod_term_namespaces, 5000)
shape("topologySpreadConstraints, hard", lambda n: spreads(n, _hard), 50)
shape("topologySpreadConstraints, hard, keys", lambda n: spreads(n, _hard, keys=True), 50, 20_000)
shape("topologySpreadConstraints, soft", lambda n: spreads(n, _soft), 50)
shape("topologySpreadConstraints, soft, keys", lambda n: spreads(n, _soft, keys=True), 50)
shape("tolerations", tolerations, 1000, 30_000)
shape("containers", lambda n: containers(n, _cpu), 1000, 5000)
shape("extended resources", lambda n: containers(n, _gpu), 100, 20_000)
shape("host ports", host_ports, 1000, 20_000)
shape("claims, missing", lambda n: volumes(n, "missing"), 128, 10_000)
shape("claims, waiting", lambda n: volumes(n, "waiting"), 128)
shape("claims, bound", lambda n: volumes(n, "bound"), 128)
shape("ephemeral volumes", ephemeral, 128)
shape("in-line disks", disks, 128)
shape("labels", labels, 500, 20_000)
shape("schedulingGates", gates, 20_000)
shape("preempting", lambda n: preempting(lambda prefix: {}), 1)
shape("preempting, anti-affinity", lambda n: preempting(lambda p: {"affinity": anti_terms(n)(p)}), 100)
shape("preempting, spread constraints", lambda n: preempting(zone_spreads(n)), 50)
shape("preempting, budgets", lambda n: preempting(lambda prefix: {}, budgets=n), 10_000)
shape("preempting, anti-affinity, budgets", lambda n: preempting(_few_anti_terms, budgets=n), 10_000)
shape("services that mean the pod", lambda n: selecting("Service", n), 10_000)
shape("replica sets that mean the pod", lambda n: selecting("ReplicaSet", n), 10_000)
shape("beside a bound pod, terms", lambda n: bound(1, anti_terms(n)), 100, 30_000)
shape("beside 1,000 bound pods, terms", lambda n: bound(1000, anti_terms(n)), 10)
shape("beside 1,000 bound pods, terms for any namespace", lambda n: bound(1000, _any_terms(n)), 10)
shape("beside bound pods with a label each", bound_labels, 5000)


# Measuring


class Lab:
    """A cluster of many nodes with pods on them, and the scheduler."""

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._store = Store(utc_now)
        client = StoreClient(self._store)
        self.scheduler = Scheduler(
            client,
            default_config(),
            default_registry(),
            self._clock,
            utc_now,
            Random(1),
            "bench",
            new_informer=StoreInformer,
        )

    async def begin(self) -> asyncio.Task[None]:
        """Build the cluster; the scheduler runs as the task."""
        for index in range(NODES):
            self._create(_decoded(_node(index)))
        self._fill()
        running = asyncio.create_task(self.scheduler.run())
        await self._settle()
        self._clock.advance(1.0)
        await self._settle()
        return running

    def _fill(self) -> None:
        """Have all pods on nodes that are to be there; some may have been evicted."""
        there = self._store.table(POD)
        for index in range(BACKGROUND_PODS):
            if ("default", f"background-{index}-worst") not in there:
                self._create(_decoded(_background(index)))

    def _create(self, obj: Object) -> Any:
        return self._store.create(_KINDS[obj.kind], obj.namespace, obj)

    async def _settle(self) -> float:
        """Let what is under way come to rest; CPU milliseconds of that."""
        start = process_time()
        for _ in range(60):
            await asyncio.sleep(0)
        return (process_time() - start) * 1000

    async def measure(self, build: Callable[[str], Objects], prefix: str) -> tuple[float, float, float]:
        """Milliseconds of the first attempt, of another one, and of another user's pod beside it."""
        *others, last = map(_decoded, build(prefix))
        created = [self._create(each) for each in others]
        await self._settle()
        self._clock.advance(0.5)
        await self._settle()
        start = process_time()
        worst = self._create(last)
        first = (process_time() - start) * 1000 + await self._settle()
        self._clock.advance(0.5)
        again = await self._again(worst)
        beside = await self._bystander(prefix)
        await self._delete([*created, worst])
        self._fill()
        await self._settle()
        return first, again, beside

    async def _again(self, worst: Pod) -> float:
        """Another attempt; for a pod that has its node, one with the same template."""
        if self.scheduler.queue.get(worst.uid) is None:
            return 0.0
        await self._settle()
        start = process_time()
        self.scheduler.queue.activate([worst])
        return (process_time() - start) * 1000 + await self._settle()

    async def _bystander(self, prefix: str) -> float:
        other = pod(prefix, "bystander")
        other["metadata"]["namespace"] = "default"
        other["metadata"]["labels"] = {"app": f"bystander-{prefix}"}
        decoded = _decoded(other)
        start = process_time()
        made = self._create(decoded)
        spent = (process_time() - start) * 1000 + await self._settle()
        await self._delete([made])
        return spent

    async def _delete(self, objects: Iterable[Any]) -> None:
        for each in reversed(list(objects)):
            if not isinstance(each, KINDS["StorageClass"]):
                kind = _KINDS[each.kind]
                self._store.delete(kind, each.namespace if kind.namespaced else "", each.name)
        await self._settle()
        self._clock.advance(2.0)
        await self._settle()

    async def held(self, build: Callable[[str], Objects], prefix: str) -> float:
        """Kibibytes that are held more after a shape has come and gone than before."""
        gc.collect()
        tracemalloc.start()
        try:
            await self.measure(build, prefix)
            gc.collect()
            return tracemalloc.get_traced_memory()[0] / 1024
        finally:
            tracemalloc.stop()


def _decoded(manifest: Manifest) -> Object:
    return convert(manifest, KINDS[manifest["kind"]])


def _node(index: int) -> Manifest:
    own = {HOSTNAME: f"node-{index}", ZONE: f"zone-{index % ZONES}", "pool": f"pool-{index % 7}"}
    own |= {f"known-{n}": f"value-{index % (n + 2)}" for n in range(20)}
    taints = [{"key": "dedicated", "value": f"team-{index % 5}", "effect": "PreferNoSchedule"}]
    room = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    return {
        "kind": "Node",
        "metadata": {"name": f"node-{index}", "labels": own},
        "spec": {"taints": taints if index % 10 == 0 else []},
        "status": {"allocatable": room, "capacity": room},
    }


def _background(index: int) -> Manifest:
    app = f"app-{index % BACKGROUND_APPS}"
    made = pod(
        f"background-{index}", labels={"app": app, "tier": f"t{index % 3}"}, nodeName=f"node-{index % NODES}"
    )
    made["metadata"]["namespace"] = "default"
    if index % 10 == 0:
        made["spec"]["affinity"] = pod_affinity("podAntiAffinity", [term(HOSTNAME, {"app": app})])
    return made


async def run(names: Sequence[str]) -> None:
    console = Console(width=130)
    table = Table("shape", "first, ms", "again, ms", "another pod, ms", "kept, KiB")
    lab = Lab()
    running = await lab.begin()
    for number, each in enumerate(SHAPES):
        if names and not any(name in each.name for name in names):
            continue
        print(each.name, file=sys.stderr, end=" ", flush=True)
        rounds = [await lab.measure(each.build, f"s{number}r{n}") for n in range(REPEATS)]
        first, again, beside = (min(values) for values in zip(*rounds, strict=True))
        kept = await lab.held(each.build, f"s{number}h")
        print(f"{first:.1f} {again:.1f} {beside:.1f} {kept:.0f}", file=sys.stderr, flush=True)
        table.add_row(each.name, f"{first:,.1f}", f"{again:,.1f}", f"{beside:,.1f}", f"{kept:,.0f}")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    console.print(table)


if __name__ == "__main__":
    asyncio.run(run(sys.argv[1:]))
