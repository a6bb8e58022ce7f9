"""Simulations with controllers: Deployments, Jobs and others are made into pods, in virtual time."""

from __future__ import annotations

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from moorage.api.decode import InputError
from moorage.simulation import controlled
from moorage.simulation.generator import Generator
from moorage.simulation.records import Outcome, PodRecord
from moorage.simulation.run import SimulationRun, run_simulation
from moorage.simulation.scenario import ScenarioSource, read_scenario
from moorage.simulation.shapes import NodeShape
from tests.simulation.simulating import manifest, settings

SHAPE = NodeShape("node", 3, resources={"cpu": "4", "memory": "32Gi"})


class Files:
    """Scenarios from objects, by way of files."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _write(self, name: str, content: Any) -> Path:
        path = self._folder / name
        path.write_text(content)
        return path

    def run(
        self,
        *workload: Any,
        dump: list[Any] | None = None,
        script: list[Any] | None = None,
        shapes: tuple[NodeShape, ...] = (SHAPE,),
        generated: Generator | None = None,
        **given: Any,
    ) -> SimulationRun:
        source = ScenarioSource(
            [self._write("dump.json", json.dumps({"kind": "List", "items": dump}))] if dump else [],
            shapes,
            [self._write("workload.yaml", yaml.safe_dump_all(workload))] if workload else [],
            generated,
            self._write("script.yaml", yaml.safe_dump(script)) if script else None,
            controllers=True,
        )
        return run_simulation(read_scenario(source), settings(**given))


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def template(app: str, cpu: str = "1", duration: str = "", **spec: Any) -> Any:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    annotations = {"moorage.io/duration": duration} if duration else {}
    return {
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"containers": [container], **spec},
    }


def owner(kind: str, name: str, *, at: str = "0s", cpu: str = "1", **spec: Any) -> Any:
    """A Deployment, StatefulSet or DaemonSet."""
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": {"moorage.io/arrival": at}},
        "spec": {"selector": {"matchLabels": {"app": name}}, "template": template(name, cpu), **spec},
    }


def job(
    name: str, *, at: str = "0s", cpu: str = "1", duration: str = "5m", code: str = "", **spec: Any
) -> Any:
    made = template(name, cpu, duration, restartPolicy="Never")
    if code:
        made["metadata"]["annotations"]["moorage.io/exit-code"] = code
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "annotations": {"moorage.io/arrival": at}},
        "spec": {"template": made, **spec},
    }


def pods_of(run: SimulationRun, app: str) -> list[PodRecord]:
    return [each for each in run.result.placements if each.name.startswith(f"{app}-")]


def nodes_of(pods: list[PodRecord], outcome: Outcome = Outcome.RUNNING) -> list[str]:
    return sorted(each.node for each in pods if each.outcome is outcome)


def test_pods_of_deployments_stay_and_those_of_jobs_complete(files: Files) -> None:
    run = files.run(
        owner("Deployment", "web", replicas=2),
        job("work", at="10m", completions=3, parallelism=2),
        owner("StatefulSet", "db", at="1m", replicas=2, serviceName="db"),
    )
    assert [(each.arrived_at, each.outcome) for each in pods_of(run, "web")] == [(0, Outcome.RUNNING)] * 2
    assert [(each.name, each.arrived_at) for each in pods_of(run, "db")] == [("db-0", 60), ("db-1", 60)]
    work = pods_of(run, "work")
    assert [each.arrived_at for each in work] == [600, 600, 900]
    assert [each.ended_at for each in work] == [900, 900, 1200]
    assert {each.outcome for each in work} == {Outcome.COMPLETED}
    assert run.result.complete
    assert run.result.seconds == pytest.approx(1200, abs=5)


def test_a_daemon_set_follows_nodes(files: Files) -> None:
    script = [{"at": "5m", "add": "name=new,count=2,cpu=4,memory=8Gi"}, {"at": "10m", "remove": "node-0"}]
    agents = pods_of(files.run(owner("DaemonSet", "agent"), script=script), "agent")
    assert nodes_of(agents) == ["new-0", "new-1", "node-1", "node-2"]
    assert nodes_of(agents, Outcome.EVICTED) == ["node-0"]
    assert Counter(each.arrived_at for each in agents) == {0: 3, 300: 2}


def test_pods_of_a_drained_node_are_created_again_by_their_controllers(files: Files) -> None:
    script = [{"at": "5m", "drain": "node-0"}]
    workload = (
        owner("Deployment", "web", replicas=6),
        owner("DaemonSet", "agent", cpu="100m"),
        {
            **manifest("alone", "1"),
            "spec": {**manifest("alone", "1")["spec"], "nodeSelector": {"kubernetes.io/hostname": "node-0"}},
        },
    )
    for restarts in (True, False):
        run = files.run(*workload, script=script, restarts_pods=restarts)
        web, alone = pods_of(run, "web"), [each for each in run.result.placements if "alone" in each.name]
        assert "node-0" not in nodes_of(web)
        assert len(nodes_of(web)) == 6
        assert set(nodes_of(web, Outcome.EVICTED)) == {"node-0"}
        assert nodes_of(pods_of(run, "agent")) == ["node-0", "node-1", "node-2"]
        # A pod without an owner is created again by the simulation.
        again = [Outcome.PENDING] if restarts else []
        assert [each.outcome for each in alone] == [Outcome.EVICTED, *again]


def test_a_drain_waits_for_disruption_budgets(files: Files) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web"},
        "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}},
    }
    script = [{"at": "5m", "drain": "node-0"}]
    run = files.run(owner("Deployment", "web", cpu="2", replicas=4), budget, script=script)
    evicted = [each for each in pods_of(run, "web") if each.outcome is Outcome.EVICTED]
    ended = sorted(each.ended_at or 0.0 for each in evicted)
    assert {each.node for each in evicted} == {"node-0"}
    assert ended[0] == pytest.approx(301)
    assert [later - earlier for earlier, later in pairwise(ended)] == [5.0] * (len(ended) - 1)

    budget["spec"]["minAvailable"] = 4  # type: ignore[index]
    blocked = files.run(owner("Deployment", "web", cpu="2", replicas=4), budget, script=script)
    assert blocked.result.complete
    assert "Evicted" not in {each.outcome for each in pods_of(blocked, "web")}


def test_nodes_that_fail_take_their_pods_and_come_back(files: Files) -> None:
    script = [{"at": "5m", "fail": "node-1"}, {"at": "10m", "recover": "node-1"}]
    run = files.run(
        owner("StatefulSet", "db", cpu="3", replicas=3, serviceName="db"),
        job("work", at="1m", duration="20m", completions=3, parallelism=3),
        script=script,
    )
    db, work = pods_of(run, "db"), pods_of(run, "work")
    (lost,) = [each for each in db if each.outcome is Outcome.EVICTED]
    assert (lost.node, lost.ended_at) == ("node-1", 300)
    (again,) = [each for each in db if each.name == lost.name and each is not lost]
    assert (again.arrived_at, again.bound_at, again.node) == (300, 600, "node-1")
    outcomes = Counter(each.outcome for each in work)
    assert outcomes[Outcome.COMPLETED] == 3
    assert outcomes[Outcome.EVICTED] == sum(each.node == "node-1" and each.ended_at == 300 for each in work)
    assert [node.name for node in run.nodes] == ["node-0", "node-1", "node-2", "node-1"]


def test_a_job_whose_pods_fail_tries_again_until_its_limit(files: Files) -> None:
    run = files.run(job("bad", duration="1m", code="3", backoffLimit=2))
    failed = pods_of(run, "bad")
    assert [each.outcome for each in failed] == [Outcome.FAILED] * 3
    assert run.result.pods["Failed"] == 3
    pauses = [later.arrived_at - (pod.ended_at or 0.0) for pod, later in pairwise(failed)]
    assert pauses == pytest.approx([10, 20], abs=1)


def test_a_cron_job_needs_an_end(files: Files) -> None:
    cron = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": job("each", duration="1m")["spec"]}},
    }
    with pytest.raises(InputError, match="CronJob nightly: makes pods for ever; say with --until when"):
        files.run(cron)
    made = pods_of(files.run(cron, until_seconds=3000.0), "nightly")
    assert [each.arrived_at for each in made] == pytest.approx([600, 1200, 1800, 2400], abs=1)
    assert [each.outcome for each in made] == [Outcome.COMPLETED] * 4


def test_the_same_seed_gives_the_same_bytes(files: Files) -> None:
    def result(seed: int) -> bytes:
        workload = owner("Deployment", "web", replicas=3), job("work", at="1m", completions=6, parallelism=3)
        script = [{"at": "2m", "drain": "node-0"}]
        return msgspec.json.encode(files.run(*workload, script=script, seed=seed).result)

    assert result(4) == result(4)
    assert result(4) != result(5)


def test_without_owners_controllers_change_nothing(files: Files) -> None:
    generator = Generator(40, 5.0, 60.0)
    shape = NodeShape("node", 2, resources={"cpu": "4", "memory": "8Gi"})
    with_controllers = files.run(generated=generator, shapes=(shape,))
    alone = run_simulation(read_scenario(ScenarioSource(shapes=[shape], generated=generator)), settings())
    for run in (with_controllers, alone):
        assert run.result.pods["Completed"] == 40
    times = [
        {
            each.name: (each.arrived_at, each.node, each.bound_at, each.ended_at)
            for each in run.result.placements
        }
        for run in (with_controllers, alone)
    ]
    assert times[0] == times[1]


def test_controllers_go_on_with_the_objects_of_a_dump(files: Files) -> None:
    def stored(obj: Any, name: str, by: Any = None, **status: Any) -> Any:
        meta: dict[str, Any] = {
            "name": name,
            "namespace": "shop",
            "uid": f"uid-{name}",
            "labels": {"app": "web", "pod-template-hash": "1"},
        }
        meta["creationTimestamp"] = "2026-05-01T10:00:00Z"
        if by is not None:
            meta["ownerReferences"] = [
                {
                    "apiVersion": "apps/v1",
                    "kind": by["kind"],
                    "name": by["metadata"]["name"],
                    "uid": by["metadata"]["uid"],
                    "controller": True,
                }
            ]
        return {**obj, "metadata": meta, "status": status}

    labels = {"app": "web", "pod-template-hash": "1"}
    made = template("web", "2")
    hashed = {**made, "metadata": {"labels": labels}}
    deployment = stored(owner("Deployment", "web", cpu="2", replicas=2), "web")
    replica_set = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": hashed},
    }
    replica_set = stored(replica_set, "web-1", deployment)
    pods = [
        stored(
            {
                **manifest("x", "2", priorityClassName="urgent", priority=7),
                "spec": {**hashed["spec"], "nodeName": node},
            },
            f"web-1-{node}",
            replica_set,
            phase="Running",
            startTime="2026-05-01T10:00:01Z",
            conditions=[{"type": "Ready", "status": "True"}],
        )
        for node in ("old-0", "old-1")
    ]

    def node(name: str, ready: str) -> Any:
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "uid": name},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [{"type": "Ready", "status": ready}],
            },
        }

    run = files.run(
        dump=[
            node("old-0", "True"),
            node("old-1", "True"),
            node("broken", "Unknown"),
            deployment,
            replica_set,
            *pods,
        ],
        shapes=(),
        script=[{"at": "1m", "drain": "old-0"}],
    )
    (again,) = run.result.placements
    assert (again.namespace, again.arrived_at, again.node) == ("shop", 60, "old-1")
    assert run.notes == () or list(run.notes) == []


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"apiVersion": "apps/v2"}, "there is no Deployment in apps/v2"),
        ({"spec": "large"}, "Deployment: spec: expected an object"),
        ({"spec": {"replica": 1}}, 'strict decoding error: unknown field "spec.replica"'),
        (
            {"metadata": {"name": "web", "annotations": {"moorage.io/arrival": "soon"}}},
            "annotation moorage.io/arrival: invalid duration",
        ),
    ],
)
def test_an_object_that_the_server_refuses_is_named(files: Files, change: Any, problem: str) -> None:
    with pytest.raises(InputError) as error:
        files.run({**owner("Deployment", "web"), **change})
    assert "workload.yaml: Deployment" in str(error.value)
    assert problem in str(error.value)


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (
            {"at": "1m", "add": "name=Large,cpu=1,memory=1Gi"},
            'script: Node "Large-0" is invalid: metadata.name: ',
        ),
        ({"at": "1m", "drain": "node-9"}, "script.yaml: event 1: drain: there is no node and no zone node-9"),
    ],
)
def test_an_event_that_is_not_possible_is_named(files: Files, event: Any, problem: str) -> None:
    with pytest.raises(InputError) as error:
        files.run(owner("Deployment", "web"), script=[event])
    assert problem in str(error.value)


def test_without_the_laptop_cluster_a_line_says_what_to_install(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controlled, "is_installed", lambda: False)
    with pytest.raises(InputError, match=r"needs the laptop cluster: pip install 'moorage\[cluster\]'"):
        files.run(owner("Deployment", "web"))
