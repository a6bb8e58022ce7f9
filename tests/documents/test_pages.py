"""Every page with commands or Python is executed, or says where and why not; some are played here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.documents.pages import IN_A_CLONE, LEFT_OUT, PLAYED
from tests.documents.player import NEVER_RUN, ROOT, Command, Play, Program, steps

PAGES = ["README.md", *(str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs").rglob("*.md")))]


def executable(page: str) -> list[str]:
    """The commands and programs of a page that are not left out."""
    left_out = (*NEVER_RUN, *LEFT_OUT.get(page, ()))
    found = [each for each in steps((ROOT / page).read_text()) if isinstance(each, Command | Program)]
    return [each.text for each in found if isinstance(each, Program) or not each.text.startswith(left_out)]


@pytest.mark.parametrize("page", PAGES)
def test_what_can_be_executed_is_played_by_some_test(page: str) -> None:
    assert bool(executable(page)) == (page in PLAYED)


@pytest.mark.parametrize("page", PLAYED)
def test_the_tests_that_play_a_page_exist_and_know_it(page: str) -> None:
    for name in PLAYED[page]:
        file, _, function = name.partition("::")
        assert f"def {function}(" in (ROOT / file).read_text()
    files = {name.partition("::")[0] for name in PLAYED[page] if name != IN_A_CLONE}
    texts = [(ROOT / file).read_text() for file in files]
    assert all(Path(page).name in text or Path(page).parent.name in text for text in texts)


@pytest.mark.parametrize("page", LEFT_OUT)
def test_what_is_left_out_is_on_the_page(page: str) -> None:
    commands = [each.text for each in steps((ROOT / page).read_text()) if isinstance(each, Command)]

    assert [begin for begin in LEFT_OUT[page] if not any(each.startswith(begin) for each in commands)] == []


@pytest.mark.parametrize("page", [page for page in PLAYED if IN_A_CLONE in PLAYED[page]])
def test_a_page_in_a_clone(page: str, tmp_path: Path) -> None:
    played = Play.in_a_clone(tmp_path, LEFT_OUT.get(page))
    played.play((ROOT / page).read_text())

    assert len(played.commands) > len(played.not_run)
