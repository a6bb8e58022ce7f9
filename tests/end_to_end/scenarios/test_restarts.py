"""Processes that are killed or stand still while pods are scheduled: nothing is lost or done twice."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from moorage.http.free_port import free_port
from tests.apiserver.running import Kubectl, RunningServer, start_server
from tests.end_to_end.scenarios.stage import (
    LONG_LEASE,
    Stage,
    node_of,
    pods_by_node,
    uids,
)
from tests.run.running import SHORT_LEASE, scheduler_kubeconfig
from tests.up.objects import node, pod

RBAC = ("--authorization", "RBAC")
SLOW = ("--kube-api-qps=10", "--kube-api-burst=20")
"""So slow that there is a middle."""


def test_a_scheduler_that_is_killed_amid_200_pods_and_started_again(stage: Stage) -> None:
    for number in range(2):
        stage.add_node(f"n{number}", cpu="10")
    first = stage.start(*SLOW)
    pods = stage.watch()
    # There is room for 200 and no more: whoever counted a pod twice would find too little.
    stage.user.create(*(pod(f"p{number}", cpu="100m") for number in range(200)))
    pods.until_bound(30)
    first.kill()
    done = uids({name: each for name, each in stage.pods().items() if node_of(each)})
    assert 30 <= len(done) < 200
    second = stage.start()
    there = pods.until_bound(200)
    assert pods_by_node(there) == {"n0": 100, "n1": 100}
    second.send(signal.SIGUSR2)
    second.says("Cache matches the API server")
    second.stop()
    assert all(len(nodes) == 1 for nodes in pods.nodes_by_uid.values())
    events = stage.scheduled_events()
    assert set(events.values()) == {1}
    assert uids(there) - events.keys() <= done


@contextmanager
def alone(server: RunningServer, folder: Path) -> Iterator[Stage]:
    """A server without controllers and kubelets, with two nodes that have room for 35 small pods each."""
    kubectl = Kubectl(server, folder)
    stage = Stage(kubectl, "default", scheduler_kubeconfig(server, kubectl), folder)
    names = ("n0", "n1")
    kubectl.create(*(node(name, cpu="3500m") for name in names))
    kubectl("taint", "nodes", *names, "node.kubernetes.io/not-ready-")
    try:
        yield stage
    finally:
        stage.close()


def test_an_api_server_that_is_killed_amid_many_pods_and_started_again(tmp_path: Path) -> None:
    options = (*RBAC, "--data-dir", str(tmp_path / "data"), "--port", str(free_port()))
    with ExitStack() as ends:
        first = start_server(tmp_path, *options)
        try:
            stage = ends.enter_context(alone(first, tmp_path))
            scheduler = stage.elect(*SLOW, *LONG_LEASE)
            watch = stage.watch()
            stage.user.create(*(pod(f"p{number}", cpu="100m") for number in range(60)))
            before = watch.until_bound(30)
            watch.close()
        finally:
            first.kill()
        assert not all(map(node_of, before.values()))
        ends.enter_context(start_server(tmp_path, *options))
        stage.user.create(*(pod(f"later{number}", cpu="100m") for number in range(10)))
        there = stage.watch().until_bound(70)
        for name, each in before.items():
            assert there[name]["metadata"]["uid"] == each["metadata"]["uid"]
            assert node_of(each) in ("", node_of(there[name]))
        assert pods_by_node(there) == {"n0": 35, "n1": 35}
        scheduler.send(signal.SIGUSR2)
        scheduler.says("Cache matches the API server")
        scheduler.stop()
        assert stage.scheduled_events() == dict.fromkeys(uids(there), 1)


def test_a_scheduler_ends_that_cannot_renew_its_lease_and_another_goes_on(tmp_path: Path) -> None:
    with start_server(tmp_path, *RBAC) as server, alone(server, tmp_path) as stage:
        first = stage.elect(*SHORT_LEASE)
        server.process.send_signal(signal.SIGSTOP)
        try:
            first.says("Leaderelection lost")
            assert first.ended() == 1
        finally:
            server.process.send_signal(signal.SIGCONT)
        stage.user.create(pod("p", cpu="1"))
        second = stage.elect()
        stage.wait("PodScheduled", "p")
        second.stop()
