"""Every command has a manual page with what its help says."""

from __future__ import annotations

import re

import pytest

from moorage.cli.main import COMMANDS
from tools.manual import Roff, escaped, pages

PAGES = pages()
REFERENCE = re.compile(r"^\.BR (\S+) \(1\)", re.MULTILINE)
REQUEST = re.compile(r"\.(?:TH|SH|TP|PP|BR)\b")


def test_every_command_has_a_page() -> None:
    assert {"moorage", *(f"moorage-{name}" for name in COMMANDS)} <= PAGES.keys()
    assert {"moorage-plan-fit", "moorage-trace-record", "moorage-chaos-store"} <= PAGES.keys()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_sections_and_no_request_by_accident(name: str) -> None:
    sections = re.findall(r'^\.SH "(.*)"$', PAGES[name], re.MULTILINE)
    assert sections[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"]
    assert sections[-1] == "SEE ALSO"
    assert len(sections) == len(set(sections))
    requests = [line for line in PAGES[name].splitlines() if line.startswith((".", "'"))]
    assert [line for line in requests if not REQUEST.match(line)] == []


def test_pages_name_each_other() -> None:
    named = [each for page in PAGES.values() for each in REFERENCE.findall(page)]
    assert {each.replace("\\-", "-") for each in named} == PAGES.keys()


def test_options_have_their_flags_and_meaning() -> None:
    assert "\\fB\\-\\-node NAME\\fR\nShow everything about this node." in PAGES["moorage-explain"]
    assert "\\fB\\-\\-leader\\-elect\\-lease\\-duration duration\\fR\n" in PAGES["moorage-run"]


def test_text_is_printed_as_it_is() -> None:
    assert escaped(".5 of a \\ and --all") == "\\&.5 of a \\e and \\-\\-all"
    page = Roff()
    page.write_text("one\n\n'two'")
    assert page.lines == ["one", ".PP", "\\&'two'"]
