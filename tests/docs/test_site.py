"""The site as `make docs` builds it: no warnings, no dead links, nothing loaded from elsewhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.docs.build import ROOT
from tools.docs.built import problems
from tools.docs.sources import places


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_or_a_dead_link(tmp_path: Path) -> None:
    site = tmp_path / "site"
    words = [sys.executable, "-m", "tools.docs", "--output", str(site)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"The site is at {site / 'index.html'}\n", "")
    built = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    assert set(places(ROOT).values()) - built == set()
    assert (site / "searchindex.js").stat().st_size > 100_000


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "index.html").write_text(
        '<a href="page.html#here">a</a><a href="https://example.com">b</a><h1 id="top">c</h1>'
        '<link rel="next" href="page.html"><img src="data:image/png;base64,"><a href="#top">d</a>'
    )
    (tmp_path / "page.html").write_text('<p id="here"></p><script src="site.js"></script>')
    (tmp_path / "site.js").write_text("")
    (tmp_path / "site.css").write_text("p { background: url(image.svg) }")
    return tmp_path


def test_links_to_other_sites_are_allowed(site: Path) -> None:
    assert problems(site) == []


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<a href="gone.html">', "gone.html leads nowhere"),
        ('<a href="page.html#gone">', "page.html#gone leads nowhere"),
        ('<a href="#gone">', "#gone leads nowhere"),
        ('<a href="../outside.html">', "../outside.html leads nowhere"),
        ('<img src="gone.png">', "gone.png leads nowhere"),
        ('<script src="https://cdn.example/a.js">', "https://cdn.example/a.js is loaded from elsewhere"),
        (
            '<link rel="stylesheet" href="//cdn.example/a.css">',
            "//cdn.example/a.css is loaded from elsewhere",
        ),
        ('<p style="background: url(http://a.example/b)">', "http://a.example/b is loaded from elsewhere"),
    ],
)
def test_a_problem_is_named_with_its_page(site: Path, page: str, problem: str) -> None:
    (site / "index.html").write_text(page)

    assert problems(site) == [f"index.html: {problem}"]


def test_styles_load_nothing_from_elsewhere(site: Path) -> None:
    (site / "site.css").write_text('@import "https://fonts.example/a.css";')

    assert problems(site) == ["site.css: https://fonts.example/a.css is loaded from elsewhere"]
