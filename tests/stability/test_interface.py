"""What users may depend on is listed, and CHANGELOG.md names what is new, changed or gone.

After a change: `make interface`, and an entry in the section [Unreleased] of CHANGELOG.md.
"""

from __future__ import annotations

import pytest

from tools.interface.__main__ import CHANGELOG, LISTINGS, not_to_release, text_of
from tools.interface.changelog import missing, releases
from tools.interface.command_line import commands
from tools.interface.fact import Fact, merged
from tools.interface.kinds import KINDS, Kind
from tools.interface.listing import Line, brought_up_to_date, listing, read_listing, released
from tools.interface.served import commands_with_json

KNOWN = {
    "python": "Nodes.label",
    "testing": "kube_cluster",
    "commands": "moorage run --leader-elect",
    "exit-statuses": "moorage decide 1",
    "documents": "moorage explain -o json verdict",
    "configuration": "KubeSchedulerConfiguration.profiles",
    "plugins": "NodeResourcesFit.scoringStrategy",
    "metrics": "scheduler_schedule_attempts_total",
    "log-lines": '"Successfully bound pod to node"',
    "event-reasons": "FailedScheduling",
    "endpoints": "/metrics",
    "environment": "KUBECONFIG",
}
"""One fact of each kind that nobody may lose."""
OLD = Line("run --old", "bool", "1.0.0")
NEW = Line("run --new", "bool", "unreleased")
CHANGED = Line("run --other", "int", "1.0.0", "unreleased")
GONE = Line("run --gone", "bool", "1.0.0", removed="unreleased")


def name_of(kind: Kind) -> str:
    return kind.name


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_the_listing_is_what_the_source_says(kind: Kind) -> None:
    text = text_of(LISTINGS / f"{kind.name}.txt")

    assert listing(kind.title, brought_up_to_date(read_listing(text), kind.facts())) == text, "make interface"
    assert any(line.name == KNOWN[kind.name] for line in read_listing(text))


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_the_changelog_names_what_is_not_released(kind: Kind) -> None:
    unreleased = releases(CHANGELOG.read_text())[0]
    lines = read_listing(text_of(LISTINGS / f"{kind.name}.txt"))

    assert [f"{line.group}: {line.name}" for line in missing(lines, unreleased.groups)] == []


@pytest.mark.parametrize("kind", KINDS, ids=name_of)
def test_the_versions_of_a_listing_are_those_of_the_changelog(kind: Kind) -> None:
    known = {"", "unreleased", *(release.name for release in releases(CHANGELOG.read_text()))}
    lines = read_listing(text_of(LISTINGS / f"{kind.name}.txt"))

    assert {version for line in lines for version in line[2:]} <= known


def test_there_is_no_listing_of_anything_else() -> None:
    assert {path.stem for path in LISTINGS.iterdir()} == {kind.name for kind in KINDS}


def test_every_command_that_writes_json_has_its_fields_listed() -> None:
    writing = {
        name
        for name, command in commands()
        for each in getattr(command, "params", ())
        if each.name == "as_json"
        or (each.name == "output" and "json" in str(each.type_descriptor.annotation))
    }

    assert writing - commands_with_json() == set()


@pytest.mark.parametrize(
    ("old", "facts", "expected"),
    [
        pytest.param([OLD], [Fact("run --old", "bool")], [OLD], id="nothing happened"),
        pytest.param([], [Fact("run --new", "bool")], [NEW], id="added"),
        pytest.param(
            [NEW], [Fact("run --new", "int")], [NEW._replace(what="int")], id="changed before it is released"
        ),
        pytest.param([NEW], [], [], id="gone before it is released"),
        pytest.param(
            [Line("run --other", "bool", "1.0.0")], [Fact("run --other", "int")], [CHANGED], id="changed"
        ),
        pytest.param([Line("run --gone", "bool", "1.0.0")], [], [GONE], id="removed"),
        pytest.param([GONE], [], [GONE], id="is still removed"),
        pytest.param(
            [GONE], [Fact("run --gone", "bool")], [Line("run --gone", "bool", "unreleased")], id="back"
        ),
    ],
)
def test_a_listing_follows_the_source(old: list[Line], facts: list[Fact], expected: list[Line]) -> None:
    assert brought_up_to_date(old, facts) == expected


def test_a_listing_is_read_as_it_was_written() -> None:
    lines = [OLD, NEW, CHANGED, GONE, Line("a", "str | None", "1.0.0", "1.1.0", "2.0.0")]

    assert read_listing(listing("Title.", lines)) == lines


def test_what_is_no_line_is_refused() -> None:
    with pytest.raises(ValueError, match="not a line of a listing: run --old"):
        Line.read("run --old")


def test_a_release_has_what_was_unreleased() -> None:
    assert [line.group for line in released([OLD, NEW, CHANGED, GONE], "1.1.0")] == ["", "", "", ""]
    assert released([NEW], "1.1.0") == [Line("run --new", "bool", "1.1.0")]


@pytest.mark.parametrize(
    ("line", "groups", "is_named"),
    [
        pytest.param(OLD, {}, True, id="released"),
        pytest.param(NEW, {}, False, id="no entry"),
        pytest.param(NEW, {"Added": ["`run --new` does more."]}, True, id="its name"),
        pytest.param(NEW, {"Added": ["`run`, `up`: `--new`, `--more`."]}, True, id="the words of its name"),
        pytest.param(NEW, {"Added": ["`run --newer`"]}, False, id="another word"),
        pytest.param(NEW, {"Added": ["`run`", "`--new`"]}, False, id="words of two entries"),
        pytest.param(NEW, {"Fixed": ["`run --new`"]}, False, id="another group"),
        pytest.param(CHANGED, {"Changed": ["`run --other` is a number."]}, True, id="changed"),
        pytest.param(GONE, {"Changed": ["`run --gone`"]}, False, id="removed, not changed"),
        pytest.param(GONE, {"Removed": ["`run --gone`: use `--new`."]}, True, id="removed"),
    ],
)
def test_an_entry_names_a_line(line: Line, groups: dict[str, list[str]], is_named: bool) -> None:
    assert list(missing([line], groups)) == ([] if is_named else [line])


def test_an_entry_about_a_new_command_is_about_its_options() -> None:
    lines = [Line(name, "", "unreleased") for name in ("moorage dig", "moorage dig --deep", "moorage digest")]

    assert [line.name for line in missing(lines, {"Added": ["`moorage dig`"]})] == ["moorage digest"]


def test_facts_of_one_name_are_one() -> None:
    facts = [Fact("b", "x"), Fact("a", "y"), Fact("a", "x"), Fact("a", "y")]

    assert merged(facts) == [Fact("a", "x or y"), Fact("b", "x")]


@pytest.mark.parametrize(
    ("version", "changelog", "problem"),
    [
        ("1.1.0", "## [Unreleased]\n## [1.1.0] - 2027-01-01\n", ""),
        (
            "1.2.0",
            "## [Unreleased]\n## [1.1.0] - 2027-01-01\n",
            "the newest version in CHANGELOG.md is 1.1.0, not 1.2.0",
        ),
        (
            "1.1.0",
            "## [Unreleased]\n### Added\n- More.\n## [1.1.0] - 2027-01-01\n",
            "CHANGELOG.md has entries under [Unreleased]: put them under [1.1.0] first",
        ),
    ],
)
def test_only_the_newest_version_is_released(version: str, changelog: str, problem: str) -> None:
    assert not_to_release(version, changelog) == problem
