"""All kinds of facts, each with a listing of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from tools.interface.command_line import command_facts, exit_statuses
from tools.interface.fact import Fact, merged
from tools.interface.observed import event_facts, log_facts, metric_facts
from tools.interface.pytest_names import pytest_facts
from tools.interface.python_names import names_of
from tools.interface.served import document_facts, endpoint_facts, environment_facts
from tools.interface.settings import configuration_facts, plugin_facts


class Kind(NamedTuple):
    """A kind of facts."""

    name: str
    title: str
    find: Callable[[], Iterable[Fact]]

    def facts(self) -> list[Fact]:
        """What the source says, sorted by name."""
        return merged(self.find())


def _test_names() -> Iterator[Fact]:
    yield from names_of("moorage.testing", "moorage.testing.")
    yield from pytest_facts()


KINDS: Final = (
    Kind("python", "Names that `moorage` exports, with signatures and members.", lambda: names_of("moorage")),
    Kind("testing", "`moorage.testing`, and the fixtures and options for pytest.", _test_names),
    Kind("commands", "Commands, their arguments and options.", command_facts),
    Kind("exit-statuses", "Exit statuses other than 0, and 2 for wrong arguments.", exit_statuses),
    Kind("documents", "Fields of what commands write as JSON.", document_facts),
    Kind("configuration", "Fields of KubeSchedulerConfiguration.", configuration_facts),
    Kind("plugins", "Plugins, and the fields of their arguments.", plugin_facts),
    Kind("metrics", "Metrics: type, stability, labels.", metric_facts),
    Kind("log-lines", "Keys of structured log lines at -v=2 and below.", log_facts),
    Kind("event-reasons", "Reasons of events.", event_facts),
    Kind("endpoints", "Paths of servers.", endpoint_facts),
    Kind("environment", "Environment variables that are read.", environment_facts),
)
