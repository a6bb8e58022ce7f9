"""The most expensive pods that a user of one namespace can create, as manifests.

To add a shape, add an entry to `SHAPES`: a name and a function from a prefix, which makes names and labels
unique in each round, to manifests. The last manifest is the pod that is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from bench.worst.manifests import (
    BACKGROUND_APPS,
    HOSTNAME,
    NODES,
    TENANT,
    ZONE,
    claim,
    claimed,
    expression,
    node_affinity,
    pod,
    pod_affinity,
    spread,
    term,
)
from moorage.api.manifests import Manifest

Objects = Iterable[Manifest]

KNOWN_KEYS = (ZONE, HOSTNAME, *(f"known-{n}" for n in range(20)))


@dataclass(frozen=True, slots=True)
class Shape:
    """Objects that a user can create; the attempts of the last one, a pod, are measured."""

    name: str
    build: Callable[[str], Objects]


# Shapes: each takes a count of something that a pod has


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
    """labels: `own` for selectors that match nothing, `apps` for other users' pods, `any` for all pods."""

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
        wanted = [
            spread(f"{prefix}-{n}" if keys else KNOWN_KEYS[n % 22], {"app": f"{prefix}-{n}"}, when)
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
    """A pod that requires preemption on every node."""

    def build(prefix: str) -> Iterator[Manifest]:
        for index in range(budgets):
            meta = {"name": f"{prefix}-{index}", "namespace": TENANT}
            spec = {"selector": {"matchLabels": {"app": f"{prefix}-{index}"}}, "maxUnavailable": 1}
            yield {"kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}
        yield pod(prefix, cpu="3900m", priority=1000, **affinity(prefix), **more)

    return build


def selecting(kind: str, count: int) -> Callable[[str], Objects]:
    """Services or replica sets that all select the pod."""

    def build(prefix: str) -> Iterator[Manifest]:
        for index in range(count):
            meta = {"name": f"{prefix}-{index}", "namespace": TENANT}
            wanted = {"app": prefix}
            selector = wanted if kind == "Service" else {"matchLabels": wanted}
            yield {"kind": kind, "metadata": meta, "spec": {"selector": selector}}
        yield pod(prefix)

    return build


def bound(count: int, affinity: Callable[[str], Manifest]) -> Callable[[str], Objects]:
    """Pods that their user has bound to nodes; a plain pod is measured."""

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
    """Pods on nodes, each with a unique label; a pod that refers to all of them is measured."""

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


def terms_for_all(
    count: int,
    keys: Sequence[str] = (),
    selector: Callable[[str], list[Manifest]] = lambda name: [],
    *,
    preferred: bool = False,
) -> Callable[[str], Manifest]:
    """Terms for pods of any namespace. keys: topology keys; if there are none, each term has an unknown one.

    selector: requirements made from a name that is different for each term; without any, all pods match.
    """

    def affinity(prefix: str) -> Manifest:
        names = [f"{prefix}-{number}" for number in range(count)]
        terms = [
            {
                "topologyKey": keys[number % len(keys)] if keys else name,
                "labelSelector": {"matchExpressions": selector(name)},
                "namespaceSelector": {},
            }
            for number, name in enumerate(names)
        ]
        return pod_affinity("podAntiAffinity", terms, preferred=preferred)

    return affinity


def _without_label(name: str) -> list[Manifest]:
    """Matches all pods that do not have one label."""
    return [expression(name, "DoesNotExist")]


def _without_app(name: str) -> list[Manifest]:
    """Matches no pod with the label `app`, but requires no label that pods could be indexed by."""
    return [expression("app", "DoesNotExist"), expression(name, "DoesNotExist")]


def waiting(count: int) -> Callable[[str], Objects]:
    """Pending pods, each with 16 topology keys that no node has."""

    def build(prefix: str) -> Iterator[Manifest]:
        for index in range(count):
            terms = [term(f"{prefix}-{index}-{n}", {"app": prefix}) for n in range(16)]
            yield pod(prefix, f"waits-{index}", affinity=pod_affinity("podAffinity", terms))
        yield pod(prefix)

    return build


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
shape("beside bound pods, 100 unknown keys for all pods", lambda n: bound(n, terms_for_all(100)), 10, 200)
shape("beside bound pods, known keys for all pods", lambda n: bound(n, terms_for_all(100, KNOWN_KEYS)), 200)
for _name, _selector in (("meant", _without_label), ("not meant", _without_app)):
    for _kind in ("required", "preferred"):
        _affinity = terms_for_all(100, [HOSTNAME], _selector, preferred=_kind == "preferred")
        shape(
            f"beside bound pods, 100 {_kind} terms, all pods {_name}",
            partial(bound, affinity=_affinity),
            50,
            200,
        )
shape("beside waiting pods, 16 unknown keys", waiting, 200)
