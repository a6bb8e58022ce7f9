"""What `moorage run` makes of its command line, without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli.main import app

WRONG = {
    "a number that is none": (("--secure-port=x",), "--secure-port"),
    "a duration without a unit": (("--leader-elect-lease-duration=5",), "missing unit in duration"),
    "neither true nor false": (("--leader-elect=maybe",), "neither true nor false"),
    "a flag that does not exist": (("--nope",), "--nope"),
    "a file that does not exist": (("--config=nope.yaml",), "nope.yaml"),
    "no kubeconfig": (("--kubeconfig=nope",), "nope"),
    "a lease that ends before its renewal": (("--leader-elect-lease-duration=5s",), "leaseDuration"),
    "a verbosity that is none": (("-v=much",), "-v"),
    "a certificate without a key": (
        ("--kubeconfig={kubeconfig}", "--secure-port=1", "--tls-cert-file=x.pem"),
        "a certificate needs its key",
    ),
    "a star within an open path": (
        ("--kubeconfig={kubeconfig}", "--authorization-always-allow-paths=/a*b"),
        "only trailing * allowed",
    ),
}


def written(tmp_path: Path, *flags: str) -> Any:
    path = tmp_path / "written.yaml"
    result = CliRunner().invoke(app, ["run", f"--write-config-to={path}", *flags])
    assert (result.exit_code, result.output) == (0, "")
    return yaml.safe_load(path.read_text())


@pytest.mark.parametrize(("flags", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_in_one_line(flags: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    context = {"name": "c", "context": {"cluster": "c"}}
    kubeconfig.write_text(
        yaml.safe_dump({"clusters": [cluster], "contexts": [context], "current-context": "c"})
    )
    words = [flag.format(kubeconfig=kubeconfig) for flag in flags]
    result = CliRunner().invoke(app, ["run", *words])
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1), result.output
    assert result.stderr.startswith("moorage run: ")
    assert complaint in result.stderr


def test_flags_are_in_the_configuration_that_is_written(tmp_path: Path) -> None:
    config = written(
        tmp_path,
        "--leader-elect=false",
        "--leader-elect-resource-name=mine",
        "--kube-api-qps=7.5",
        "--kube-api-burst=9",
        "--kubeconfig=here",
    )
    assert config["leaderElection"]["leaderElect"] is False
    assert config["leaderElection"]["resourceName"] == "mine"
    assert {"kubeconfig": "here", "qps": 7.5, "burst": 9}.items() <= config["clientConnection"].items()


def test_a_configuration_file_wins_except_over_flags_on_leader_election(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "clientConnection": {"qps": 3},
                "leaderElection": {"leaderElect": False, "resourceName": "file"},
            }
        )
    )
    config = written(
        tmp_path,
        f"--config={path}",
        "--kube-api-qps=9",
        "--leader-elect-resource-name=flag",
        "--leader-elect",
    )
    assert config["clientConnection"]["qps"] == 3
    assert (config["leaderElection"]["resourceName"], config["leaderElection"]["leaderElect"]) == (
        "flag",
        True,
    )
