"""A page of documentation that is executed as it is written.

Code blocks that the text before them names (`berth.py`) become files; other Python is run. Lines of console
blocks that begin with `$` are run in order, in one folder; what goes on (`moorage up`, `moorage run`) does so
until there is another cluster, or until the end. A text block shows lines of what the last command printed,
or of what was started last and still runs; `…` stands for any text. When a watched plugin was edited, it is
waited for. `kubectl get` is repeated until it prints what is shown.

Only ports are not as written: they are free ones. `make up` is the command of its recipe. Images are not
built (`docker`).
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
_TIMEOUT_SECONDS = 60

_FENCE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE_NAME = re.compile(r"`([\w-]+\.(?:py|yaml))`:$")
_FREE_PORTS = {"moorage up": " --port 0 --no-ui", "moorage run": " --secure-port 0"}
_FIXED_ADDRESS = "127.0.0.1:6443"
_NOT_RUN = "docker "
_READING = "kubectl get "
_MAKE_UP = re.compile(r"^\t@exec \$\(BIN\)/(moorage up .*) \$\(UP\)$", re.MULTILINE)
_IS_READY = {"moorage up": "is up at", "moorage run": "Successfully acquired lease"}


class Block(NamedTuple):
    """A code block, and the text before it."""

    language: str
    text: str
    before: str


def section(page: str, heading: str) -> str:
    """What is under a heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {heading}"
    return found[1]


def blocks(text: str) -> Iterator[Block]:
    """All code blocks, in order."""
    end = 0
    for found in _FENCE.finditer(text):
        yield Block(found["language"], found["text"], text[end : found.start()].strip())
        end = found.end()


class Background:
    """A command that goes on."""

    def __init__(self, command: str, kind: str, folder: Path, environment: dict[str, str]) -> None:
        self.kind = kind
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command}{_FREE_PORTS[kind]}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._output: list[str] = []
        self._received = threading.Condition()
        self._is_over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.prints([f"…{_IS_READY[kind]}…"])

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._received:
                self._output.append(line.rstrip())
                self._received.notify_all()
        with self._received:
            self._is_over = True
            self._received.notify_all()

    def prints(self, lines: Sequence[str], after: int = 0) -> None:
        """Wait until it has said these lines, in this order, after so many others."""
        with self._received:
            self._received.wait_for(
                lambda: self._is_over or _shows(self._output[after:], lines), _TIMEOUT_SECONDS
            )
            assert _shows(self._output[after:], lines), "\n".join(
                ["it did not say", *lines, "but", *self._output]
            )

    @property
    def line_count(self) -> int:
        """How much it has said."""
        return len(self._output)

    def end(self) -> None:
        """Ask it to end, as Ctrl-C does, and see that it ends well."""
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(_TIMEOUT_SECONDS)
        finally:
            self.kill()
        assert status == 0, "\n".join(self._output)

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Play:
    """One page, being executed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        (folder / ".venv").symlink_to(sys.prefix)
        (folder / "examples").symlink_to(ROOT / "examples")
        self._environment = {
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "moorage.kubeconfig"),
            "PATH": f"{Path(sys.executable).parent}:{os.environ.get('PATH', os.defpath)}",
            "COLUMNS": "100",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        self._running: list[Background] = []
        self._printed: list[str] = []
        self.commands: list[str] = []
        """What was run so far."""

    def play(self, text: str) -> None:
        """Execute all blocks of a text, and end what still runs."""
        try:
            for block in blocks(text):
                self._block(block)
            for running in self._running[::-1]:
                running.end()
        finally:
            for running in self._running:
                running.kill()

    def _block(self, block: Block) -> None:
        name = _FILE_NAME.search(block.before)
        if block.language == "console":
            for line in block.text.splitlines():
                assert line.startswith("$ "), line
                self._command(line.removeprefix("$ "))
        elif block.language == "text":
            self._expect(block.text.splitlines())
        elif name is not None:
            (self._folder / name[1]).write_text(block.text)
        elif block.language == "python":
            self._run(["python", "-c", block.text])

    def _command(self, command: str) -> None:
        self.commands.append(command)
        if command.startswith(_NOT_RUN):
            return
        if command == "make up":
            command = _recipe_of_make_up()
        kind = " ".join(command.split()[:2])
        if kind in _FREE_PORTS:
            self._end_those_before(kind)
            self._running.append(Background(command, kind, self._folder, self._environment))
            return
        plugins = self._plugin_files()
        line_counts = [running.line_count for running in self._running]
        self._shell(command)
        for name in plugins.keys() & {
            name for name, text in self._plugin_files().items() if text != plugins[name]
        }:
            for running, after in zip(self._running, line_counts, strict=True):
                running.prints([f"…{name} reloaded"], after)

    def _end_those_before(self, kind: str) -> None:
        """A second cluster takes the place of the first, and of all that worked in it."""
        if kind == "moorage up":
            while self._running:
                self._running.pop().end()

    def _plugin_files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self._folder.glob("*.py")}

    def _shell(self, command: str) -> None:
        self._run(["bash", "-o", "pipefail", "-c", command])

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
        self._printed = [line.rstrip() for line in done.stdout.splitlines()]

    def _expect(self, lines: Sequence[str]) -> None:
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        command = self.commands[-1] if self.commands else ""
        while (
            not _shows(self._printed, lines) and command.startswith(_READING) and time.monotonic() < deadline
        ):
            self._shell(command)
        if _shows(self._printed, lines):
            return
        assert self._running, "\n".join([command, "printed", *self._printed, "and not", *lines])
        self._running[-1].prints(lines)


def _recipe_of_make_up() -> str:
    found = _MAKE_UP.search((ROOT / "Makefile").read_text())
    assert found, "make up runs no moorage up"
    return found[1]


def _shows(printed: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether lines are among those that were printed, in the same order."""
    left = iter(printed)
    return all(any(_is_like(line, wanted) for line in left) for wanted in expected)


def _is_like(line: str, wanted: str) -> bool:
    wanted = wanted.replace(_FIXED_ADDRESS, "127.0.0.1:…")
    return re.fullmatch(".*".join(map(re.escape, wanted.split("…"))), line) is not None
