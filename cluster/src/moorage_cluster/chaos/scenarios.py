"""Scripts from seeds: each scenario is a workload with the faults that it is about."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Final, get_args

from moorage.api.manifests import Manifest
from moorage_cluster.chaos.misbehaving import POINTS
from moorage_cluster.chaos.script import (
    CrashScheduler,
    Create,
    Delete,
    ExtenderFault,
    ExtenderFaultKind,
    Fault,
    MoveWallClock,
    Operation,
    Patch,
    PluginFault,
    PluginFaultKind,
    RequestFault,
    RequestFaultKind,
    RestartServer,
    Script,
    WatchFault,
    WatchFaultKind,
)
from moorage_cluster.chaos.traffic import BIND, DELETE, EVENT, LEASE, LIST, READ, STATUS, WATCH, WRITE

CALM_SECONDS: Final = 60.0
"""When faults end."""
_MAX_DELAY_SECONDS: Final = 3.0
"""Maximum delay of a request. A write that a leader has sent must arrive before its lease ends."""
_STEPS: Final = 60
_BUDGETS_STEPS: Final = 120
_NAMES: Final = 16
"""Number of names of pods: so few that pods of one name come and go."""
_NODE_CPUS: Final = ("2", "3", "3", "4")
"""The cores of each node. One that is created again has as many: its scheduler may not know yet."""
_LOST: Final[tuple[RequestFaultKind, ...]] = ("unreachable", "reset-before", "reset-after", "twice", "hung")
_SLOW: Final[tuple[RequestFaultKind, ...]] = ("late-request", "late-answer")
_REFUSED: Final[tuple[RequestFaultKind, ...]] = ("409", "410", "429", "500", "503")
_OF_LEASES: Final[tuple[RequestFaultKind, ...]] = ("hung", "unreachable", "500", "reset-after", "409")
_OF_WRITES: Final = (*_LOST, *_SLOW, *_REFUSED)
_OF_READS: Final = ("unreachable", "hung", "stale", "late-answer", "410", "429", "500", "503")
_RESOURCES: Final = (
    "pods",
    "nodes",
    "poddisruptionbudgets",
    "podgroups",
    "resourceclaims",
    "persistentvolumes",
    "persistentvolumeclaims",
)


@dataclass(slots=True)
class Draft:
    """A script that is being made."""

    random: Random
    objects: list[Manifest]
    operations: list[Operation]
    faults: list[Fault]
    options: dict[str, Any]

    def times(self, count: int) -> list[float]:
        """Moments before faults end, in order."""
        return sorted(round(self.random.uniform(0.5, CALM_SECONDS - 5), 3) for _ in range(count))

    def delay(self) -> float:
        """The delay of a request, an event or a plugin, in seconds."""
        return round(self.random.uniform(0.01, _MAX_DELAY_SECONDS), 3)


Scenario = Callable[[Draft], None]


def new_script(name: str, seed: int) -> Script:
    """The script of a scenario and a seed: always the same."""
    draft = Draft(Random(f"{name} {seed}"), [], [], [], {})
    SCENARIOS[name](draft)
    return Script(
        scenario=name,
        seed=seed,
        calm_at=CALM_SECONDS,
        objects=tuple(draft.objects),
        operations=tuple(sorted(draft.operations, key=lambda each: each.at)),
        faults=tuple(draft.faults),
        **draft.options,
    )


# -- what users do


def _node(name: str, cpu: str, pods: str = "20", **extra: str) -> Manifest:
    capacity = {"cpu": cpu, "memory": "8Gi", "pods": pods, **extra}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": capacity, "allocatable": capacity},
    }


def _pod(name: str, cpu: str = "1", labels: Mapping[str, str] | None = None, **spec: Any) -> Manifest:
    container: Manifest = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    if "hostPort" in spec:
        port = spec.pop("hostPort")
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    meta = {"name": name, "namespace": "default", "labels": {"app": name, **(labels or {})}}
    body = {"containers": [container], "terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": body}


def _nodes(draft: Draft) -> None:
    for number, cpu in enumerate(_NODE_CPUS):
        draft.objects.append(_node(f"node-{number}", cpu))


def _any_pod(draft: Draft, name: str) -> Manifest:
    random = draft.random
    spec: dict[str, Any] = {}
    if random.random() < 0.15:
        spec["hostPort"] = random.choice((8080, 8081))
    if random.random() < 0.15:
        spec["nodeSelector"] = {"kubernetes.io/hostname": f"node-{random.randrange(len(_NODE_CPUS))}"}
    return _pod(name, random.choice(("500m", "1", "1", "2")), **spec)


def _churn(draft: Draft, steps: int = _STEPS, pod: Callable[[Draft, str], Manifest] = _any_pod) -> None:
    """Pods come and go and change, nodes come and go and are cordoned."""
    random = draft.random
    for at in draft.times(steps):
        name, number = f"pod-{random.randrange(_NAMES)}", random.randrange(len(_NODE_CPUS))
        node = f"node-{number}"
        match random.choice(
            ("pod",) * 6 + ("gone", "gone", "label", "cordon", "uncordon", "node gone", "node")
        ):
            case "pod":
                draft.operations.append(Create(at, pod(draft, name)))
            case "gone":
                draft.operations.append(Delete(at, "Pod", name, "default"))
            case "label":
                patch = {"metadata": {"labels": {"changed": str(at)}}}
                draft.operations.append(Patch(at, "Pod", name, patch, "default"))
            case "cordon":
                draft.operations.append(Patch(at, "Node", node, {"spec": {"unschedulable": True}}))
                end = min(at + 10, CALM_SECONDS - 1)
                draft.operations.append(Patch(end, "Node", node, {"spec": {"unschedulable": None}}))
            case "uncordon":
                draft.operations.append(Patch(at, "Node", node, {"metadata": {"labels": {"seen": str(at)}}}))
            case "node gone":
                draft.operations.append(Delete(at, "Node", node))
            case "node":
                draft.operations.append(Create(at, _node(node, _NODE_CPUS[number])))


# -- what goes wrong


def _request_faults(
    draft: Draft, kinds: tuple[Any, ...], share: float, most: Mapping[str, int], schedulers: int = 1
) -> None:
    """A share of the first requests of each class fails."""
    for scheduler in range(schedulers):
        for request, count in most.items():
            for number in range(count):
                if draft.random.random() < share:
                    fault = draft.random.choice(kinds)
                    draft.faults.append(RequestFault(scheduler, request, number, fault, draft.delay()))


def _watch_faults(draft: Draft, share: float, events: int = 150, schedulers: int = 1) -> None:
    """A share of the first events of the watches of each resource fails."""
    kinds = get_args(WatchFaultKind)
    for scheduler in range(schedulers):
        for resource in _RESOURCES:
            for number in range(events):
                if draft.random.random() < share:
                    fault = draft.random.choice(kinds)
                    draft.faults.append(WatchFault(scheduler, resource, number, fault, draft.delay()))


_WRITES: Final = {BIND: 40, STATUS: 60, DELETE: 20, EVENT: 60, WRITE: 40}
_READS: Final = {WATCH: 40, LIST: 40, READ: 20}


def _requests(draft: Draft) -> None:
    """Writes whose connections break before and after they take effect, and answers that refuse."""
    _nodes(draft)
    _churn(draft)
    _request_faults(draft, _OF_WRITES, draft.random.choice((0.1, 0.3, 0.6)), _WRITES)


def _watches(draft: Draft) -> None:
    """Watches that break, repeat, stall and end."""
    _nodes(draft)
    _churn(draft)
    draft.options["history"] = draft.random.choice((5, 20_000))
    _watch_faults(draft, draft.random.choice((0.02, 0.1, 0.3)))
    _request_faults(draft, _OF_READS, draft.random.choice((0.0, 0.3)), _READS)


def _lists(draft: Draft) -> None:
    """A server without watch-lists, whose lists are late, stale or refused."""
    _nodes(draft)
    _churn(draft)
    draft.options |= {"has_watch_lists": False, "history": draft.random.choice((3, 20_000))}
    _request_faults(draft, _OF_READS, draft.random.choice((0.1, 0.3)), _READS)
    _watch_faults(draft, 0.1)


def _leaders(draft: Draft) -> None:
    """Two schedulers of which one leads; leases are lost between a decision and its binding."""
    _nodes(draft)
    _churn(draft)
    draft.options["schedulers"] = 2
    random = draft.random
    for scheduler in range(2):
        begin, kinds = random.randrange(12), random.sample(_OF_LEASES, random.choice((1, 2, 5)))
        for number in range(begin, begin + random.randrange(1, 40)):
            draft.faults.append(RequestFault(scheduler, LEASE, number, random.choice(kinds), draft.delay()))
    _request_faults(draft, (*_SLOW, *_LOST), 0.2, {BIND: 30, STATUS: 30}, schedulers=2)
    for at in draft.times(random.randrange(3)):
        draft.operations.append(CrashScheduler(at, random.randrange(2), float(random.choice((1, 5, 20)))))


def _crashes(draft: Draft) -> None:
    """A scheduler that is killed again and again, while answers are late."""
    _nodes(draft)
    _churn(draft)
    for at in draft.times(draft.random.randrange(1, 5)):
        draft.operations.append(CrashScheduler(at, 0, float(draft.random.choice((0, 1, 5)))))
    _request_faults(draft, (*_SLOW, *_LOST), 0.3, _WRITES)


def _restarts(draft: Draft) -> None:
    """An API server with a data directory that is killed again and again."""
    _nodes(draft)
    _churn(draft)
    draft.options["is_durable"] = True
    at = 0.0
    while (at := at + draft.random.uniform(5, 25)) < CALM_SECONDS - 15:
        seconds = float(draft.random.choice((0, 1, 8)))
        draft.operations.append(RestartServer(round(at, 3), seconds))
        at += seconds
    _request_faults(draft, (*_SLOW, *_LOST), 0.2, _WRITES)


def _clocks(draft: Draft) -> None:
    """Wall clocks that jump, with two schedulers."""
    _nodes(draft)
    _churn(draft)
    draft.options["schedulers"] = 2
    for at in draft.times(draft.random.randrange(1, 6)):
        draft.operations.append(MoveWallClock(at, float(draft.random.choice((-86_400, -30, -1, 30, 86_400)))))
    _request_faults(draft, _SLOW, 0.2, _WRITES, schedulers=2)


def _priority_classes(draft: Draft) -> None:
    for name, value in (("low", 10), ("middle", 100), ("high", 1000)):
        manifest = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": value}
        draft.objects.append({**manifest, "metadata": {"name": name}})


def _ranked_pod(draft: Draft, name: str) -> Manifest:
    """A pod of any priority, which a disruption budget may protect."""
    labels = {"team": draft.random.choice(("safe", "open"))}
    priority = draft.random.choice(("low", "middle", "high"))
    return _pod(name, draft.random.choice(("1", "2")), labels, priorityClassName=priority)


def _budget(team: str, **spec: Any) -> Manifest:
    """A budget of the pods of a team."""
    meta = {"name": team, "namespace": "default"}
    budget = {"selector": {"matchLabels": {"team": team}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": budget}


def _preemption(draft: Draft) -> None:
    """Pods of different priority on too few nodes, disruption budgets, and evictions that fail."""
    _priority_classes(draft)
    _nodes(draft)
    draft.objects.append(_budget("safe", minAvailable=1))
    _churn(draft, pod=_ranked_pod)
    _request_faults(draft, _OF_WRITES, draft.random.choice((0.1, 0.3)), _WRITES)
    _watch_faults(draft, draft.random.choice((0.0, 0.05)))


def _budgets(draft: Draft) -> None:
    """Disruption budgets allow few evictions or none, on full nodes, while evictions fail and are late."""
    draft.options["has_budgets"] = True
    random = draft.random
    _priority_classes(draft)
    _nodes(draft)
    draft.objects.append(_budget("safe", minAvailable=random.choice((1, 2, 3, _NAMES))))
    _churn(draft, _BUDGETS_STEPS, _ranked_pod)
    share = random.choice((0.0, 0.1, 0.3))
    _request_faults(draft, (*_LOST, *_SLOW, *_REFUSED), share, {DELETE: 20, STATUS: 30})


def _standbys(draft: Draft) -> None:
    """A standby whose watches stall takes over from a leader that is killed."""
    draft.options["schedulers"] = 2
    _priority_classes(draft)
    for number in range(3):
        at = 0.0 if draft.random.random() < 0.5 else draft.times(1)[0] / 3
        draft.operations.append(Create(at, _node(f"node-{number}", "2")))
    for at in draft.times(24):
        name = f"pod-{draft.random.randrange(_NAMES)}"
        draft.operations.append(Create(at / 2, _ranked_pod(draft, name)))
    for resource in ("pods", "nodes"):
        number = draft.random.randrange(2, 30)
        draft.faults.append(WatchFault(1, resource, number, "half-open"))
    draft.operations.append(CrashScheduler(draft.random.uniform(5, 30), 0, 60.0))


def _gangs(draft: Draft) -> None:
    """Gangs that compete for too little room while requests fail."""
    draft.options["has_groups"] = True
    for number in range(3):
        draft.objects.append(_node(f"node-{number}", draft.random.choice(("1", "2", "3"))))
    for number in range(3):
        name, size = f"gang-{number}", draft.random.choice((2, 3))
        group = {
            "apiVersion": "scheduling.k8s.io/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
        }
        draft.operations.append(Create(draft.times(1)[0], group))
        for member in range(size):
            pod = _pod(f"{name}-{member}", schedulingGroup={"podGroupName": name})
            draft.operations.append(Create(draft.times(1)[0], pod))
    for at in draft.times(6):
        draft.operations.append(Create(at, _pod(f"pod-{draft.random.randrange(6)}")))
    for at in draft.times(6):
        draft.operations.append(Delete(at, "Pod", f"pod-{draft.random.randrange(6)}", "default"))
    _request_faults(draft, _OF_WRITES, draft.random.choice((0.1, 0.3)), _WRITES)
    _watch_faults(draft, draft.random.choice((0.0, 0.05)))


def _plugins(draft: Draft) -> None:
    """A plugin that raises, hangs, refuses and lies."""
    _nodes(draft)
    _churn(draft)
    draft.options["has_plugin"] = True
    share = draft.random.choice((0.05, 0.2, 0.5))
    for point in POINTS:
        for number in range(60):
            if draft.random.random() < share:
                fault = draft.random.choice(get_args(PluginFaultKind))
                draft.faults.append(PluginFault(0, point, number, fault, draft.delay() * 3))
    _request_faults(draft, _OF_WRITES, 0.05, _WRITES)


def _extenders(draft: Draft) -> None:
    """An extender that times out, breaks and answers with what is none."""
    _nodes(draft)
    _churn(draft)
    draft.options["has_extender"] = True
    share = draft.random.choice((0.1, 0.5))
    for number in range(80):
        if draft.random.random() < share:
            draft.faults.append(ExtenderFault(number, draft.random.choice(get_args(ExtenderFaultKind))))
    _request_faults(draft, _OF_WRITES, 0.1, _WRITES)


def _devices(draft: Draft) -> None:
    """Pods with claims for devices, whose allocations are written while requests fail."""
    driver = "gpu.example.com"
    selector = {"cel": {"expression": f'device.driver == "{driver}"'}}
    draft.objects.append(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": "gpu"},
            "spec": {"selectors": [selector]},
        }
    )
    for number in range(2):
        name = f"node-{number}"
        draft.objects.append(_node(name, "8"))
        devices = [{"name": f"gpu-{index}"} for index in range(2)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": name, "pool": pool, "devices": devices}
        draft.objects.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceSlice",
                "metadata": {"name": f"{name}-slice"},
                "spec": spec,
            }
        )
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    for number in range(6):
        draft.objects.append(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": f"claim-{number}", "namespace": "default"},
                "spec": {"devices": {"requests": [request]}},
            }
        )
    for at in draft.times(30):
        number = draft.random.randrange(6)
        claims = [{"name": "gpu", "resourceClaimName": f"claim-{number}"}]
        draft.operations.append(Create(at, _pod(f"pod-{number}", resourceClaims=claims)))
    for at in draft.times(20):
        draft.operations.append(Delete(at, "Pod", f"pod-{draft.random.randrange(6)}", "default"))
    _request_faults(draft, _OF_WRITES, draft.random.choice((0.1, 0.3)), _WRITES)
    _watch_faults(draft, draft.random.choice((0.0, 0.05)))


def _volumes(draft: Draft) -> None:
    """Pods with claims that are bound where the pod goes, to volumes of single nodes, while requests fail."""
    draft.options["has_volumes"] = True
    draft.objects.append(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": "local"},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    )
    for number in range(3):
        name = f"node-{number}"
        draft.objects.append(_node(name, "4"))
        draft.objects.extend(_volume(f"{name}-volume-{index}", name) for index in range(2))
    for number in range(7):
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "resources": {"requests": {"storage": "1Gi"}},
        }
        meta = {"name": f"claim-{number}", "namespace": "default"}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
        draft.operations.append(Create(draft.times(1)[0] / 2, claim))
    for at in draft.times(30):
        number = draft.random.randrange(7)
        claim_names = sorted({number, draft.random.randrange(7)})[: draft.random.choice((1, 1, 2))]
        volumes = [
            {"name": f"v{each}", "persistentVolumeClaim": {"claimName": f"claim-{each}"}}
            for each in claim_names
        ]
        draft.operations.append(Create(at, _pod(f"pod-{number}", volumes=volumes)))
    for at in draft.times(15):
        draft.operations.append(Delete(at, "Pod", f"pod-{draft.random.randrange(7)}", "default"))
    _request_faults(draft, _OF_WRITES, draft.random.choice((0.1, 0.3)), _WRITES)
    _watch_faults(draft, draft.random.choice((0.0, 0.05)))


def _volume(name: str, node: str) -> Manifest:
    """A volume that only one node reaches."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "local": {"path": f"/{name}"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _everything(draft: Draft) -> None:
    """All faults at once, with two schedulers."""
    _preemption(draft)
    draft.options |= {"schedulers": 2, "has_plugin": True, "history": draft.random.choice((5, 20_000))}
    _request_faults(draft, (*_OF_READS, *_SLOW), 0.1, {**_READS, LEASE: 40}, schedulers=2)
    _watch_faults(draft, 0.05, schedulers=2)
    for point in POINTS:
        draft.faults.append(PluginFault(0, point, draft.random.randrange(20), "raise"))
    for at in draft.times(draft.random.randrange(3)):
        draft.operations.append(CrashScheduler(at, draft.random.randrange(2), 2.0))
    for at in draft.times(draft.random.randrange(2)):
        draft.operations.append(MoveWallClock(at, 600.0))


SCENARIOS: Final[Mapping[str, Scenario]] = {
    "requests": _requests,
    "watches": _watches,
    "lists": _lists,
    "leaders": _leaders,
    "standbys": _standbys,
    "crashes": _crashes,
    "restarts": _restarts,
    "clocks": _clocks,
    "preemption": _preemption,
    "budgets": _budgets,
    "gangs": _gangs,
    "plugins": _plugins,
    "extenders": _extenders,
    "devices": _devices,
    "volumes": _volumes,
    "everything": _everything,
}
"""The scenarios by name; the docstring of each says what it is about."""


def summaries() -> Iterator[tuple[str, str]]:
    """The names of all scenarios, and what each is about."""
    return ((name, (scenario.__doc__ or "").strip()) for name, scenario in SCENARIOS.items())
