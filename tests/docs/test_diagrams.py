"""The drawings are current, and can be read by those who do not see them."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tools import diagrams

FILES = dict(diagrams.files())


def name_of(path: Path) -> str:
    return path.stem


def test_the_drawings_are_those_of_the_source() -> None:
    assert [path.name for path, content in FILES.items() if path.read_text("utf-8") != content] == []


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_drawing_is_labelled_and_inside_its_card(path: Path) -> None:
    svg = ElementTree.fromstring(FILES[path])
    width, height = float(svg.attrib["width"]), float(svg.attrib["height"])
    boxes = [each.attrib for each in svg.iter("{http://www.w3.org/2000/svg}rect")]

    assert svg.attrib["aria-label"]
    assert len(boxes) > 5
    assert all(float(box["x"]) + float(box["width"]) <= width for box in boxes)
    assert all(float(box["y"]) + float(box["height"]) <= height for box in boxes)


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_a_drawing_is_shown_in_a_document(path: Path) -> None:
    assert f"](docs/images/{path.name})" in (diagrams.FOLDER.parent.parent / "ARCHITECTURE.md").read_text()
