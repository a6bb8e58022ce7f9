"""`moorage plugin new` and `moorage plugin check`: what they write, say and exit with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from moorage.cli.main import app

GOOD = """
class Berth:
    name = "Berth"

    def filter(self, cycle, pod, nodes):
        return nodes.label("berth").exists().otherwise("node(s) had no berth")
"""

BROKEN = """
class Greedy:
    name = "Greedy"

    def score_node(self, cycle, pod, node):
        return 1000
"""

WITH_ARGS = """
import msgspec

class Args(msgspec.Struct):
    colour: str

class Colour:
    name = "Colour"

    def __init__(self, args: Args):
        self._colour = args.colour

    def filter_node(self, cycle, pod, node):
        return None if node.labels.get("colour") == self._colour else "wrong colour"
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that commands run in; what they add to Python's path is gone afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "good.py").write_text(GOOD)
    (tmp_path / "both.py").write_text(GOOD + BROKEN)
    (tmp_path / "colour.py").write_text(WITH_ARGS)
    return tmp_path


def plugin(*words: str) -> Result:
    """What `moorage plugin` prints on a wide screen."""
    return CliRunner().invoke(
        app, ["plugin", *words], env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"}
    )


# new


def test_new_writes_a_package_and_says_what_to_do_next(folder: Path) -> None:
    result = plugin("new", "tide-table")
    assert result.exit_code == 0, result.output
    files = [
        "pyproject.toml",
        "README.md",
        "scheduler.yaml",
        "src/tide_table/__init__.py",
        "src/tide_table/plugin.py",
        "tests/test_plugin.py",
    ]
    written = [str(path.relative_to(folder)) for path in (folder / "tide-table").rglob("*") if path.is_file()]
    assert sorted(written) == sorted(f"tide-table/{name}" for name in files)
    assert result.output.splitlines() == [
        *(f"wrote tide-table/{name}" for name in files),
        "Next:",
        "  pip install --editable './tide-table[test]'",
        "  python -m pytest tide-table",
        "  moorage up --config tide-table/scheduler.yaml",
    ]
    assert "$" not in (folder / "tide-table/src/tide_table/plugin.py").read_text()


def test_what_is_written_is_in_good_style(folder: Path) -> None:
    plugin("new", "tide-table")
    for words in (["check", "--select=E,F,W,I,N,UP,B,SIM,RUF"], ["format", "--check"]):
        command = [sys.executable, "-m", "ruff", *words, "--isolated", "--no-cache", "."]
        done = subprocess.run(command, cwd=folder / "tide-table", capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    {
        "Tide": "'Tide': a name is made of lower-case letters, digits and hyphens, and begins with a letter; "
        "tide, perhaps?",
        "tideTable_2": "begins with a letter; tide-table-2, perhaps?",
        "2-tides": "'2-tides': a name is made of lower-case letters, digits and hyphens, and begins with a ",
        "../tide": "begins with a letter; tide, perhaps?",
        "tide-": "; tide, perhaps?",
        "t" * 64: "a name is made of",
        "json": "'json': Python has that name for something else; choose another one",
        "class": "'class': Python has that name for something else",
        "moorage": "'moorage': Python has that name for something else",
        "node-name": "'node-name': there is a plugin named NodeName already; choose another name",
        "here": "here: exists already; choose another name, or remove it",
    }.items(),
    ids=lambda text: text[:12],
)
def test_new_refuses(name: str, message: str, folder: Path) -> None:
    (folder / "here").mkdir()
    before = sorted(folder.rglob("*"))
    result = plugin("new", name)
    assert result.exit_code == 2
    assert result.output.startswith("moorage plugin new: ")
    assert message in result.output
    assert len(result.output.splitlines()) == 1
    assert sorted(folder.rglob("*")) == before


# check


def test_check_shows_every_rule() -> None:
    result = plugin("check", "good.py")
    assert result.exit_code == 0, result.output
    assert "│ filter-answers" in result.output
    assert "│ score-bounds" not in result.output
    assert result.output.splitlines()[-1] == "Berth: no rule broken, with 40 pods in small clusters"


def test_check_shows_what_is_wrong() -> None:
    result = plugin("check", "both.py")
    assert result.exit_code == 1, result.output
    assert "│ FAILED │ n0 scored 1000; scores are 0 to 100 (pod waiting-" in result.output
    assert "Berth: no rule broken" in result.output
    assert "Greedy: 1 rule broken, with 40 pods in small clusters" in result.output


def test_check_of_one_class_among_several() -> None:
    assert plugin("check", "both.py:Berth").exit_code == 0
    assert plugin("check", "both.py:Greedy").exit_code == 1


def test_check_of_a_class_in_a_module() -> None:
    assert plugin("check", "both:Berth").exit_code == 0


def test_check_with_arguments() -> None:
    without = plugin("check", "colour.py")
    assert without.exit_code == 1
    assert "can-be-made" in without.output
    assert "args.colour" in without.output
    assert plugin("check", "colour.py", "--args", "{colour: blue}").exit_code == 0


def test_check_of_a_folder(folder: Path) -> None:
    plugin("new", "harbour-master")
    result = plugin("check", "harbour-master")
    assert result.exit_code == 0, result.output
    assert "HarbourMaster: no rule broken" in result.output
    assert plugin("check", "harbour-master:HarbourMaster").exit_code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    {
        ("absent.py",): "absent.py: there is no such file or folder; give a file FILE.py, the folder of a "
        "package, or module:Class",
        ("good.py:Bert",): "good.py: there is no plugin Bert in it; there is Berth",
        ("empty.py",): "empty.py: there is no plugin in it",
        ("wrong.py",): "wrong.py cannot be loaded: SyntaxError: ",
        ("nothing_here:Class",): "plugin nothing_here:Class cannot be loaded: ModuleNotFoundError",
        ("folder",): "folder/pyproject.toml: No such file or directory; give a file",
        (
            "silent",
        ): 'silent/pyproject.toml: it announces no plugin; add [project.entry-points."moorage.plugins"]',
        ("unread",): "unread/pyproject.toml: ",
        ("good.py", "--args", "["): "--args: is no YAML: ",
        ("good.py", "--args", "5"): "--args: expected an object, such as '{minimum: 2}'",
    }.items(),
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_check_refuses(words: tuple[str, ...], message: str, folder: Path) -> None:
    (folder / "empty.py").write_text("")
    (folder / "wrong.py").write_text("class\n")
    for name in ("folder", "silent", "unread"):
        (folder / name).mkdir()
    (folder / "silent" / "pyproject.toml").write_text('[project]\nname = "silent"\n')
    (folder / "unread" / "pyproject.toml").write_text("[project\n")
    result = plugin("check", *words)
    assert result.exit_code == 2, result.output
    assert result.output.startswith("moorage plugin check: ")
    assert message in result.output
    assert len(result.output.splitlines()) == 1
