"""A command with kube-scheduler's flags: `moorage run`, and programs with plugins of their own."""

from __future__ import annotations

from typing import Any, Final, NoReturn

import typer
from typer.core import TyperCommand

from moorage.cli.flags import Flag, FlagError, read_flags
from moorage.cli.run_flags import FLAGS, GROUPS

_WRONG: Final = 1
"""Exit status: the input is wrong."""


class KubeFlags(TyperCommand):
    """Parses flags as Kubernetes components do; errors are one line."""

    flags = FLAGS

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; exits with status 1 if it is invalid."""
        try:
            ctx.obj = flags = read_flags(self.flags, args, _command(ctx))
        except FlagError as error:
            fail(ctx, error)
        if flags.switch("help"):
            typer.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, [])

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help of all flags by group."""
        formatter.write_usage(_command(ctx), "[flags]")
        formatter.write_paragraph()
        formatter.write_text(self.help or "")
        for group in GROUPS:
            with formatter.section(group.title):
                formatter.write_dl([_described(flag) for flag in group.flags])


def _described(flag: Flag) -> tuple[str, str]:
    short = f"-{flag.short}, " if flag.short else ""
    kind = "" if flag.kind.bare else f" {flag.kind.name}"
    default = f" (default: {flag.default})" if flag.default not in ("", "false") else ""
    note = f" No effect: {flag.note}." if flag.note else ""
    return f"{short}--{flag.name}{kind}", f"{flag.help}{default}{note}"


def _command(ctx: Any) -> str:
    """The name of the command: `moorage run`, or that of a custom program."""
    return "moorage run" if ctx.parent is not None else str(ctx.info_name)


def fail(ctx: Any, error: Exception) -> NoReturn:
    """Exit with a line that says what is wrong with the input."""
    typer.echo(f"{_command(ctx)}: {'; '.join(str(error).splitlines())}", err=True)
    raise typer.Exit(_WRONG)
