"""What commands load: help and mistakes need nothing of the scheduler, a plugin needs little of moorage."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import moorage
from moorage.cli.main import COMMANDS, DeferredCommand, app
from tools.manual import pages

COLUMNS = 80
HEAVY = {
    "asyncio",
    "cryptography",
    "kubernetes_asyncio",
    "numpy",
    "prometheus_client",
    "pydantic",
    "rich",
    "uvloop",
    "yaml",
}
OUR_OWN = {
    "moorage",
    "moorage.__main__",
    "moorage.cli",
    "moorage.cli.main",
    "moorage.cli.plain_help",
    "moorage.cli.process_end",
    "moorage.laptop_cluster",
    "moorage.version",
}


def modules_after(code: str) -> set[str]:
    """The modules that a process has loaded when it ends."""
    program = f"import atexit, sys\natexit.register(lambda: print('MODULES', *sys.modules))\n{code}"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    return set(run.stdout.rpartition("MODULES")[2].split())


@pytest.mark.parametrize("argument", ["--help", "--version", "--no-such-option", "no-such-command"])
def test_what_no_command_is_needed_for_loads_no_command(argument: str) -> None:
    loaded = modules_after(
        f"import runpy\nsys.argv = ['moorage', {argument!r}]\nrunpy.run_module('moorage', alter_sys=True)"
    )

    assert "typer" in loaded
    assert loaded & {*HEAVY, "msgspec"} == set()
    assert {name for name in loaded if name.partition(".")[0] == "moorage"} <= OUR_OWN


def test_wrong_options_and_help_of_commands_load_nothing_of_the_scheduler() -> None:
    loaded = modules_after(
        f"""
from contextlib import suppress
from moorage.cli.main import app
for command in {[*COMMANDS]}:
    for option in ("--no-such-option", "--help"):
        with suppress(SystemExit):
            app([command, option])
"""
    )

    assert {f"moorage.cli.commands.{name}" for name in ("bench", "config", "decide", "run", "ui")} <= loaded
    assert "moorage_cluster.cli.commands.up" in loaded
    assert loaded & HEAVY == set()
    parts = {".".join(name.split(".")[:2]) for name in loaded if name.startswith("moorage")}
    assert not parts & {f"moorage.{part}" for part in ("client", "cluster", "engine", "framework", "plugins")}
    assert not parts & {"moorage_cluster.controllers", "moorage_cluster.local", "moorage_cluster.nodes"}


def test_help_has_whole_summaries_and_sections() -> None:
    def said(*words: str) -> str:
        return " ".join(CliRunner().invoke(app, words).stdout.split())

    for name, (_, summary) in COMMANDS.items():
        assert f"{name} {summary}" in said("--help")
    help_of_bench = said("bench", "--help")
    assert "Arguments: files..." in help_of_bench
    assert "Where the workloads run (one of these): --engine The scheduler over" in help_of_bench
    assert "new Write a small package with a plugin, its arguments, tests" in said("plugin", "--help")


@pytest.mark.parametrize("page", pages())
def test_help_fits_a_terminal(page: str) -> None:
    words = page.split("-")[1:]
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": str(COLUMNS)}).stdout.splitlines()
    assert shown
    assert [line for line in shown if len(line) > COLUMNS] == []


def test_a_public_name_loads_only_what_it_is_made_of() -> None:
    loaded = modules_after("from moorage import Pod, Status")

    assert {"moorage.api.pod", "moorage.framework.interface.status"} <= loaded
    assert not any(name.startswith(("moorage.plugins", "moorage.sim", "moorage.cli")) for name in loaded)


def test_a_scheduler_loads_nothing_of_an_api_server() -> None:
    loaded = modules_after("import moorage.cli.run, moorage.scheduler.process")

    assert "moorage.scheduler.process" in loaded
    servers = ("moorage.admission", "moorage.apimachinery", "moorage_cluster")
    assert not any(name.startswith(servers) for name in loaded)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_summary_of_a_command_is_how_its_own_help_begins(name: str) -> None:
    deferred = DeferredCommand(name, *COMMANDS[name])

    assert deferred.load().help.partition("\n\n")[0].replace("\n", " ") == deferred.help


def test_public_names_are_imported_from_where_type_checkers_find_them() -> None:
    tree = ast.parse(Path(inspect.getfile(moorage)).read_text(encoding="utf-8"))
    declared = {
        (statement.module, name.name)
        for block in tree.body
        if isinstance(block, ast.If)
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for name in statement.names
    }

    assert {(home, name) for home, names in moorage._HOMES.items() for name in names} == declared
    assert sorted(name for _, name in declared) == sorted(set(moorage.__all__) - {"__version__"})


def test_an_unknown_name_is_reported_as_for_any_module() -> None:
    with pytest.raises(AttributeError, match="module 'moorage' has no attribute 'Deamon'"):
        _ = moorage.Deamon
