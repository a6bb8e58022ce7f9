"""`moorage up` as a process: how it begins, how it ends, and what it keeps."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from itertools import takewhile
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer, manifest
from tests.up.objects import binding, claim_template, job, pod, workload
from tests.up.running import TIMEOUT_SECONDS, all_at_once, end, start_cluster

ENDS_WITHIN_SECONDS = 60
STARTS_OR_FAILS_WITHIN_SECONDS = 60
BIND_COMPLETED = r".metadata.annotations.pv\.kubernetes\.io/bind-completed"
UNKNOWN_PLUGIN = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: mine
  plugins: {filter: {enabled: [{name: Nope}]}}
"""
STORE = workload(
    "StatefulSet", "store", replicas=1, serviceName="store", volumeClaimTemplates=[claim_template("data")]
)


def interrupt(running: RunningServer) -> None:
    """End a cluster as Ctrl-C does."""
    running.process.send_signal(signal.SIGINT)
    running.process.communicate(timeout=ENDS_WITHIN_SECONDS)
    assert running.process.returncode == 0, running.errors
    assert running.errors == ""


def fails(*options: str) -> str:
    """What `moorage up` says that cannot begin, in one line."""
    words = [sys.executable, "-m", "moorage", "up", *options]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=STARTS_OR_FAILS_WITHIN_SECONDS, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1), done
    return done.stderr


def pods_of(kubectl: Kubectl) -> dict[str, list[str]]:
    """What stays as it is while a pod runs; of pods that have a workload."""
    found = {}
    for each in kubectl.json("get", "pods", "-l", "app")["items"]:
        status = each["status"]
        container = status["containerStatuses"][0]
        found[each["metadata"]["name"]] = [
            each["spec"]["nodeName"],
            status["phase"],
            status["podIP"],
            status["startTime"],
            container["containerID"],
            str(container["restartCount"]),
        ]
    return found


def test_everything_goes_on_after_a_restart(tmp_path: Path) -> None:
    begin_with = tmp_path / "workloads.yaml"
    begin_with.write_text(
        manifest(
            workload("Deployment", "web", replicas=3),
            STORE,
            # Still at work when the cluster is stopped.
            job("long", says={"duration": "5s"}),
        )
    )
    options = ("--nodes", "2", "--data-dir", str(tmp_path / "data"))
    with start_cluster(tmp_path, *options, "--apply", str(begin_with)) as first:
        kubectl = Kubectl(first, tmp_path)
        all_at_once(
            kubectl,
            f"rollout status deployment/web {TIMEOUT_SECONDS}",
            f"rollout status statefulset/store {TIMEOUT_SECONDS}",
            f"wait pods -l job-name=long --for=condition=Ready {TIMEOUT_SECONDS}",
        )
        before, volumes = pods_of(kubectl), kubectl("get", "pv", "-o", "name")
        assert len(before) == 4
        refused = fails(*options, "--port", "0", "--kubeconfig", str(tmp_path / "other"))
        assert str(tmp_path / "data") in refused
        watching = kubectl.start("get", "pods", "--watch-only")
        interrupt(first)
        watching.communicate(timeout=ENDS_WITHIN_SECONDS)

    with start_cluster(tmp_path, *options) as second:
        kubectl = Kubectl(second, tmp_path)
        assert kubectl("get", "nodes", "-o", "name").split() == ["node/node-0", "node/node-1"]
        assert pods_of(kubectl) == before
        assert kubectl("get", "pv", "-o", "name") == volumes
        kubectl("scale", "deployment/web", "--replicas=4")
        all_at_once(
            kubectl,
            f"rollout status deployment/web {TIMEOUT_SECONDS}",
            f"wait job/long --for=condition=complete {TIMEOUT_SECONDS}",
        )
        after = pods_of(kubectl)
        assert len(after) == 5
        assert {name: after[name] for name in before} == before
        interrupt(second)


def test_a_cluster_from_a_dump(kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    kubectl.create(
        workload("Deployment", "web", replicas=3),
        workload("DaemonSet", "agent"),
        STORE,
        job("done", says={"duration": "0s"}),
        job("going-on", says={"duration": "5s"}),
    )
    all_at_once(
        kubectl,
        f"rollout status deployment/web {TIMEOUT_SECONDS}",
        f"rollout status daemonset/agent {TIMEOUT_SECONDS}",
        f"rollout status statefulset/store {TIMEOUT_SECONDS}",
        f"wait job/done --for=condition=complete {TIMEOUT_SECONDS}",
        f"wait pods -l job-name=going-on --for=condition=Ready {TIMEOUT_SECONDS}",
    )
    kinds = "nodes,namespaces,controllerrevisions,deployments,replicasets,statefulsets,daemonsets,jobs"
    dump = tmp_path / "cluster.yaml"
    dump.write_text(kubectl("get", f"{kinds},pods,pvc,pv", "--all-namespaces", "-o", "yaml"))
    nodes, before = kubectl("get", "nodes", "-o", "name"), pods_of(kubectl)

    with start_cluster(tmp_path, "--from", str(dump), "--data-dir", str(tmp_path / "data")) as other:
        assert other.errors == ""
        there = Kubectl(other, tmp_path, "--namespace", namespace)
        assert there("get", "nodes", "-o", "name") == nodes
        all_at_once(
            there,
            f"rollout status deployment/web {TIMEOUT_SECONDS}",
            f"rollout status daemonset/agent {TIMEOUT_SECONDS}",
            f"rollout status statefulset/store {TIMEOUT_SECONDS}",
            f"wait job/done job/going-on --for=condition=complete {TIMEOUT_SECONDS}",
            # The volume and its claim have found each other again.
            f"wait pvc/data-store-0 --for=jsonpath={{{BIND_COMPLETED}}}=yes {TIMEOUT_SECONDS}",
            f"wait pvc/data-store-0 --for=jsonpath={{.status.phase}}=Bound {TIMEOUT_SECONDS}",
        )
        assert pods_of(there) == before
        assert len(there("get", "pods", "-l", "job-name", "-o", "name").split()) == 2
        there("delete", "pod", next(name for name in before if name.startswith("web")))
        there("rollout", "status", "deployment/web", TIMEOUT_SECONDS)
        after = pods_of(there)
        assert len(after) == len(before)
        assert len(after.keys() - before.keys()) == 1


def test_another_process_schedules(tmp_path: Path) -> None:
    with start_cluster(tmp_path, "--nodes", "1", "--no-scheduler") as running:
        assert running.process.stdout is not None
        greeting = "".join(takewhile("Ctrl-C ends it.\n".__ne__, running.process.stdout))
        assert f"export KUBECONFIG={running.kubeconfig}\n" in greeting
        assert greeting.count("  kubectl ") == 3
        kubectl = Kubectl(running, tmp_path)
        kubectl.create(pod("waiting"), pod("bound"))
        path = "/api/v1/namespaces/default/pods/bound/binding"
        kubectl("create", "--raw", path, "-f", "-", input=json.dumps(binding("bound", "node-0")))
        kubectl("wait", "pod/bound", "--for=condition=Ready", TIMEOUT_SECONDS)
        left = kubectl.json("get", "pod", "waiting")
        assert "nodeName" not in left["spec"]
        assert left["status"]["phase"] == "Pending"
        assert "conditions" not in left["status"]


def test_objects_that_cannot_be_created(tmp_path: Path) -> None:
    (tmp_path / "pods.yaml").write_text(manifest(pod("Bad"), pod("good")))
    options = ("--nodes", "0", "--apply", str(tmp_path / "pods.yaml"))
    running = start_cluster(tmp_path, *options)
    try:
        assert Kubectl(running, tmp_path)("get", "pods", "-o", "name") == "pod/good\n"
        running.process.send_signal(signal.SIGINT)
        running.process.communicate(timeout=ENDS_WITHIN_SECONDS)
    finally:
        end(running.process)
    assert running.process.returncode == 1
    assert running.errors.startswith(
        f'moorage up: cannot create Pod Bad of {tmp_path}/pods.yaml: Pod "Bad" is'
    )
    assert running.errors.count("\n") == 1


def test_a_taken_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        output = fails("--port", port, "--kubeconfig", str(tmp_path / "kubeconfig"))
    assert output.startswith("moorage up: ")
    assert port in output
    assert "in use" in output
    assert not (tmp_path / "kubeconfig").exists()


KUBELET: dict[str, object] = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}
KUBELETS: dict[str, dict[str, object]] = {
    "typo.yaml": {"maxPodz": 1},
    "text.yaml": {"maxPods": "many"},
    "threshold.yaml": {"evictionHard": {"memory.available": "0"}},
}
MISTAKES: dict[str, tuple[tuple[str, str], str]] = {
    "memory that is no quantity": (("--node-memory", "lots"), "--node-memory: 'lots' is not a quantity"),
    "no memory": (("--node-memory", "0"), "--node-memory: '0' is not more than nothing"),
    "too little memory": (("--node-memory", "300Mi"), "--node-memory: '300Mi' is no more than a node keeps"),
    "too few cores": (("--node-cpu", "100m"), "--node-cpu: '100m' is no more than a node keeps for itself"),
    "a dump that is not there": (("--from", "none.yaml"), "none.yaml: No such file or directory"),
    "a dump that is no YAML": (("--from", "broken.yaml"), "broken.yaml: line 2: not YAML: "),
    "a dump that is no text": (("--from", "binary.yaml"), "binary.yaml: not UTF-8 text"),
    "a dump without objects": (("--from", "numbers.yaml"), "numbers.yaml: expected objects"),
    "workloads that are not there": (("--apply", "none.yaml"), "none.yaml: No such file or directory"),
    "no configuration": (("--config", "none.yaml"), "none.yaml: No such file or directory"),
    "another kind of configuration": (("--config", "pod.yaml"), "pod.yaml: "),
    "a threshold of nothing": (
        ("--eviction-hard", "memory.free<1Gi"),
        "--eviction-hard: unsupported eviction signal memory.free",
    ),
    "a threshold without a sign": (
        ("--eviction-hard", "memory.available=1Gi"),
        "--eviction-hard: malformed pair 'memory.available=1Gi', expect string<string",
    ),
    "a soft threshold without grace": (
        ("--eviction-soft", "memory.available<1Gi"),
        "--eviction-soft: grace period must be specified for the soft eviction threshold memory.available",
    ),
    "a grace period that is none": (
        ("--eviction-pressure-transition-period", "soon"),
        '--eviction-pressure-transition-period: invalid duration "soon"',
    ),
    "a reservation of something else": (
        ("--system-reserved", "gpu=1"),
        '--system-reserved: cannot reserve "gpu" resource',
    ),
    "a negative reservation": (
        ("--kube-reserved", "cpu=-1"),
        '--kube-reserved: resource quantity for "cpu" cannot be negative: -1',
    ),
    "a reservation of everything": (
        ("--kube-reserved", "memory=32Gi"),
        "--node-memory: '32Gi' is no more than a node keeps for itself",
    ),
    "fewer than no pods": (("--max-pods", "-1"), "--max-pods: -1 must not be a negative number"),
    "an unknown field": (("--kubelet-config", "typo.yaml"), 'typo.yaml: unknown field "maxPodz"'),
    "a field of another type": (
        ("--kubelet-config", "text.yaml"),
        "text.yaml: maxPods: expected `int`, got `str`",
    ),
    "a threshold in a file": (
        ("--kubelet-config", "threshold.yaml"),
        "threshold.yaml: evictionHard: eviction threshold memory.available must be positive: 0",
    ),
    "another kind of kubelet configuration": (
        ("--kubelet-config", "pod.yaml"),
        "pod.yaml: apiVersion: expected kubelet.config.k8s.io/v1beta1, got v1",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_take_one_line(mistake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.yaml").write_text("items: [\n")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\x00")
    (tmp_path / "numbers.yaml").write_text("[1, 2]")
    (tmp_path / "pod.yaml").write_text(json.dumps(pod("configuration")))
    for name, fields in KUBELETS.items():
        (tmp_path / name).write_text(json.dumps(KUBELET | fields))
    monkeypatch.chdir(tmp_path)
    options, message = MISTAKES[mistake]
    result = CliRunner().invoke(app, ["up", "--port", "0", "--kubeconfig", "kubeconfig", *options])
    assert result.exit_code == 1
    assert result.stdout == ""
    assert result.stderr.startswith(f"moorage up: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param(("--config", "scheduler.yaml"), "there is no plugin Nope", id="an unknown plugin"),
        pytest.param(("--kubeconfig", "."), ".: cannot be written: ", id="a kubeconfig that is a folder"),
        pytest.param(("--data-dir", "scheduler.yaml"), "cannot use scheduler.yaml", id="data in a file"),
    ],
)
def test_what_only_the_start_shows(
    options: tuple[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scheduler.yaml").write_text(UNKNOWN_PLUGIN)
    monkeypatch.chdir(tmp_path)
    assert message in fails("--port", "0", "--kubeconfig", "kubeconfig", *options)
