"""`moorage up --plugin FILE.py --watch`: edit, save, and the next pods land elsewhere."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.main import app
from moorage_cluster.cli.watching import Saved
from tests.apiserver.running import Kubectl, RunningServer
from tests.up.objects import pod
from tests.up.running import TIMEOUT_SECONDS, line_with

PLUGIN = """
import logging


class Only:
    name = "Only"

    def filter_node(self, cycle, pod, node):
        logging.getLogger("moorage.only").debug("asked about %s", node.name)
        return None if node.name == "{node}" else "not the one"
"""
UNKNOWN = "import nothing_of_this_name\n"
SCHEDULED = "--for=condition=PodScheduled"


@contextmanager
def watched(folder: Path, plugin: Path) -> Iterator[RunningServer]:
    """A cluster that watches a plugin; what it complains of is among what it says."""
    kubeconfig = folder / "kubeconfig"
    words = [sys.executable, "-m", "moorage", "up", "--port=0", f"--kubeconfig={kubeconfig}", "--nodes=3"]
    process = subprocess.Popen(
        [*words, "--no-ui", f"--plugin={plugin}", "--watch", "-v=4"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=folder,
    )
    (folder / "stderr").touch()
    with RunningServer(process, "", kubeconfig, folder / "stderr") as running:
        line_with(process, "cluster is up at")
        yield running


def node_of(kubectl: Kubectl, name: str) -> str:
    kubectl("wait", f"pod/{name}", SCHEDULED, TIMEOUT_SECONDS)
    return str(kubectl.json("get", "pod", name)["spec"]["nodeName"])


def test_a_plugin_is_reloaded_when_its_file_is_saved(tmp_path: Path) -> None:
    plugin = tmp_path / "only.py"
    plugin.write_text(PLUGIN.format(node="node-0"))
    with watched(tmp_path, plugin) as running:
        kubectl = Kubectl(running, tmp_path)
        line_with(running.process, f"Watching {plugin}")
        kubectl.create(pod("first"))
        assert node_of(kubectl, "first") == "node-0"
        attempting = line_with(running.process, '"Attempting to schedule pod" pod="default/first"')
        assert attempting.startswith("I")
        assert "only.py:9] asked about node-" in line_with(running.process, "asked about")
        line_with(running.process, '"Successfully bound pod to node" pod="default/first" node="node-0"')

        plugin.write_text(PLUGIN.format(node="node-7"))
        assert line_with(running.process, "reloaded") == f"moorage up: {plugin} reloaded\n"
        kubectl.create(pod("waits"))
        kubectl("wait", "pod/waits", f"{SCHEDULED}=False", TIMEOUT_SECONDS)

        plugin.write_text(UNKNOWN)
        assert line_with(running.process, "moorage up:") == (
            f"moorage up: the plugins stay as they were: {plugin} cannot be loaded: ModuleNotFoundError: "
            f"No module named 'nothing_of_this_name' ({plugin}:1); install its package, or correct the name\n"
        )

        # As editors do it that want no half of a file to be seen.
        other = tmp_path / "only.py.new"
        other.write_text(PLUGIN.format(node="node-2"))
        other.rename(plugin)
        line_with(running.process, "reloaded")
        assert node_of(kubectl, "waits") == "node-2"  # It was in the queue all the time.
        assert node_of(kubectl, "first") == "node-0"


WRONG = {
    "nothing to watch": (("--watch",), "--watch: there is no file to watch; name one with --plugin FILE.py"),
    "nobody to run it": (
        ("--plugin", "only.py", "--no-scheduler"),
        "--plugin: plugins run in the scheduler; leave --no-scheduler out",
    ),
    "no such file": (
        ("--plugin", "only.py"),
        "only.py: No such file or directory; --plugin wants a Python file",
    ),
}


@pytest.mark.parametrize(("options", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_options_that_make_no_sense(
    options: tuple[str, ...], complaint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["up", "--port=0", *options])
    assert (done.exit_code, done.stderr) == (1, f"moorage up: {complaint}\n")


def test_a_file_counts_as_saved_when_it_has_come_to_rest(tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text("one")
    saved = Saved(lambda: [path])
    assert not saved.has_changed()
    path.write_text("")
    assert not saved.has_changed()  # Perhaps there is more to come,
    path.write_text("three")
    assert not saved.has_changed()  # and there was.
    assert saved.has_changed()
    assert not saved.has_changed()
    path.unlink()
    assert not saved.has_changed()
    path.write_text("three")
    assert not saved.has_changed()
    assert saved.has_changed()


def test_a_file_that_is_followed_from_now_on_was_not_saved_by_that(tmp_path: Path) -> None:
    files = [tmp_path / "file.py"]
    files[0].write_text("one")
    saved = Saved(lambda: files)
    files.append(tmp_path / "helper.py")
    files[1].write_text("one")
    assert not any(saved.has_changed() for _ in range(3))
    files[1].write_text("two and a half")
    assert [saved.has_changed(), saved.has_changed(), saved.has_changed()] == [False, True, False]
