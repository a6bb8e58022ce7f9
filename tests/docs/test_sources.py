"""Pages of the repository as sources of the site: their places, links and sections."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.docs.sources import Pages, collect, write

PYPROJECT = '[project.urls]\nSource = "https://example.com/us"\n'
FILES = {
    "pyproject.toml": PYPROJECT,
    "ARCHITECTURE.md": "# How it works\n\n![A](docs/images/a.svg) [one](docs/how-to/one.md#part)\n",
    "docs/index.md": "# Documentation\n\n[two.md](how-to/two.md) [one.md](how-to/one.md)\n",
    "docs/how-to/one.md": "# First\n\n## Part\n",
    "docs/how-to/two.md": "# Second\n",
    "docs/how-to/zero.md": "# Not in the index yet\n",
    "docs/decisions/README.md": "# Decisions\n",
    "docs/decisions/0001-a.md": "# 1. A\n",
    "docs/images/a.svg": "<svg/>",
    "src/code.py": "",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def page(root: Path, text: str, place: str = "how-to/one.md") -> str:
    """A page of the site, from its text in the repository."""
    (root / "docs" / place).write_text(text)
    return collect(root, {}).texts[place]


@pytest.mark.parametrize(
    ("link", "on_the_site"),
    [
        ("[a](two.md)", "[a](two.md)"),
        ("[two.md](two.md)", "[Second](two.md)"),
        ("[a](../../ARCHITECTURE.md#part)", "[a](../project/architecture.md#part)"),
        ("[a](../decisions/README.md)", "[a](../decisions/index.md)"),
        ("[a](../../src/code.py#L1)", "[a](https://example.com/us/blob/main/src/code.py#L1)"),
        ("[a](../../src)", "[a](https://example.com/us/tree/main/src)"),
        ("![a](../images/a.svg)", "![a](../images/a.svg)"),
        ("[a](https://example.org/two.md)", "[a](https://example.org/two.md)"),
        ("[a](#part)", "[a](#part)"),
        ("```\n[a](../../src)\n```", "```\n[a](../../src)\n```"),
    ],
)
def test_a_link_leads_to_the_same_place_from_the_site(root: Path, link: str, on_the_site: str) -> None:
    assert page(root, link) == on_the_site


def test_pages_outside_the_folder_have_a_place_and_their_images(root: Path) -> None:
    pages = collect(root, {})

    assert pages.texts["project/architecture.md"].endswith(
        "![A](../images/a.svg) [one](../how-to/one.md#part)\n"
    )
    assert pages.images == {"images/a.svg": root / "docs/images/a.svg"}


def test_a_section_has_its_pages_in_the_order_of_the_index_and_new_ones_last(root: Path) -> None:
    index = collect(root, {}).texts["how-to/index.md"]

    assert index.endswith("```{toctree}\n:maxdepth: 1\ntwo.md\none.md\nzero.md\n```\n")


def test_a_section_with_an_index_of_its_own_keeps_it(root: Path) -> None:
    index = collect(root, {}).texts["decisions/index.md"]

    assert index == "# Decisions\n\n```{toctree}\n:hidden:\n0001-a.md\n```\n"


def test_generated_pages_are_a_part_of_the_reference(root: Path) -> None:
    texts = collect(root, {"reference/generated/cli.md": "# Command line\n"}).texts

    assert texts["reference/index.md"].endswith("generated/index.md\n```\n")
    assert "how-to/index.md\nreference/index.md\ndecisions/index.md\nproject/index.md\n" in texts["index.md"]


def test_writing_removes_old_pages_and_leaves_equal_ones_alone(tmp_path: Path) -> None:
    write(Pages({"a.md": "a", "b.md": "b"}), tmp_path)
    before = (tmp_path / "a.md").stat().st_mtime_ns
    write(Pages({"a.md": "a", "c/d.md": "d"}), tmp_path)

    assert sorted(path.name for path in tmp_path.rglob("*.md")) == ["a.md", "d.md"]
    assert (tmp_path / "a.md").stat().st_mtime_ns == before
