"""Every example runs, and prints what its .out file says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl
from tests.run.running import RunningScheduler
from tests.up.running import TIMEOUT_SECONDS, start_cluster

ROOT = Path(__file__).parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_example(example: Path) -> None:
    result = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert result.stdout == example.with_suffix(".out").read_text()


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(
    ("page", "arguments"),
    [
        ("how-to/explaining.md", ["decide", "examples/cluster.yaml", "--pod", "examples/pod.yaml"]),
        (
            "how-to/replaying.md",
            ["replay", *sorted(str(path) for path in (ROOT / "tests" / "recordings").glob("*.json.gz"))],
        ),
    ],
    ids=["decide", "replay"],
)
def test_pages_show_what_commands_really_print(
    page: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    printed = "\n".join(line.rstrip() for line in result.output.splitlines())
    assert printed in (ROOT / "docs" / page).read_text()


def test_the_first_example_is_shown_with_its_output() -> None:
    page = (ROOT / "docs/how-to/plugins.md").read_text()
    assert (ROOT / "examples" / "first_decision.out").read_text() in page


SAMPLE = ROOT / "examples" / "sample_plugin"


def test_the_sample_of_every_guide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the guide's old configuration to a pod that the plugin was asked about, with real processes."""
    config = tmp_path / "sample-scheduler.yaml"
    converted = CliRunner().invoke(
        app, ["config", "convert", str(SAMPLE / "old-config.yaml"), "-o", str(config)]
    )
    assert converted.exit_code == 0, converted.output
    options = ("--no-scheduler", "--from", str(SAMPLE / "nodes.yaml"))
    with start_cluster(tmp_path, *options) as server:
        kubectl = Kubectl(server, tmp_path)
        kubectl("wait", "nodes", "--all", "--for=condition=Ready", TIMEOUT_SECONDS)
        words = (f"--config={config}", f"--plugin={SAMPLE / 'sample_plugin.py'}", "-v=2")
        monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))
        with RunningScheduler(server.kubeconfig, *words) as scheduler:
            kubectl("apply", "-f", str(SAMPLE / "deployment.yaml"))
            kubectl("rollout", "status", "deployment/sample", TIMEOUT_SECONDS)
            bound = scheduler.says("Successfully bound pod to node")
            (pod,) = kubectl.json("get", "pods")["items"]
        name, node = pod["metadata"]["name"], pod["spec"]["nodeName"]
        assert pod["spec"]["schedulerName"] == "sample-scheduler"
        assert node in ("worker-1", "worker-2")
        # TaintToleration comes before the plugin, so it is not asked about the control plane.
        assert [
            line.partition("] ")[2] for line in scheduler.log.splitlines() if " sample_plugin.py:" in line
        ] == [
            "args: SamplePluginArgs(favorite_color='#326CE5', favorite_number=7, thanks_to='thockin')",
            f"prefilter pod: {name}",
            f"filter pod: {name}, node: worker-1",
            f"filter pod: {name}, node: worker-2",
            f"prebind pod: {name}, node: {node}",
        ]
        assert bound.partition("] ")[2] == (
            f'"Successfully bound pod to node" pod="default/{name}" node="{node}" '
            "evaluatedNodes=3 feasibleNodes=2\n"
        )
