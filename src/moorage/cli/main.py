"""`moorage`: all commands, and their common options.

A command's options are imported when the command is named, and its work when it is invoked with valid
arguments: help, the version, and wrong commands and options need nothing of the scheduler.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from moorage.cli.plain_help import PlainCommand, PlainGroup
from moorage.cli.process_end import own_process
from moorage.laptop_cluster import is_installed, missing
from moorage.version import __version__

CANNOT_WRITE: Final = 3
"""Exit status: the output could not be written."""
_WIDEST_HELP: Final = 120
"""Maximum line length of help, in characters; narrower where the terminal is."""

COMMANDS: Final = {
    "apiserver": (
        "moorage_cluster.cli.commands.apiserver:apiserver",
        "Run a Kubernetes API server that kubectl and client libraries accept.",
    ),
    "attempts": (
        "moorage.cli.commands.attempts:attempts",
        "Show the last attempts of a running scheduler to schedule a pod, with the numbers of each moment.",
    ),
    "bench": (
        "moorage.cli.commands.bench:bench",
        "Measure the scheduler with workloads in the format of Kubernetes' scheduler_perf.",
    ),
    "chaos": (
        "moorage_cluster.cli.commands.chaos:app",
        "Try to break the scheduler: thousands of short runs in which everything fails.",
    ),
    "completion": (
        "moorage.cli.commands.completion:completion",
        "Print a script with which a shell completes commands, options, files and names in the cluster.",
    ),
    "compare": (
        "moorage.cli.commands.compare:compare",
        "Compare configurations on the same workload: who waits longer, and which plugin moved which pod.",
    ),
    "decide": (
        "moorage.cli.commands.decide:decide",
        "Show where the scheduler would place pods in a cluster, with every score and every refusal.",
    ),
    "explain": (
        "moorage.cli.commands.explain:explain",
        "Explain why a pod is pending, or why it is where it is, and what would help.",
    ),
    "extender": (
        "moorage.cli.commands.extender:extender",
        "Serve a plugin as an extender of kube-scheduler, over HTTP or HTTPS, and print how to configure it.",
    ),
    "manifests": (
        "moorage.cli.commands.manifests:manifests",
        "Print what puts a scheduler into a cluster: account, roles, NetworkPolicy, Deployment, PodMonitor.",
    ),
    "plan": (
        "moorage.cli.commands.plan:app",
        "Plan on paper: what fits, which nodes to have, drains, consolidation, failures.",
    ),
    "queue": (
        "moorage.cli.commands.queue:queue",
        "Show which pods a running scheduler has in its queue: why, since when, and what would wake them.",
    ),
    "record": (
        "moorage.cli.commands.record:record",
        "Write a recording of the attempts in a scheduler's log.",
    ),
    "replay": (
        "moorage.cli.commands.replay:replay",
        "Make the decisions of recordings again and compare feasible nodes, every score and every message.",
    ),
    "run": (
        "moorage.cli.commands.run:app",
        "Schedule the pods of a cluster, as kube-scheduler does, or beside it.",
    ),
    "simulate": (
        "moorage.cli.commands.simulate:simulate",
        "Simulate a workload on a cluster, in virtual time, with the production scheduler.",
    ),
    "soak": (
        "moorage_cluster.cli.commands.soak:soak",
        "Create and delete workloads of all kinds for hours, and find out what grows.",
    ),
    "sweep": (
        "moorage.cli.commands.sweep:sweep",
        "Simulate many configurations with many workloads, on all cores or a Dask cluster, and compare them.",
    ),
    "trace": (
        "moorage.cli.commands.trace:app",
        "Record the pods of a cluster as a trace for simulations; look at a trace.",
    ),
    "ui": (
        "moorage.cli.commands.ui:ui",
        "Show a cluster, its queue and every decision in a browser.",
    ),
    "up": (
        "moorage_cluster.cli.commands.up:up",
        "Run a cluster: API server, controllers, simulated nodes and the scheduler, for kubectl to drive.",
    ),
    "config": (
        "moorage.cli.commands.config:app",
        "Check, show and convert scheduler configurations.",
    ),
    "plugin": (
        "moorage.cli.commands.plugin:app",
        "Begin a plugin of your own; check plugins against the rules.",
    ),
}
"""The commands by name: where each is defined (`module:attribute`, a function or a Typer), and a summary."""


class DeferredCommand(TyperCommand):
    """A command's name and summary; the command itself is imported when its arguments are parsed."""

    def __init__(self, name: str, target: str, summary: str) -> None:
        super().__init__(name, help=summary)
        self._target = target

    def load(self) -> Any:
        """The command; exits if it is part of the laptop cluster, and that is not installed."""
        module, _, attribute = self._target.partition(":")
        if module.startswith("moorage_cluster.") and not is_installed():
            typer.echo(missing(f"moorage {self.name}"), err=True)
            raise typer.Exit(1)
        target = getattr(import_module(module), attribute)
        if not isinstance(target, typer.Typer):
            function, target = target, typer.Typer(add_completion=False, rich_markup_mode=None)
            target.command(cls=PlainCommand)(function)
        return typer.main.get_command(target)

    def make_context(self, info_name: Any, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """The context in which the imported command runs."""
        return self.load().make_context(info_name, args, parent, **extra)


class _Commands(PlainGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands.update({name: DeferredCommand(name, *command) for name, command in COMMANDS.items()})


app = typer.Typer(
    name="moorage",
    cls=_Commands,
    help="A Kubernetes scheduler in Python: kube-scheduler's decisions, explained.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": _WIDEST_HELP},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"moorage {__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A Kubernetes scheduler in Python."""


def run() -> None:
    """The `moorage` command; output that cannot be written ends it with a line, not a traceback."""
    try:
        # Scripts for shells ask what may come next, with the word that those of Kubernetes' commands have.
        if sys.argv[1:2] == ["__complete"]:
            from moorage.cli.completion import answer

            return answer(sys.argv[2:])
        with own_process():
            app()
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"moorage: {where}{error.strerror or error}", err=True)
        sys.exit(CANNOT_WRITE)
