"""`--emulated-version` and `--feature-gates` on the command line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner, Result

from moorage.cli.main import app
from tests.builders import node, pod

RECORDINGS = Path(__file__).parents[1] / "recordings"
NEWER = RECORDINGS / "1.37" / "preemption-0.json.gz"
OLDER = RECORDINGS / "preemption-0.json.gz"


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_the_table_of_versions_is_printed_before_the_configuration() -> None:
    result = invoke("config", "defaults", "--emulated-version", "kube=1.36")
    assert result.exit_code == 0
    comments = [line for line in result.output.splitlines() if line.startswith("#")]
    assert comments[:2] == ["# Kubernetes v1.36.4. What differs between versions:", "# v1.36  v1.37"]
    assert "# no     yes    reported_preemption: the message of a pod that preempts says so" in comments
    assert "# no     yes    feature gate StorageCapacityScoring" in comments
    config = yaml.safe_load(result.output)
    enabled = [each["name"] for each in config["profiles"][0]["plugins"]["multiPoint"]["enabled"]]
    assert enabled.index("NodeUnschedulable") < enabled.index("NodeName")
    assert "#" not in invoke("config", "defaults").output


WRONG: dict[str, tuple[tuple[str, ...], str]] = {
    "version": (("--emulated-version", "1.30"), "--emulated-version: 1.30: only 1.36 or 1.37 is possible"),
    "gate": (("--feature-gates", "Nope=true"), "--feature-gates: unrecognized feature gate: Nope"),
    "value": (("--feature-gates", "NodeSwap"), "--feature-gates: missing bool value for NodeSwap"),
    "gate of another version": (
        ("--feature-gates", "GangScheduling=true"),
        "--feature-gates: unrecognized feature gate: GangScheduling",
    ),
}


@pytest.mark.parametrize(("words", "complaint"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_emulated_is_one_line(words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.write_text("")
    commands = (("config", "defaults"), ("decide", empty, "--pod", empty), ("bench", empty))
    for command in commands:
        result = invoke(*command, *words)
        assert result.exit_code != 0
        assert result.stderr.strip().removeprefix("moorage bench: ") == complaint


def replayed(*words: object) -> tuple[int, Any]:
    result = invoke("replay", "--json", *words)
    return result.exit_code, json.loads(result.stdout)


def test_a_recording_is_replayed_in_its_own_version() -> None:
    assert replayed(OLDER, NEWER)[0] == 0
    status, outcome = replayed("--emulated-version", "1.36", NEWER)
    assert status == 1
    assert {each["what"] for each in outcome["differences"]} >= {"message"}


def test_a_directory_stands_for_the_recordings_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(gzip.decompress(OLDER.read_bytes()))
    (tmp_path / "b.json.gz").write_bytes(NEWER.read_bytes())
    (tmp_path / "README.md").write_text("not a recording")
    status, outcome = replayed(tmp_path)
    assert (status, outcome["pods"]) == (0, 12)
    empty = tmp_path / "empty"
    empty.mkdir()
    result = invoke("replay", empty)
    assert (result.exit_code, "there are no recordings in it" in result.stderr) == (2, True)


def test_gates_of_a_replay_are_those_of_its_version() -> None:
    assert replayed("--feature-gates", "SchedulerQueueingHints=true", OLDER)[0] == 0
    result = invoke("replay", "--feature-gates", "SchedulerQueueingHints=true", NEWER)
    assert result.exit_code == 2
    assert "unrecognized feature gate: SchedulerQueueingHints" in result.stderr


def test_a_decision_is_that_of_the_version(tmp_path: Path) -> None:
    cluster, wanted = tmp_path / "cluster.yaml", tmp_path / "pod.yaml"
    low = {**pod("low", on="n", uid="1", requests={"cpu": "3"}), "apiVersion": "v1"}
    cluster.write_text(yaml.safe_dump_all([{**node("n"), "apiVersion": "v1"}, low]))
    wanted.write_text(
        yaml.safe_dump({**pod("new", uid="2", priority=5, requests={"cpu": "3"}), "apiVersion": "v1"})
    )

    def message(*words: str) -> str:
        result = invoke("decide", cluster, "--pod", wanted, "--json", *words)
        text: str = json.loads(result.stdout)[0]["message"]
        return text

    said = "preemption: found a potential placement for pod on node n, preempting 1 victims"
    assert message().endswith(said)
    assert message("--emulated-version", "1.37").endswith(said)
    assert message("--emulated-version", "1.36").endswith("1 Insufficient cpu.")
