"""`moorage config` as users run it."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from moorage.cli.commands import config as cli
from moorage.config.load import default_config, load_config, parse_config
from moorage.config.without_effect import WITHOUT_EFFECT

DATA = Path(__file__).parent / "data"
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

runner = CliRunner()


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.yaml"
    path.write_text(
        HEAD
        + "profiles:\n"
        + "- schedulerName: mine\n"
        + "  plugins:\n"
        + "    score: {enabled: [{name: ImageLocality, weight: 9}], disabled: [{name: TaintToleration}]}\n"
        + "    multiPoint: {disabled: [{name: NodePorts}]}\n"
        + "extenders:\n"
        + "- {urlPrefix: 'http://127.0.0.1:8888', filterVerb: f, bindVerb: b}\n"
        + "- urlPrefix: http://127.0.0.1:8889\n"
    )
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.yaml"
    path.write_text(f"{HEAD}parallelism: 0\npodInitialBackoffSeconds: 0\n")
    return path


def test_check_says_ok_and_what_runs(good: Path) -> None:
    result = runner.invoke(cli.app, ["check", str(good)])
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0] == f"{good}: ok"
    assert lines[1].startswith("  profile mine: SchedulingGates, PrioritySort, NodeName, NodeUnschedulable, ")
    assert "TaintToleration (3)" in lines[1]
    assert "NodePorts" not in lines[1]
    assert lines[2:] == [
        "    score: ImageLocality (9); without TaintToleration",
        "    multiPoint: without NodePorts",
        "  extender http://127.0.0.1:8888: filter, bind",
        "  extender http://127.0.0.1:8889: never called",
    ]


def test_check_notes_what_has_no_effect(tmp_path: Path) -> None:
    path = tmp_path / "idle.yaml"
    path.write_text(
        f"{HEAD}parallelism: 4\nenableProfiling: false\nenableContentionProfiling: false\n"
        "clientConnection: {contentType: application/json, acceptContentTypes: application/json, qps: 9}\n"
    )
    result = runner.invoke(cli.app, ["check", str(path)])
    assert (result.exit_code, result.stdout.splitlines()[0]) == (0, f"{path}: ok")
    noted = [line.removeprefix(f"note: {path}: has no effect: ") for line in result.stderr.splitlines()]
    assert [line.partition(":")[0] for line in noted] == list(WITHOUT_EFFECT)
    assert noted[0] == "parallelism: plugins are asked about all nodes at once, without workers"
    path.write_text(f"{HEAD}parallelism: 16\nenableProfiling: true\n")
    assert runner.invoke(cli.app, ["check", str(path)]).stderr == ""


def test_every_field_without_effect_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/configuration.md").read_text()
    for path in WITHOUT_EFFECT:
        assert f"{path.rpartition('.')[2]}`" in page, path


def test_check_names_every_problem_of_every_file(good: Path, bad: Path) -> None:
    result = runner.invoke(cli.app, ["check", str(bad), str(good)])
    assert result.exit_code == 1
    assert result.stderr.splitlines() == [
        f"{bad}: parallelism: Invalid value: 0: should be an integer value greater than zero",
        f"{bad}: podInitialBackoffSeconds: Invalid value: 0: must be greater than 0",
    ]
    assert f"{good}: ok" in result.stdout


@pytest.mark.parametrize(
    ("plugins", "problem"),
    [
        (
            "{multiPoint: {enabled: [{name: Capacity}]}}",
            "PostFilter: plugin Capacity replaces DefaultPreemption; disable one of them",
        ),
        (
            "{postFilter: {enabled: [{name: PreemptionToleration}]}}",
            "PostFilter: plugin PreemptionToleration replaces DefaultPreemption; disable one of them",
        ),
        (
            "{filter: {enabled: [{name: Numa}, {name: NodeResourceTopologyMatch}]}}",
            "Filter: plugin NodeResourceTopologyMatch replaces Numa; disable one of them",
        ),
    ],
)
def test_check_refuses_plugins_that_cannot_run_beside_each_other(
    plugins: str, problem: str, tmp_path: Path
) -> None:
    path = tmp_path / "both.yaml"
    path.write_text(f"{HEAD}profiles: [{{plugins: {plugins}}}]\n")
    result = runner.invoke(cli.app, ["check", str(path)])
    assert (result.exit_code, result.stderr) == (1, f"{path}: profile default-scheduler: {problem}\n")


def test_check_of_a_file_that_is_not_there(bad: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.yaml"
    result = runner.invoke(cli.app, ["check", str(missing), str(bad)])
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0] == f"{missing}: No such file or directory"


def test_check_of_an_old_file_says_how_to_convert() -> None:
    result = runner.invoke(cli.app, ["check", str(DATA / "v1beta3.yaml")])
    assert result.exit_code == 1
    assert "run `moorage config convert FILE`" in result.stderr


UNKNOWN_PLUGIN = """
class Ghost:
    name = "Ghost"

    def __init__(self, args):
        self.args = args

    def filter(self, cycle, pod, nodes):
        raise LookupError
"""
UNKNOWN_PLUGIN_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins: {filter: {enabled: [{name: Ghost}]}}
  pluginConfig: [{name: Ghost, args: {howls: 3}}]
"""


def test_check_knows_which_plugins_there_are(tmp_path: Path) -> None:
    file, plugin = tmp_path / "haunted.yaml", tmp_path / "ghost.py"
    file.write_text(UNKNOWN_PLUGIN_CONFIG)
    plugin.write_text(UNKNOWN_PLUGIN)
    result = runner.invoke(cli.app, ["check", str(file)])
    assert (result.exit_code, result.stdout) == (1, "")
    [complaint] = result.stderr.splitlines()
    assert complaint.startswith(f"{file}: profile default-scheduler: there is no plugin Ghost; known are ")
    assert complaint.endswith("install its package, write module:Class, or add --plugin FILE.py")
    result = runner.invoke(cli.app, ["check", str(file), "--plugin", str(plugin)])
    assert (result.exit_code, result.stderr) == (0, "")
    assert "  filter: Ghost\n" in result.stdout


def test_check_of_a_plugin_that_cannot_be_used(good: Path, tmp_path: Path) -> None:
    plugin = tmp_path / "ghost.py"
    plugin.write_text(f"{UNKNOWN_PLUGIN}\n    def events(self):\n        raise KeyError('when')\n")
    result = runner.invoke(cli.app, ["check", str(good), "--plugin", str(plugin)])
    assert result.exit_code == 1
    assert result.stderr == f"{good}: plugin Ghost: events failed: KeyError: 'when' (ghost.py:12)\n"


def test_defaults_of_nothing() -> None:
    result = runner.invoke(cli.app, ["defaults"])
    assert (result.exit_code, result.stderr) == (0, "")
    assert parse_config(yaml.safe_load(result.stdout)) == default_config()
    assert "bindingTimeout: 10m0s" in result.stdout


def test_defaults_of_a_file(good: Path) -> None:
    result = runner.invoke(cli.app, ["defaults", "--config", str(good)])
    assert result.exit_code == 0
    assert parse_config(yaml.safe_load(result.stdout)) == load_config(good)


def test_defaults_of_a_bad_file(bad: Path) -> None:
    result = runner.invoke(cli.app, ["defaults", "--config", str(bad)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert len(result.stderr.splitlines()) == 2


def test_convert_prints_the_file_and_the_notes() -> None:
    result = runner.invoke(cli.app, ["convert", str(DATA / "sample-v1alpha1.yaml")])
    assert result.exit_code == 0
    assert parse_config(yaml.safe_load(result.stdout)).profiles[0].scheduler_name == "sample-scheduler"
    notes = result.stderr.splitlines()
    assert notes[0] == "note: leaderElection.lockObjectName: now written resourceName"
    assert all(note.startswith("note: ") for note in notes)


def test_convert_writes_a_file(tmp_path: Path) -> None:
    output = tmp_path / "new.yaml"
    result = runner.invoke(cli.app, ["convert", str(DATA / "policy.json"), "-o", str(output)])
    assert (result.exit_code, result.stdout) == (0, "")
    assert load_config(output).extenders[0].bind_verb == "bind"
    assert runner.invoke(cli.app, ["check", str(output)]).exit_code == 0


def test_convert_to_a_place_that_is_not_there(tmp_path: Path) -> None:
    output = tmp_path / "missing" / "new.yaml"
    result = runner.invoke(cli.app, ["convert", str(DATA / "policy.json"), "-o", str(output)])
    assert result.exit_code == 2
    assert f"{output}: No such file or directory" in result.stderr


HOSTILE = {
    "empty": "",
    "binary": "\x00\x01",
    "list": "- 1\n",
    "broken": "a: [",
    "only a kind": "kind: Policy\npredicates: 7\n",
    "numbers for keys": f"{HEAD}1: 2\n",
}


@pytest.mark.parametrize("command", ["check", "convert", "defaults --config"])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_never_a_traceback(command: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    result = runner.invoke(cli.app, [*command.split(), str(path)])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert result.stdout == ""
    assert result.stderr.startswith(f"{path}: ")


def test_help_lists_the_commands() -> None:
    result = runner.invoke(cli.app, ["--help"])
    for command in ("check", "convert", "defaults"):
        assert command in result.stdout
