"""The page and the notebooks about Python say what happens: they are executed as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.documents.player import ROOT, Play
from tests.research.notebooks import executed

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def outputs(notebook: Any) -> list[list[str]]:
    """What each cell prints and shows, as text; the cells are code."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [["".join(each.get("text") or each.data["text/plain"]) for each in cell.outputs] for cell in cells]


def test_the_page(tmp_path: Path) -> None:
    played = Play.in_a_clone(tmp_path)
    played.play((ROOT / "docs/reference/python-api.md").read_text())
    assert played.commands == ["python examples/research/baseline.py"]


def test_there_are_notebooks() -> None:
    assert [each.name for each in NOTEBOOKS] == ["policy.ipynb", "what-if.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_has_its_outputs(path: Path, tmp_path: Path) -> None:
    published = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    before = outputs(published)
    assert any(before)
    assert outputs(executed(published, path.parent, tmp_path)) == before
