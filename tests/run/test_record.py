"""`moorage run --record` and `moorage record --from-klog`, of a scheduler in another process."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer
from tests.run.running import RunningScheduler
from tests.sim.scheduler_log.logs import DATA, unpacked
from tests.up.objects import pod


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def dump(kubectl: Kubectl, tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Writes the cluster to a file; afterwards it is empty again."""

    def write(name: str) -> Path:
        path = tmp_path / f"{name}.json"
        path.write_text(kubectl("get", "nodes,pods,namespaces", "--all-namespaces", "-o", "json"))
        return path

    yield write
    kubectl("delete", "pod", "--all", "--grace-period=0", "--force")
    kubectl("delete", "priorityclass", "boss")


@pytest.mark.parametrize("format", ["text", "json"])
def test_recordings_of_our_own_scheduler_can_be_replayed(
    kubeconfig: Path,
    server: RunningServer,
    kubectl: Kubectl,
    dump: Callable[[str], Path],
    tmp_path: Path,
    format: str,
) -> None:
    recorded, logged, log = (tmp_path / name for name in ("recorded.json", "logged.json", "log"))
    scheduler = RunningScheduler(kubeconfig, f"--record={recorded}", "-v=10", f"--logging-format={format}")
    try:
        kubectl("create", "priorityclass", "boss", "--value=1000")
        for name, cpu, condition in (
            ("first", "10m", "PodScheduled"),
            ("huge", "999", "PodScheduled=False"),
            ("low", "7", "PodScheduled"),
        ):
            kubectl.create(pod(name, cpu=cpu, terminationGracePeriodSeconds=0))
            kubectl("wait", f"pod/{name}", f"--for=condition={condition}", "--timeout=100s")
        before = dump("before")
        kubectl.create(pod("boss", cpu="6", priorityClassName="boss"))
        kubectl("wait", "pod/boss", "--for=condition=PodScheduled", "--timeout=100s")
        scheduler.stop()
    finally:
        if scheduler.process.poll() is None:
            scheduler.kill()
    log.write_text(scheduler.log)
    options = ("record", "--from-klog", log, "-o", logged)

    made = run(*options, "--from", before, "--from", dump("after"))
    assert (made.exit_code, made.stderr) == (0, ""), made.output
    for file in (recorded, logged):
        replay = run("replay", file)
        assert replay.exit_code == 0, replay.output
        assert '"victims":["default/low"]' in file.read_text()
    count = sum("Attempting to schedule pod" in line for line in log.read_text().splitlines())
    assert made.stdout == f"{count} attempts of {count} are in {logged}\n"
    assert replay.stdout.splitlines()[-1] == f"{count} of {count} pods equal"

    from_server = run(*options, "--kubeconfig", server.kubeconfig)
    assert from_server.exit_code == 0, from_server.output
    assert "not known, in a file or from the cluster: default/low\n" in from_server.stderr
    replay = run("replay", logged)
    assert replay.exit_code == 0, replay.output


def test_a_log_of_kube_scheduler_in_two_files(tmp_path: Path) -> None:
    log, output = (DATA / "text.log.gz").read_bytes(), tmp_path / "out.json"
    lines = gzip.decompress(log).splitlines(keepends=True)
    first, second = tmp_path / "scheduler.log.1.gz", tmp_path / "scheduler.log"
    first.write_bytes(gzip.compress(b"".join(lines[:1000])))
    second.write_bytes(b"".join(lines[1000:]))
    options = ("--config", DATA / "config.yaml", "--from", unpacked("text-cluster.json.gz", tmp_path))
    made = run("record", "--from-klog", first, "--from-klog", second, *options, "-o", output)
    assert (made.exit_code, made.output) == (0, f"97 attempts of 97 are in {output}\n")
    assert '"reference":"kube-scheduler v1.36.4, from its log"' in output.read_text()

    alone = run("record", "--from-klog", second, *options, "--emulated-version", "1.36", "-o", output)
    assert alone.exit_code == 0, alone.output
    assert "left out, because the log does not have its beginning, or not its end: " in alone.stderr
    replay = run("replay", output)
    assert replay.exit_code == 0, replay.output


def test_a_damaged_log(tmp_path: Path) -> None:
    log = tmp_path / "log.gz"
    log.write_bytes((DATA / "text.log.gz").read_bytes()[:20000])
    result = run("record", "--from-klog", log, "-o", tmp_path / "out.json")
    assert (result.exit_code, len(result.output.splitlines())) == (1, 1)
    assert "log.gz: the compressed file is damaged: " in result.output


def test_a_log_without_attempts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("nothing\n")
    result = run("record", "--from-klog", log, "-o", tmp_path / "out.json")
    assert (result.exit_code, len(result.output.splitlines())) == (1, 1)
    assert "there is no attempt in it; the scheduler has to log at -v=10" in result.output
