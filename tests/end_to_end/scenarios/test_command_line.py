"""That `moorage run` can stand where kube-scheduler stood: in kubeadm's static pod."""

from __future__ import annotations

from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.apiserver.running import Kubectl
from tests.end_to_end.scenarios.stage import Stage
from tests.up.objects import pod


def test_it_starts_with_the_command_line_of_kubeadm(stage: Stage, kubeconfig: Path, admin_token: str) -> None:
    stage.add_node("n1")
    scheduler = stage.elect(
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--kubeconfig={kubeconfig}",
        "--leader-elect=true",
    )
    stage.user.create(pod("p"))
    stage.wait("PodScheduled", "p")
    # What its probes ask, without credentials; who wants to know more must be somebody.
    assert scheduler.get("/livez").status == 200
    assert scheduler.get("/readyz").status == 200
    assert scheduler.get("/metrics").status == 403
    measured = text_string_to_metric_families(scheduler.get("/metrics", admin_token).text)
    (attempts,) = (each for each in measured if each.name == "scheduler_schedule_attempts")
    assert [(sample.labels, sample.value) for sample in attempts.samples] == [
        ({"profile": "default-scheduler", "result": "scheduled"}, 1)
    ]
    scheduler.stop()


def test_schedulers_may_do_no_more_here_than_kube_scheduler_may(kubectl: Kubectl, kubeconfig: Path) -> None:
    account = "--as=system:serviceaccount:kube-system:scheduler"
    assert kubectl("auth", "can-i", "create", "pods", "--subresource=binding", account) == "yes\n"
    assert kubectl("auth", "can-i", "delete", "nodes", account, ok=False).startswith("no\n")
