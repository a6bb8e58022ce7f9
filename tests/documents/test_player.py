"""What the player of documents takes for a step, and for the same output."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.player import Command, File, Interrupt, Play, Program, shows, steps


def page(text: str) -> str:
    """A page, with ~ for the marks of code blocks."""
    return text.replace("~", "```")


def test_commands_with_their_output_and_files_are_steps() -> None:
    text = page(
        "Save as `a.py`:\n~python\nx = 1\n~\n"
        "~console\n$ one\n$ two\n~\n~text\nsaid\n~\n~console\n$ three\nat once\n~\n~python\nprint(2)\n~\n"
    )

    assert steps(text) == [
        File("a.py", "x = 1\n"),
        Command("one"),
        Command("two", ["said"]),
        Command("three", ["at once"]),
        Program("print(2)\n"),
    ]


def test_a_here_document_belongs_to_its_command() -> None:
    text = page("~console\n$ cat > a.yaml <<'EOF'\n$ no command\nEOF\n$ next\n~\n")

    assert steps(text) == [Command("cat > a.yaml <<'EOF'\n$ no command\nEOF"), Command("next")]


def test_a_block_within_a_list_is_not_indented() -> None:
    assert steps(page("1. So:\n\n   ~console\n   $ one\n   ~\n")) == [Command("one")]


def test_an_interrupt_is_named_in_the_text_before_a_block() -> None:
    text = page("Press Ctrl-C in the terminal of `moorage run`:\n~text\nthe end\n~\n")

    assert steps(text) == [Interrupt("moorage run", ["the end"])]


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("web-6ddh9t575w-5cb6n   1/1   4s", "web-s6mzq4d9ml-rrhtk  1/1  2m12s"),
        ("at https://127.0.0.1:38287.", "at https://127.0.0.1:6443."),
        ("goes to node-3", "goes to …"),
    ],
)
def test_what_differs_between_two_runs_does_not_count(printed: str, shown: str) -> None:
    assert shows([printed], [shown])


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        (["goes to node-3"], ["goes to node-4"]),
        (["one", "two"], ["two", "one"]),
        (["waits 4.5s"], ["waits 5.5s"]),
        (["web-0 Running"], ["web-1 Running"]),
        ([], ["anything"]),
    ],
)
def test_everything_else_does(printed: list[str], shown: list[str]) -> None:
    assert not shows(printed, shown)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("~console\n$ echo one\n~\n~text\ntwo\n~\n", "and not\ntwo"),
        ("~console\n$ false\n~\n", "false"),
        ("~python\nraise SystemExit(3)\n~\n", "SystemExit"),
    ],
)
def test_a_page_that_is_not_true_fails(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=words):
        Play(tmp_path).play(page(text))


def test_an_export_lasts_and_a_command_that_is_not_run_is_noted(tmp_path: Path) -> None:
    played = Play(tmp_path, not_run={"reboot": "there is one machine"})
    played.play(page("~console\n$ export A=1 B=2\n$ echo $A$B\n~\n~text\n12\n~\n~console\n$ reboot now\n~\n"))

    assert played.not_run == ["reboot now"]
