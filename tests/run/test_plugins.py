"""`moorage run` with plugins from a file, and a program of one's own with plugins built in."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moorage.klog import quoted
from tests.apiserver.running import Kubectl
from tests.run.running import RunningScheduler
from tests.run.test_process import SCHEDULED, TIMEOUT_SECONDS, configuration
from tests.up.objects import pod

PLUGIN = """
from dataclasses import dataclass
from time import perf_counter


@dataclass
class Args:
    mood: str = "{mood}"


class Moody:
    name = "Moody"

    def __init__(self, args: Args):
        self.mood = args.mood

    def filter_node(self, cycle, pod, node):
        if pod.name.startswith("wrong"):
            raise ValueError("no such mood")
        end = perf_counter() + 0.005
        while perf_counter() < end:
            pass
        return self.mood if pod.name.startswith("moody") and self.mood else None
"""
PROGRAM = """
import moorage


class Herald:
    name = "{name}"

    def __init__(self, args: dict, handle: moorage.Handle):
        self.words, self.handle = args["words"], handle

    def post_bind(self, cycle, pod, node_name):
        self.handle.record_event(pod, "Heralded", self.words)


if __name__ == "__main__":
    moorage.scheduler_command(moorage.with_plugin("{name}", Herald))()
"""


def test_a_plugin_from_a_file(
    kubectl: Kubectl, start: Callable[..., RunningScheduler], admin_token: str, tmp_path: Path
) -> None:
    plugin = tmp_path / "moody.py"
    plugin.write_text(PLUGIN.format(mood="bad mood"))
    scheduler = start(f"--plugin={plugin}", "--slow-plugin-warning=1ms")
    kubectl.create(pod("moody-one", cpu="10m"), pod("wrong-one", cpu="10m"), pod("plain-one", cpu="10m"))
    kubectl("wait", "pod/plain-one", SCHEDULED, TIMEOUT_SECONDS)
    kubectl("wait", "pod/moody-one", "pod/wrong-one", f"{SCHEDULED}=False", TIMEOUT_SECONDS)

    def condition(name: str) -> dict[str, str]:
        [found] = kubectl.json("get", "pod", name)["status"]["conditions"]
        return dict(found)

    # A plugin that raises fails that pod, and says where.
    wrong = condition("wrong-one")
    message = 'running "Moody" filter plugin: ValueError: no such mood (moody.py:19)'
    assert (wrong["reason"], wrong["message"]) == ("SchedulerError", message)
    assert f'err={quoted(message)} pod="default/wrong-one"' in scheduler.log
    assert condition("moody-one")["message"].startswith("0/1 nodes are available: 1 bad mood.")

    # One that is slow is warned of once, and counted each time.
    slow = re.findall(
        '"Plugin is slow.*" plugin="Moody" extensionPoint="Filter" milliseconds=[0-9]+', scheduler.log
    )
    assert len(slow) == 1
    counted = r'^moorage_slow_plugin_calls_total\{extension_point="Filter",plugin="Moody"\} [1-9]'
    shown = scheduler.get("/metrics", admin_token).text
    assert re.search(counted, shown, re.MULTILINE), [line for line in shown.splitlines() if "slow" in line]

    # Reloading reads the file anew; one that is broken changes nothing.
    plugin.write_text("def broken(:\n")
    scheduler.send(signal.SIGHUP)
    complaint = scheduler.says("Failed to reload the configuration")
    assert f"{plugin} cannot be loaded: SyntaxError: invalid syntax ({plugin}:1); correct it" in complaint
    plugin.write_text(PLUGIN.format(mood=""))
    scheduler.send(signal.SIGHUP)
    scheduler.says("Reloaded the configuration")
    kubectl("wait", "pod/moody-one", SCHEDULED, TIMEOUT_SECONDS)
    scheduler.stop()
    kubectl("delete", "pod", "moody-one", "wrong-one", "plain-one", "--grace-period=0", "--force")


def test_a_program_of_one_s_own(kubectl: Kubectl, kubeconfig: Path, tmp_path: Path) -> None:
    program = tmp_path / "own_scheduler.py"
    program.write_text(PROGRAM.format(name="Herald"))
    own = {
        "schedulerName": "own-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "Herald"}]}},
        "pluginConfig": [{"name": "Herald", "args": {"words": "hear, hear"}}],
    }
    config = configuration(tmp_path / "scheduler.yaml", kubeconfig, own)
    with RunningScheduler(kubeconfig, config, program=(str(program),)):
        kubectl.create(pod("heralded", cpu="10m", schedulerName="own-scheduler"))
        kubectl("wait", "pod/heralded", SCHEDULED, TIMEOUT_SECONDS)
    [event] = kubectl.json("get", "events", "--field-selector=reason=Heralded")["items"]
    assert (event["message"], event["reportingComponent"]) == ("hear, hear", "own-scheduler")
    kubectl("delete", "pod", "heralded", "--grace-period=0", "--force")


def runs(program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(program), *options], capture_output=True, text=True, timeout=30, check=False
    )


WRONG = {
    "a name taken twice": (
        "NodeName",
        "--master=http://127.0.0.1:1",
        "a plugin named NodeName exists already in moorage itself; give the one in this program another name",
    ),
    "a flag that does not exist": ("Herald", "--nope", "unknown flag: --nope"),
}


@pytest.mark.parametrize(("name", "option", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_a_program_that_cannot_begin(name: str, option: str, complaint: str, tmp_path: Path) -> None:
    program = tmp_path / "own_scheduler.py"
    program.write_text(PROGRAM.format(name=name))
    done = runs(program, option)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"own_scheduler.py: {complaint}\n")


def test_the_help_of_a_program_of_one_s_own(tmp_path: Path) -> None:
    program = tmp_path / "own_scheduler.py"
    program.write_text(PROGRAM.format(name="Herald"))
    done = runs(program, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: own_scheduler.py [flags]")
    assert "--leader-elect-lease-duration duration" in done.stdout
