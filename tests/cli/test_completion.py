"""What shells and kubectl are told that may come next on a command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from moorage.cli.completion import answer, complete
from moorage.cli.main import COMMANDS, app, run
from tests.cli.test_startup import HEAVY, modules_after

NOTHING, FILES = ":4", ":0"
KUBECTL = """#!/bin/sh
echo "$@" >> "{asked}"
printf 'pod/web-1\\npod/web-2\\npod/db-1\\n'
"""
IN_BASH = """
source <(moorage completion bash)
COMP_LINE="$1"
COMP_POINT=${#1}
_moorage
printf '%s\\n' "${COMPREPLY[@]}"
"""


def candidates(*words: str) -> list[str]:
    return [value for value, _ in complete(words).candidates]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["pl"], ["plan", "plugin"]),
        (["plan", "f"], ["fit", "failures"]),
        (["no-such-command", ""], []),
        (["explain", "--at"], ["--attempts"]),
        (["explain", "-o", ""], ["table", "json"]),
        (["explain", "--output", "j"], ["json"]),
        (["explain", "--output=j"], ["--output=json"]),
        (["explain", "--output", "json"], ["json"]),
        (["explain", "--all=j"], []),
        (["explain", "-n", "default", "--output", "t"], ["table"]),
        (["run", "--leader-elect-ret"], ["--leader-elect-retry-period"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["completion", "bash", ""], []),
        (["up", "--no-sch"], ["--no-scheduler"]),
    ],
    ids=" ".join,
)
def test_candidates_are_what_fits(words: list[str], expected: list[str]) -> None:
    assert candidates(*words) == expected


def test_all_commands_are_candidates_with_their_summaries() -> None:
    assert dict(complete([""]).candidates) == {name: summary for name, (_, summary) in COMMANDS.items()}


@pytest.mark.parametrize(
    "words",
    ["decide ", "decide --pod ", "run --config x", "run --config=x", "ui --from "],
)
def test_files_are_left_to_the_shell(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    answer(words.split(" "))
    assert capsys.readouterr().out == f"{FILES}\n"


def test_no_file_is_a_value_of_a_choice(capsys: pytest.CaptureFixture[str]) -> None:
    answer(["explain", "--output", "x"])
    assert capsys.readouterr().out == f"{NOTHING}\n"


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a kubectl is asked that knows three pods."""
    asked, program = tmp_path / "asked", tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL.format(asked=asked))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return asked


def test_pods_are_those_of_the_chosen_cluster_and_namespace(asked: Path) -> None:
    assert candidates("explain", "--context=b", "-n", "harbour", "web-") == ["web-1", "web-2"]
    words = asked.read_text().split()
    assert words == [
        "get",
        "pods",
        "--output=name",
        "--request-timeout=2s",
        "--namespace=harbour",
        "--context=b",
    ]


def test_no_cluster_is_asked_about_pods_of_a_file(asked: Path) -> None:
    assert candidates("explain", "--from", "cluster.yaml", "web-") == []
    assert not asked.exists()


def test_without_kubectl_there_are_no_pods(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert candidates("explain", "") == []


def test_the_answer_has_a_line_each_and_ends_with_what_the_shell_may_add(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["moorage", "__complete", "plan", ""])
    run()
    *lines, last = capsys.readouterr().out.splitlines()
    assert [line.partition("\t")[0] for line in lines] == ["fit", "nodes", "drain", "consolidate", "failures"]
    assert all(line.partition("\t")[2] for line in lines)
    assert last == NOTHING


def test_bash_is_given_what_follows_its_separators() -> None:
    programs = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}

    def completed(line: str) -> list[str]:
        words = ["bash", "--norc", "-c", IN_BASH, "bash", line]
        done = subprocess.run(words, env=programs, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout.split()

    assert completed("moorage plan fi") == ["fit"]
    assert completed("moorage explain --output=") == ["table", "json"]
    assert completed("moorage decide --config clu") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_asks_as_kubectl_asks(shell: str) -> None:
    printed = CliRunner().invoke(app, ["completion", shell])
    assert printed.exit_code == 0
    assert "moorage __complete " in printed.stdout


def test_completion_loads_nothing_of_the_scheduler() -> None:
    loaded = modules_after(
        "from moorage.cli.completion import answer\nfor name in ('explain', 'up'): answer([name, '--'])"
    )
    assert "moorage.cli.commands.explain" in loaded
    assert loaded & HEAVY == set()
