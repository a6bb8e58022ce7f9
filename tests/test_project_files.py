"""What contributors meet first is true: CONTRIBUTING.md, decision records, CI, hooks and templates."""

from __future__ import annotations

import ast
import re
import tomllib
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.specifiers import SpecifierSet

ROOT = Path(__file__).parent.parent
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
RECORDS = sorted((ROOT / "docs/decisions").glob("[0-9]*.md"))
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
PROPERTIES_WITHIN_TESTS = [
    path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "\n    @given(" in path.read_text()
]
YAML_FILES = [ROOT / ".pre-commit-config.yaml", ROOT / ".github/workflows/ci.yml", *FORMS]
DOCUMENTS = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINTERS = re.findall(
    r"^\t\$\(BIN\)/(.*)$", MAKEFILE.partition("\nlint:")[2].partition("\n\n")[0], re.MULTILINE
)

TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)
NAMED_TARGET = re.compile(r"\bmake ([a-z][a-z-]*)(?=[` ]|$)", re.MULTILINE)
NAMED_PATH = re.compile(
    r"(?<![\w/.~-])((?:src|cluster|tests|bench|docs|tools|examples|requirements)/[\w./*-]*[\w*])"
)
NAMED_MODULE = re.compile(r"-m ((?:bench|tests|tools)[\w.]*)")
LINK = re.compile(r"\]\(([^)#:]+)\)")
PYTHON_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def pythons() -> list[str]:
    """The versions of Python that the package says it runs with."""
    return [found[1] for each in PROJECT["classifiers"] if (found := PYTHON_CLASSIFIER.fullmatch(each))]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def is_there(path: str) -> bool:
    """Whether a path exists; those of modules may be written as the package's own."""
    return any(any(folder.glob(path)) for folder in (ROOT, ROOT / "src" / "moorage"))


def test_every_target_named_in_contributing_exists() -> None:
    named = set(NAMED_TARGET.findall(CONTRIBUTING))

    assert {"setup", "lint", "test", "test-fast", "lock"} <= named
    assert named - set(TARGET.findall(MAKEFILE)) == set()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_path_named_in_a_document_exists(document: Path) -> None:
    text = document.read_text()
    modules = [f"{module.replace('.', '/')}.py" for module in NAMED_MODULE.findall(text)]

    assert [path for path in [*NAMED_PATH.findall(text), *modules] if not is_there(path)] == []


def test_contributing_names_paths() -> None:
    assert len(set(NAMED_PATH.findall(CONTRIBUTING))) > 20


def test_the_fast_tests_leave_out_only_what_exists() -> None:
    left_out = re.findall(r"--(?:ignore|deselect)=(\S+)", MAKEFILE)

    assert left_out
    assert [path for path in left_out if not (ROOT / path.partition("::")[0]).exists()] == []


def test_help_lists_the_targets_that_contributors_use() -> None:
    described = set(re.findall(r"^([a-z-]+):.*## ", MAKEFILE, re.MULTILINE))

    assert {"help", "setup", "test", "test-fast", "lint", "bench", "lock"} <= described
    assert described <= set(re.findall(r"[a-z-]+", MAKEFILE.partition(".PHONY:")[2].partition("\n")[0]))


def test_the_index_of_decisions_lists_every_record() -> None:
    index = (ROOT / "docs/decisions/README.md").read_text()

    assert [record.name for record in RECORDS] == LINK.findall(index)


@pytest.mark.parametrize("record", RECORDS, ids=name_of)
def test_a_record_has_the_four_sections(record: Path) -> None:
    sections = re.findall(r"^## (.*)$", record.read_text(), re.MULTILINE)

    assert sections == ["Context", "Decision", "Consequences", "What would change our minds"]


def test_ci_runs_the_tests_with_every_python_that_is_supported() -> None:
    test = load(ROOT / ".github/workflows/ci.yml")["jobs"]["test"]
    supported = SpecifierSet(PROJECT["requires-python"])

    assert test["strategy"]["matrix"]["python-version"] == pythons()
    assert all(supported.contains(python) for python in pythons())
    assert not supported.contains(f"3.{int(pythons()[0].partition('.')[2]) - 1}")
    assert [step["run"].split()[:2] for step in test["steps"] if "run" in step] == [["make", "test"]]


def test_ci_lints_once() -> None:
    jobs = load(ROOT / ".github/workflows/ci.yml")["jobs"]

    linting = [
        name for name, job in jobs.items() for step in job["steps"] if "make lint" in step.get("run", "")
    ]
    assert linting == ["lint"]
    assert "strategy" not in jobs["lint"]
    assert all("SKIP_LINT=1" in step["run"] for step in jobs["test"]["steps"] if "run" in step)


def test_hooks_run_the_linters_of_the_environment() -> None:
    repositories = load(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = [hook for repository in repositories for hook in repository["hooks"]]

    assert [repository["repo"] for repository in repositories] == ["local"]
    assert [hook["entry"].split()[0] for hook in hooks] == [
        f".venv/bin/{each.split()[0]}" for each in LINTERS
    ]
    assert all(hook["language"] == "system" for hook in hooks)


@pytest.mark.parametrize("form", [form for form in FORMS if form.name != "config.yml"], ids=name_of)
def test_an_issue_form_asks_questions(form: Path) -> None:
    content = load(form)
    questions = [item for item in content["body"] if item["type"] in ("input", "textarea")]

    assert content["name"]
    assert content["description"]
    assert all(item["attributes"]["label"] for item in questions)
    assert len({item["id"] for item in questions}) == len(questions) > 1


def test_there_is_a_form_for_each_kind_of_issue() -> None:
    assert {form.stem for form in FORMS} == {"bug", "config", "different-decision", "feature"}


def test_the_glossary_closes_the_architecture_with_sorted_words_and_one_line_each() -> None:
    _, glossary = (ROOT / "ARCHITECTURE.md").read_text().split("\n## Glossary\n")
    rows = [line.strip("| ").split(" | ") for line in glossary.splitlines() if line.startswith("| ")][1:]
    words = [row[0] for row in rows]

    assert all(len(row) == 2 for row in rows)
    assert words == sorted(set(words))
    assert {"column", "equivalence class", "journal", "plan", "result cache", "row", "snapshot"} <= set(words)


def test_types_are_checked_everywhere() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]

    assert settings["strict"]
    assert {"src/moorage", "bench", "tools", "tests"} <= set(settings["files"])
    assert not any(each.get("ignore_errors") for each in settings["overrides"])


@pytest.mark.parametrize("file", PROPERTIES_WITHIN_TESTS, ids=name_of)
def test_properties_within_tests_are_marked_for_the_fast_tests_to_leave_out(file: Path) -> None:
    module = import_module(name_of(file).removesuffix(".py").replace("/", "."))
    own = {each.name: ast.unparse(each) for each in ast.parse(file.read_text()).body if hasattr(each, "name")}
    with_properties = {name for name, source in own.items() if "\n    @given(" in source}
    helpers = {f"{name}(" for name in with_properties if not name.startswith("test_")}
    tests = {name for name in own if name.startswith("test_")}
    heavy = with_properties & tests | {name for name in tests if any(each in own[name] for each in helpers)}

    assert heavy
    for name in heavy:
        assert "hypothesis" in {mark.name for mark in getattr(getattr(module, name), "pytestmark", ())}, name
