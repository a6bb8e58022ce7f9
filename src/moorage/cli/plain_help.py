"""Help as plain text, in sections, and commands with their whole summaries.

Typer would draw boxes with Rich, which takes longer to import than everything else that help needs.
"""

from __future__ import annotations

from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

_MAX_SUMMARY_LENGTH: Final = 1000
"""Maximum length of a command's summary in the help of its group, in characters."""


class PlainCommand(TyperCommand):
    """A command whose options are listed by section (`rich_help_panel`)."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments, options, and options with a section of their own."""
        sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for parameter in self.get_params(ctx):
            usual = "Arguments" if parameter.param_type_name == "argument" else "Options"
            section = getattr(parameter, "rich_help_panel", None) or usual
            if (record := parameter.get_help_record(ctx)) is not None:
                sections.setdefault(section, []).append(record)
        for title, records in sections.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


class PlainGroup(TyperGroup):
    """A group of commands."""

    def get_help_option(self, ctx: Any) -> Any:
        """The option `--help`."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False  # Typer would import Pydantic to convert the default of its own, None.
        return option

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each with its summary."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, each.get_short_help_str(_MAX_SUMMARY_LENGTH)) for name, each in self.commands.items()]
            )
