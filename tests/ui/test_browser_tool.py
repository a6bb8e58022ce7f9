"""Where the browser of the page's tests is from: the system, or packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import browser

APT = """#!/bin/sh
case "$*" in
  *--simulate*) echo "Inst libx (1)"; echo "Inst chromium (2)"; echo "Conf chromium (2)";;
  download*) for name in libx chromium; do : > "$name.deb"; done;;
  *) exit 100;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/lib/chromium"
case "$2" in */chromium.deb) : > "$3/usr/lib/chromium/chromium";; esac
"""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder of programs; there is neither a browser nor a folder of applications."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}")
    monkeypatch.delenv(browser.VARIABLE, raising=False)
    monkeypatch.setattr(browser, "UNPACKED", tmp_path / "browser")
    monkeypatch.setattr(browser, "_APPLICATIONS", ())
    return folder


def program(path: Path, text: str = "") -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_browser_of_the_system_is_taken(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = program(programs / "google-chrome")
    assert browser.find_browser() == browser.Browser(found)
    named = program(programs / "mine")
    monkeypatch.setenv(browser.VARIABLE, str(named))
    assert browser.find_browser() == browser.Browser(named)


def test_a_named_browser_has_to_be_there(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(browser.VARIABLE, str(programs / "none"))

    with pytest.raises(browser.BrowserError, match=r"MOORAGE_BROWSER: .*none is not a program"):
        browser.find_browser()


def test_without_any_one_line_says_what_to_do(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert browser.main() == 1

    assert capsys.readouterr().err == f"{browser.MISSING}\n"


def test_who_may_install_nothing_unpacks_it(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(browser, "NAMES", ())
    program(programs / "apt-get", APT)
    program(programs / "dpkg", DPKG)

    assert browser.main() == 0

    found = browser.find_browser()
    assert found.program == browser.UNPACKED / "usr/lib/chromium/chromium"
    assert str(browser.UNPACKED) in found.environment["LD_LIBRARY_PATH"]


def test_packages_that_cannot_be_had_are_no_browser(
    programs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setenv("PATH", f"{programs}:/bin")
    monkeypatch.setattr(browser, "NAMES", ())
    program(programs / "apt-get", APT)

    assert browser.main() == 1
    assert capsys.readouterr().err.endswith(f"{browser.MISSING}\n")
