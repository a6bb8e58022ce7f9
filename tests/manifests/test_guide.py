"""The guide's commands, run as they are written against a cluster on this machine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.apiserver.running import Kubectl, RunningServer
from tests.documents.player import ROOT, Command, File, Play, section, steps
from tests.manifests.forms import DEPLOY
from tests.manifests.installing import DEFINITION, account_kubeconfig
from tests.run.running import RunningScheduler
from tests.up.objects import pod
from tests.up.running import TIMEOUT_SECONDS, start_cluster

GUIDE = (ROOT / "docs/how-to/deploying.md").read_text()
NAME = "my-scheduler"
KUBEADM = Path(__file__).parent / "data" / "kube-scheduler.yaml"


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A cluster that runs the scheduler which is deployed in it."""
    options = ("--nodes", "3", "--authorization", "RBAC", "--run-containers")
    with start_cluster(tmp_path_factory.mktemp("guide"), *options) as running:
        yield running


class Operator(Play):
    """A reader who reaches the pods of the Deployment at their own addresses, and not by port-forward."""

    def __init__(self, server: RunningServer, kubectl: Kubectl, folder: Path) -> None:
        super().__init__(folder)
        self.uses_cluster(server.kubeconfig)
        self._kubectl = kubectl

    def here(self, command: str) -> str:
        if "localhost:10259" not in command:
            return command
        options = ("--namespace=kube-system", f"--selector=app.kubernetes.io/instance={NAME}")
        address = self._kubectl("get", "pods", *options, "-o", "jsonpath={.items[0].status.podIP}")
        return command.replace("localhost:10259", f"{address}:10259")


def test_from_nothing_to_a_second_scheduler(cluster: RunningServer, tmp_path: Path) -> None:
    kubectl = Kubectl(cluster, tmp_path)
    kubectl("apply", "-f", str(DEFINITION))
    reader = Operator(cluster, kubectl, tmp_path)
    reader.play(section(GUIDE, "A second scheduler"))
    assert [command.split()[1] for command in reader.not_run] == ["build", "push", "port-forward"]
    assert kubectl("get", "deployment", NAME, "--namespace=kube-system", ok=False)


def test_by_helm_and_by_kustomize(cluster: RunningServer, tmp_path: Path) -> None:
    reader = Play(tmp_path)
    reader.uses_cluster(cluster.kubeconfig)
    (tmp_path / "deploy").symlink_to(DEPLOY)
    for step in steps(section(GUIDE, "A second scheduler")):
        if isinstance(step, File):
            reader.follow(step)
    kubectl = Kubectl(cluster, tmp_path)
    logs = ("logs", "--namespace=kube-system", "--selector=app.kubernetes.io/name=moorage", "--tail=-1")
    for step in steps(section(GUIDE, "By Helm or Kustomize")):
        reader.follow(step)
        if isinstance(step, Command) and step.text.startswith("kubectl rollout status"):
            log = kubectl(*logs)
            assert "Serving securely" in log
            assert "forbidden" not in log, log
    assert reader.not_run == []
    assert kubectl("get", "pod", "first", "-o", "jsonpath={.spec.nodeName}")
    assert kubectl("get", "deployments", "--namespace=kube-system", "-o", "name") == ""


@pytest.fixture(scope="module")
def headless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """A cluster without a scheduler."""
    options = ("--nodes", "1", "--no-scheduler", "--authorization", "RBAC")
    with start_cluster(tmp_path_factory.mktemp("headless"), *options) as running:
        yield running


class Administrator(Play):
    """A reader on a control-plane node of kubeadm's, with its folder, in which they may do everything."""

    def __init__(self, server: RunningServer, folder: Path) -> None:
        super().__init__(folder)
        self.uses_cluster(server.kubeconfig)
        self.etc = folder / "etc" / "kubernetes"
        (self.etc / "manifests").mkdir(parents=True)
        self.manifest = self.etc / "manifests" / "kube-scheduler.yaml"
        self.manifest.write_text(KUBEADM.read_text())

    def here(self, command: str) -> str:
        return command.replace("/etc/kubernetes", str(self.etc)).replace("sudo ", "")


def test_from_kube_scheduler_to_moorage_and_back(headless: RunningServer, tmp_path: Path) -> None:
    kubectl = Kubectl(headless, tmp_path)
    reader = Administrator(headless, tmp_path)
    saved, edited, lease, *_, back = (
        step
        for step in steps(section(GUIDE, "In place of kube-scheduler"))
        if isinstance(step, Command) and "moorage manifests" not in step.text
    )
    reader.follow(saved)
    reader.follow(edited)
    (container,) = yaml.safe_load(reader.manifest.read_text())["spec"]["containers"]
    before = yaml.safe_load(KUBEADM.read_text())["spec"]
    assert container["image"] == "registry.example/moorage:1.0.0"
    assert container["command"] == ["moorage", "run", *before["containers"][0]["command"][1:]]
    security = yaml.safe_load(reader.manifest.read_text())["spec"]["securityContext"]
    assert security == {**before["securityContext"], "runAsUser": 0}
    kubeconfig = static_kubeconfig(headless, kubectl, reader.etc)
    options = [
        option.replace("/etc/kubernetes/scheduler.conf", str(kubeconfig))
        for option in container["command"][2:]
    ]
    with RunningScheduler(kubeconfig, *options):
        reader.follow(lease)
        kubectl.create(pod("first"))
        kubectl("wait", "pod/first", "--for=condition=PodScheduled", TIMEOUT_SECONDS)
    reader.follow(back)
    assert reader.manifest.read_text() == KUBEADM.read_text()


def static_kubeconfig(server: RunningServer, kubectl: Kubectl, folder: Path) -> Path:
    """kubeadm's scheduler.conf: an account with kube-scheduler's two roles, and no other."""
    account = "system:serviceaccount:kube-system:kube-scheduler"
    kubectl("create", "serviceaccount", "kube-scheduler", "--namespace=kube-system")
    for role in ("system:kube-scheduler", "system:volume-scheduler"):
        name = role.replace(":", "-")
        kubectl("create", "clusterrolebinding", name, f"--clusterrole={role}", f"--user={account}")
    reading = ("--role=extension-apiserver-authentication-reader", f"--user={account}")
    kubectl("create", "rolebinding", "reads-authorities", *reading, "--namespace=kube-system")
    return account_kubeconfig(server, kubectl, "kube-scheduler", folder)


def test_a_deployment_on_a_node_needs_no_scheduler(headless: RunningServer, tmp_path: Path) -> None:
    reader = Play(tmp_path)
    reader.uses_cluster(headless.kubeconfig)
    for step in steps(section(GUIDE, "In place of kube-scheduler")):
        if isinstance(step, File) or (isinstance(step, Command) and "moorage manifests" in step.text):
            reader.follow(step)
    kubectl = Kubectl(headless, tmp_path)
    kubectl("rollout", "status", "deployment/kube-scheduler", "--namespace=kube-system", TIMEOUT_SECONDS)


def test_the_image_for_packages_begins_as_the_dockerfile_does() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text()
    base = next(line for line in dockerfile.splitlines() if line.startswith("FROM"))
    assert base in GUIDE
