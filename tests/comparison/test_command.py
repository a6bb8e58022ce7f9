"""`moorage compare` as a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "moorage", "compare"]
ROOT = Path(__file__).parent.parent.parent
MOST = str(ROOT / "examples" / "compare" / "most-allocated.yaml")
SCENARIO = ("--nodes", "3", "--generate", "40", "--seed", "7")


def run(*words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert ended.returncode == status, ended.stderr
    return ended


class _Page(HTMLParser):
    """What a page has, what it would fetch, and whether its tags are closed."""

    VOID = frozenset(("meta",))

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_results_and_page_are_the_same_bytes_again(tmp_path: Path) -> None:
    pages = tmp_path / "one.html", tmp_path / "other.html"
    shown = [run("default", MOST, *SCENARIO, "-o", "json", "--report", str(page)).stdout for page in pages]
    assert shown[0] == shown[1]
    assert pages[0].read_bytes() == pages[1].read_bytes()
    result = json.loads(shown[0])
    assert (result["apiVersion"], result["kind"]) == ("moorage.io/v1alpha1", "Comparison")
    assert result["complete"] is True
    assert [each["name"] for each in result["runs"]] == ["default", "most-allocated.yaml"]
    (difference,) = result["differences"]
    assert (
        difference["moved"] == len(difference["moves"]) == sum(each["pods"] for each in difference["movers"])
    )
    assert difference["firstDifference"]["plugin"] == "NodeResourcesFit"
    page = _Page(pages[0].read_text())
    assert page.fetched == []
    assert page.tags.count("svg") == 4 + 2  # Plots with a line for each run, and a map of nodes for each.
    assert "first difference" in page.text
    assert "NodeResourcesFit" in page.text


def test_versions_and_the_same_configuration_again_have_names_of_their_own() -> None:
    words = ("default@1.36", "default", "default", "--emulated-version", "1.37", *SCENARIO)
    shown = run(*words).stdout
    lines = shown.splitlines()
    assert lines[0].split("   ")[0] == "FIGURE"
    assert lines[0].split()[1:] == ["default@1.36", "default", "default", "(2)"]
    assert lines[1].split() == ["Kubernetes", "v1.36", "v1.37", "v1.37"]
    same = "beside default@1.36: no differences; all pods are on the same nodes, and waited as long"
    assert lines[-3:] == [f"default {same}", "", f"default (2) {same}"]


def test_files_of_the_same_name_are_told_apart(tmp_path: Path) -> None:
    files = [tmp_path / folder / "config.yaml" for folder in ("one", "two")]
    for file in files:
        file.parent.mkdir()
        file.write_text(Path(MOST).read_text())
    result = json.loads(run(*map(str, files), *SCENARIO, "-o", "json").stdout)
    assert [each["name"] for each in result["runs"]] == [str(file) for file in files]
    assert result["differences"][0]["moves"] == []


def test_lines_that_are_skipped_are_counted_once(tmp_path: Path) -> None:
    trace = tmp_path / "trace.jsonl"
    trace.write_text('{"arrival": 0, "duration": 5, "cpu": "1"}\nnonsense\n{"arrival": 3, "duration": 5}\n')
    words = ("default", "default", "--nodes", "1", "--workload", str(trace))
    assert f"moorage compare: {trace}: line 2: not JSON: " in run(*words, status=2).stderr
    ended = run(*words, "--skip-bad")
    assert ended.stderr.count("moorage compare: skipped: ") == 1
    assert "moorage compare: 1 line was skipped" in ended.stderr


def test_an_interrupted_comparison_has_the_runs_up_to_then_and_says_so(tmp_path: Path) -> None:
    trace, page = tmp_path / "trace.jsonl", tmp_path / "page.html"
    os.mkfifo(trace)
    words = [*COMMAND, "default", "default@1.36", "--nodes", "1", "--workload", str(trace), "-o", "json"]
    process = subprocess.Popen(
        [*words, "--report", str(page)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with trace.open("w") as file:  # Returns when the first simulation has begun to read.
        file.write(_lines(0, 100))
        file.flush()
        process.send_signal(signal.SIGINT)
        file.write(_lines(100, 200))
    output, errors = process.communicate()
    assert process.returncode == 130, errors
    assert "moorage compare: interrupted; only runs that have ended are compared" in errors
    result = json.loads(output)
    assert (result["complete"], result["differences"]) == (False, [])
    assert [(each["name"], each["complete"]) for each in result["runs"]] == [("default", False)]
    text = _Page(page.read_text()).text
    assert "Interrupted: the results are those up to then." in text
    assert "default (interrupted)" in text


def _lines(first: int, end: int) -> str:
    return "".join(
        json.dumps({"arrival": 60 * each, "duration": 30, "cpu": "1"}) + "\n" for each in range(first, end)
    )


def test_the_document_shows_what_is_really_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs/how-to/comparing.md").read_text()
    shown = re.search(r"```console\n\$ moorage compare (.*)\n```\n```text\n([^`]*)```", page)
    assert shown is not None
    assert run(*shown[1].split()).stdout == shown[2]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["default"], "give at least two configurations; `default` stands for the default one"),
        (["default", "none.yaml"], "none.yaml: No such file or directory"),
        (["default", "default@1.35"], "default@1.35: 1.35: only 1.36 or 1.37 is possible"),
        (["default", "examples/pod.yaml"], "examples/pod.yaml: apiVersion: "),
        (["default", "default", "--emulated-version", "2"], "--emulated-version: 2: only 1.36 or 1.37"),
    ],
)
def test_bad_input_is_one_clear_line(
    words: list[str], problem: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    page = tmp_path / "page.html"
    errors = run(*words, *SCENARIO, "--report", str(page), status=2).stderr
    assert errors.startswith(f"moorage compare: {problem}")
    assert len(errors.splitlines()) == 1
    assert not page.exists()
