"""`moorage run --ui-port`: the page beside a scheduler."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from tests.apiserver.running import Kubectl
from tests.page_access import all_end, children, page_of
from tests.run.running import RunningScheduler


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_page_reads_the_scheduler_and_ends_with_it(
    number: signal.Signals, kubeconfig: Path, kubectl: Kubectl
) -> None:
    gates = "--feature-gates=GenericWorkload=false"
    with RunningScheduler(kubeconfig, "--ui-port=0", gates, output=subprocess.PIPE) as running:
        page = page_of(running.process)
        assert {"queue", "attempts", "health"} <= set(page.get("source")["features"])
        assert page.get("queue")["fromScheduler"] is True
        [command] = children(running.process)
        assert gates in command  # Pods are explained as they are scheduled.
        assert "token" not in command

        assert running.process.stdout is not None
        running.send(number)
        with running.process.stdout:
            all_end(running.process)


MISTAKES = {
    "credentials over HTTP": (
        ["--ui-port=0", "--insecure-send-credentials-over-http"],
        "--ui-port: the page sends credentials over TLS only; use an https:// server",
    ),
    "no port": (["--ui-port=70000"], "--ui-port: 70000 is not between 0 and 65535"),
    "another server": (
        ["--ui-port=0", "--master=https://127.0.0.1:1"],
        "--ui-port: the page finds the API server in a kubeconfig; leave --master out",
    ),
}


@pytest.mark.parametrize(("options", "message"), MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_take_one_line(options: list[str], message: str) -> None:
    done = CliRunner().invoke(app, ["run", "--emulated-version=1.37", *options])
    assert (done.exit_code, done.stderr) == (1, f"moorage run: {message}\n")
