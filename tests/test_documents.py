"""Documents lead somewhere and agree with each other: links, anchors, the index, figures."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from bench.publish import RATIO, sections

ROOT = Path(__file__).parent.parent
KINDS_OF_PAGES = ("tutorials", "how-to", "reference", "explanation")
PAGES = sorted(path for kind in KINDS_OF_PAGES for path in (ROOT / "docs" / kind).glob("*.md"))
FOLDERS = [ROOT / name for name in ("bench", "cluster", "docs")]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(path for folder in FOLDERS for path in folder.rglob("*.md"))])

CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
LINK_TEXT = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def prose(document: Path) -> str:
    """A document without its code blocks."""
    return CODE_BLOCK.sub("", document.read_text())


def links(document: Path) -> list[tuple[Path, str]]:
    """The files and anchors that a document links to; other sites are left out."""
    found = [link.partition("#") for link in LINK.findall(prose(document)) if "://" not in link]
    return [((document.parent / file).resolve() if file else document, anchor) for file, _, anchor in found]


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    seen: Counter[str] = Counter()
    made = set()
    for heading in HEADING.findall(prose(document)):
        anchor = re.sub(r"[^\w\- ]", "", LINK_TEXT.sub(r"\1", heading).lower()).replace(" ", "-")
        made.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return made


def leads_nowhere(file: Path, anchor: str) -> bool:
    return not file.exists() or (bool(anchor) and anchor not in anchors(file))


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_leads_somewhere(document: Path) -> None:
    assert [
        f"{name_of(file)}#{anchor}" for file, anchor in links(document) if leads_nowhere(file, anchor)
    ] == []


def test_anchors_are_those_that_github_makes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# `moorage run`: 1.36's flags\n## A [link](x.md) too\n## Same\n## Same\n```\n# no heading\n```\n"
    )

    assert anchors(page) == {"moorage-run-136s-flags", "a-link-too", "same", "same-1"}


def test_a_link_to_a_missing_anchor_leads_nowhere(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Here\n[a](#here) [b](#gone) [c](page.md#here) [d](gone.md)\n")

    assert [leads_nowhere(*link) for link in links(page)] == [False, True, False, True]


def test_the_index_has_every_page() -> None:
    indexed = {file for file, _ in links(ROOT / "docs/index.md")}

    assert set(PAGES) - indexed == set()


def test_the_readme_leads_to_the_index() -> None:
    assert (ROOT / "docs/index.md", "") in links(ROOT / "README.md")


def _numbers(cell: str) -> list[float]:
    return [float(each) for each in re.findall(r"[\d.]+", cell.replace(",", ""))]


def test_the_readme_compares_with_kube_scheduler_as_the_results_do() -> None:
    """The ratios of runs in turn with kube-scheduler: how many, the least and the greatest."""
    rows = [row for table in sections((ROOT / "bench/RESULTS.md").read_text()) for row in table.rows]
    ratios = [float(found[1]) for row in rows if (found := re.match(r"([\d.]+)x", row[RATIO]))]
    pages = [(ROOT / name).read_text() for name in ("README.md", "docs/explanation/performance.md")]

    assert len(ratios) >= 20
    for words in (f"{len(ratios)} workloads", f"{min(ratios):g} to {max(ratios):g} times"):
        assert all(words in " ".join(page.split()) for page in pages)
