"""The browser that the page is tested in: `python -m tools.browser` finds one, or installs one.

A browser of the system is taken as it is. Otherwise Chromium comes from the packages that the machine has:
root installs them; for others they are unpacked into the environment, where nothing else sees them.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

VARIABLE = "MOORAGE_BROWSER"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PACKAGE = "chromium"
UNPACKED = Path(sys.prefix) / "browser"
MISSING = f"The page's tests need Chromium or Chrome: install one, or say where it is with {VARIABLE}=PATH."
_APPLICATIONS = (
    Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
)


class BrowserError(Exception):
    """There is no browser; the message is one line."""


@dataclass(frozen=True, slots=True)
class Browser:
    """A program, and what its environment has to have in addition."""

    program: Path
    environment: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Find a browser, or install one; status 1 if neither is possible."""
    try:
        if next(_found(), None) is None:
            _install()
        print(find_browser().program)  # noqa: T201
    except (BrowserError, subprocess.CalledProcessError) as error:
        # What a command complains of was seen.
        print(error if isinstance(error, BrowserError) else MISSING, file=sys.stderr)  # noqa: T201
        return 1
    return 0


def find_browser() -> Browser:
    """The browser to test with; BrowserError if there is none."""
    browser = next(_found(), None)
    if browser is None:
        raise BrowserError(MISSING)
    return browser


def _found() -> Iterator[Browser]:
    if named := os.environ.get(VARIABLE):
        if not os.access(named, os.X_OK):
            raise BrowserError(f"{VARIABLE}: {named} is not a program")
        yield Browser(Path(named))
    for name in NAMES:
        if program := shutil.which(name):
            yield Browser(Path(program))
    for application in _APPLICATIONS:
        if application.exists():
            yield Browser(application)
    if (unpacked := UNPACKED / "usr/lib/chromium/chromium").exists():
        yield Browser(unpacked, {"LD_LIBRARY_PATH": ":".join(map(str, _library_folders()))})


def _library_folders() -> list[Path]:
    machine = f"{platform.machine()}-linux-gnu"
    folders = [UNPACKED / "usr/lib" / machine, UNPACKED / "lib" / machine, UNPACKED / "usr/lib"]
    # Some libraries, such as libpulsecommon, are in folders of their own.
    return [*folders, *(each for each in folders[0].glob("*") if each.is_dir())]


def _install() -> None:
    if shutil.which("apt-get") is None:
        return
    if os.geteuid() == 0:
        _run("apt-get", "update", "--quiet")
        _run("apt-get", "install", "--yes", "--quiet", "--no-install-recommends", PACKAGE)
    elif shutil.which("dpkg") is not None:
        _unpack()


def _unpack() -> None:
    """Unpack Chromium, and of what it depends on, that which the system does not have."""
    plan = _run("apt-get", "install", "--simulate", "--no-install-recommends", PACKAGE)
    names = re.findall(r"^Inst (\S+)", plan, re.MULTILINE)
    unfinished = UNPACKED.with_name(f"{UNPACKED.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        _run("apt-get", "download", "--quiet", *names, folder=folder)
        for archive in sorted(Path(folder).glob("*.deb")):
            _run("dpkg", "-x", str(archive), str(unfinished))
    unfinished.rename(UNPACKED)


def _run(*command: str, folder: str | None = None) -> str:
    """What a command prints; CalledProcessError if it fails."""
    environment = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=folder, env=environment)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
