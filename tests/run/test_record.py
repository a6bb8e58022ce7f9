"""`moorage run --record` and `moorage record --from-klog`, of a scheduler in another process."""

from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner, Result

from moorage.cli.main import app
from tests.apiserver.running import Kubectl, RunningServer
from tests.run.running import RunningScheduler
from tests.up.objects import pod


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_both_recordings_of_our_own_scheduler_can_be_replayed(
    kubeconfig: Path, server: RunningServer, kubectl: Kubectl, tmp_path: Path
) -> None:
    recorded, logged, log = (tmp_path / name for name in ("recorded.json", "logged.json", "log"))
    scheduler = RunningScheduler(kubeconfig, f"--record={recorded}", "-v=10")
    try:
        for name in ("first", "second"):
            kubectl.create(pod(name, cpu="10m"))
            kubectl("wait", f"pod/{name}", "--for=condition=PodScheduled", "--timeout=30s")
        kubectl.create(pod("huge", cpu="999"))
        kubectl("wait", "pod/huge", "--for=condition=PodScheduled=False", "--timeout=30s")
        scheduler.stop()
    finally:
        if scheduler.process.poll() is None:
            scheduler.kill()
    log.write_text(scheduler.log)
    made = run("record", "--from-klog", log, "-o", logged, "--kubeconfig", server.kubeconfig)
    kubectl("delete", "pod", "first", "second", "huge", "--grace-period=0", "--force")
    assert (made.exit_code, made.stdout) == (0, f"3 attempts of 3 are in {logged}\n"), made.output
    for file in (recorded, logged):
        replay = run("replay", file)
        assert (replay.exit_code, replay.stdout.splitlines()[-1]) == (0, "3 of 3 pods equal"), replay.output


def test_a_log_without_attempts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("nothing\n")
    result = run("record", "--from-klog", log, "-o", tmp_path / "out.json")
    assert (result.exit_code, len(result.output.splitlines())) == (1, 1)
    assert "there is no attempt in it; the scheduler has to log at -v=10" in result.output
