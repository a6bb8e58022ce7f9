"""A page of documentation that is executed as it is written, by a reader who follows it step by step.

Code blocks that the text before them names (`berth.py`) become files; other Python is run, other blocks of
data are left alone. Lines of console blocks that begin with `$` are run in order, in one folder; a
here-document goes up to its end. What goes on (`moorage up`, `moorage run`) does so until there is another
cluster, until the text says "Ctrl-C in the terminal of `moorage run`", or until the end. A text block, or
lines below a command, show lines of what the last command printed, or of what was started last and still
runs, in their order; `…` stands for any text. What differs between two runs (`VARYING`) and the widths of
columns do not count. When a watched plugin was edited, it is waited for. Commands that read (`READING`) are
repeated until they print what is shown.

Only ports are not as written: they are free ones. `make up` is the command of its recipe. `NEVER_RUN` is
left out.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

ROOT = Path(__file__).parent.parent.parent
TIMEOUT_SECONDS = 60

VARYING: Mapping[str, str] = {
    r"(?<!\S)(\d+[dhms])+(?!\S)": "AGE",
    r"(?<=\w)(-[bcdfghjklmnpqrstvwxz2456789]{5,10})+(?![-a-z0-9])": "-HASH",
    r"127\.0\.0\.1:\d+": "127.0.0.1:PORT",
    r"\?token=\S+": "?token=TOKEN",
    r"/\S+/moorage\.kubeconfig": "/FOLDER/moorage.kubeconfig",
    r"(?<!\S)\d\d:\d\d:\d\d\.\d+": "TIME",
    r"I\d{4} \S+ +\d+ (?=\w+\.py:)": "LOGGED ",
    r"(?<=\.py:)\d+(?=\])": "LINE",
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z": "TIME",
}
"""What differs between two runs, as patterns of text, and what stands for it."""

NEVER_RUN = ("docker ", "pip install ", "pipx ", "kubectl port-forward ")
"""How commands begin that need a builder of images, a package index, or a network of pods."""

READING = (
    "kubectl describe ",
    "kubectl get ",
    "kubectl logs ",
    "moorage attempts ",
    "moorage explain ",
    "moorage queue ",
)
"""How commands begin that only read: what they show may come a moment later."""

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w+)\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)
_FILE_NAME = re.compile(r"`([\w.-]+\.(?:py|yaml))`[^`]*:$")
_HERE_DOCUMENT = re.compile(r"<<-?\s*['\"]?(\w+)")
_COMMENT = re.compile(r"\s{2,}# .*$")
_CTRL_C = re.compile(r"Ctrl-C in\s+the\s+terminal\s+of\s+`([^`]+)`")
_MAKE_UP = re.compile(r"^\t@exec \$\(BIN\)/(moorage up .*) \$\(UP\)$", re.MULTILINE)
_ASKS_SCHEDULER = ("moorage attempts ", "moorage queue ")
_THE_PAGE = "The page is at"


class Block(NamedTuple):
    """A code block, and the text before it."""

    language: str
    text: str
    before: str


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass
class Command:
    """A command that the reader runs, with what the page shows of its output."""

    text: str
    shown: list[str] = field(default_factory=list)


@dataclass
class Program:
    """Python that the reader runs, with what the page shows of its output."""

    text: str
    shown: list[str] = field(default_factory=list)


@dataclass
class Interrupt:
    """Ctrl-C in the terminal of a command that goes on, with what it says in the end."""

    command: str
    shown: list[str] = field(default_factory=list)


Step = File | Command | Program | Interrupt


class Lasting(NamedTuple):
    """A command that goes on: what it says when it is ready, and what makes it leave fixed ports alone.

    Without such words, it is ready when it says so at the port that it gets.
    """

    ready: str
    free_ports: str


LASTING: Mapping[str, Lasting] = {
    "moorage up": Lasting("is up at", "--port 0 --no-ui"),
    "moorage run --shadow": Lasting("", "--secure-port {port}"),
    "moorage run": Lasting("Successfully acquired lease", "--secure-port {port}"),
    "moorage apiserver": Lasting(" API at ", "--port 0"),
}
"""Commands that go on, by how they begin; the first that fits counts."""


def section(page: str, heading: str) -> str:
    """What is under a heading of the second level."""
    found = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"there is no section {heading}"
    return found[1]


def blocks(text: str) -> Iterator[Block]:
    """All code blocks, in order, without what they are indented by."""
    end = 0
    for found in _FENCE.finditer(text):
        code = re.sub(f"^{found['indent']}", "", found["text"], flags=re.MULTILINE)
        yield Block(found["language"], code, text[end : found.start()].strip())
        end = found.end()


def steps(text: str) -> list[Step]:
    """What the reader of a text does, in order."""
    found: list[Step] = []
    for block in blocks(text):
        found += [Interrupt(command) for command in _CTRL_C.findall(block.before)]
        name = _FILE_NAME.search(block.before)
        if block.language == "console":
            found += commands(block.text)
        elif block.language == "text":
            if not found:  # It shows what no command prints.
                continue
            last = found[-1]
            assert isinstance(last, Command | Program | Interrupt), f"what prints this?\n{block.text}"
            last.shown += block.text.splitlines()
        elif name is not None:
            found.append(File(name[1], block.text))
        elif block.language == "python":
            found.append(Program(block.text))
    return found


def commands(text: str) -> Iterator[Command]:
    """The commands of a console block."""
    lines = iter(text.splitlines())
    command: Command | None = None
    for line in lines:
        if not line.startswith("$ "):
            assert command is not None, f"this is no command: {line}"
            command.shown.append(line)
            continue
        if command is not None:
            yield command
        command = Command(line.removeprefix("$ "))
        begun = _HERE_DOCUMENT.search(command.text)
        while command.text.endswith("\\"):
            command.text += f"\n{next(lines)}"
        while begun is not None and not command.text.endswith(f"\n{begun[1]}"):
            command.text += f"\n{next(lines)}"
    if command is not None:
        yield command


class Background:
    """A command that goes on."""

    def __init__(
        self,
        command: str,
        lasting: Lasting,
        folder: Path,
        environment: Mapping[str, str],
        shown: Sequence[str],
    ) -> None:
        self.port = port = _free_port()
        ports = lasting.free_ports.format(port=port)
        if any(_THE_PAGE in line for line in shown):
            ports = ports.replace("--no-ui", "--ui-port 0")
        self.command = command
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {_COMMENT.sub('', command)} {ports}"],
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
        if lasting.ready:
            self.prints([f"…{lasting.ready}…"])
        else:
            self._await_readiness(port)

    def _await_readiness(self, port: int) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self._is_over and time.monotonic() < deadline:
            with suppress(OSError), urlopen(f"https://127.0.0.1:{port}/readyz", context=_ANY_CERTIFICATE):
                return
            time.sleep(0.1)
        raise AssertionError("\n".join([f"{self.command} was not ready", *self._output]))

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
        assert self.comes_to_print(lines, after), "\n".join(
            [f"{self.command} did not say", *lines, "but", *self._output]
        )

    def comes_to_print(self, lines: Sequence[str], after: int = 0) -> bool:
        """Whether it says these lines before long."""
        with self._received:
            self._received.wait_for(
                lambda: self._is_over or shows(self._output[after:], lines), TIMEOUT_SECONDS
            )
            return shows(self._output[after:], lines)

    @property
    def line_count(self) -> int:
        """How much it has said."""
        return len(self._output)

    def end(self) -> None:
        """Ask it to end, as Ctrl-C does, and see that it ends well."""
        self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(TIMEOUT_SECONDS)
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
    """One page, being executed in a folder.

    programs: the folders where commands are looked for first; by default those of the tests' own environment.
    not_run: how further commands begin that are left out.
    """

    def __init__(
        self, folder: Path, programs: Sequence[Path] = (), not_run: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self._environment = {
            "HOME": str(folder),
            "PATH": os.pathsep.join(
                [*map(str, programs or [Path(sys.executable).parent]), os.environ.get("PATH", os.defpath)]
            ),
            "COLUMNS": "100",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "TERM": "dumb",
        }
        self._never_run = (*NEVER_RUN, *(not_run or {}))
        self._running: list[Background] = []
        self._printed: list[str] = []
        self.commands: list[str] = []
        """What the page has asked for so far."""
        self.not_run: list[str] = []
        """What of that was left out."""

    @classmethod
    def in_a_clone(cls, folder: Path, not_run: Mapping[str, str] | None = None) -> Play:
        """For a page whose reader has a clone of the repository, in which `make setup` has run."""
        (folder / ".venv").symlink_to(sys.prefix)
        for name in ("bench", "examples", "tests"):
            (folder / name).symlink_to(ROOT / name)
        played = cls(folder, not_run=not_run)
        played.uses_cluster(folder / "moorage.kubeconfig")
        return played

    def uses_cluster(self, kubeconfig: Path) -> None:
        """Have commands use a cluster, without a word of the page about it."""
        self._environment["KUBECONFIG"] = str(kubeconfig)

    def play(self, text: str) -> None:
        """Execute all blocks of a text, and end what still runs."""
        try:
            for step in steps(text):
                self.follow(step)
            while self._running:
                self._running.pop().end()
        finally:
            for running in self._running:
                running.kill()

    def follow(self, step: Step) -> None:
        """Do one step, and see that what is shown is what comes."""
        match step:
            case File():
                (self.folder / step.name).write_text(step.text)
            case Program():
                self._run(["python", "-c", step.text])
                self._expect(step.text, step.shown)
            case Interrupt():
                self._interrupt(step)
            case Command():
                self._command(step)

    def here(self, command: str) -> str:
        """A command with what is elsewhere on this machine."""
        return command

    def _interrupt(self, step: Interrupt) -> None:
        (found,) = (each for each in self._running if each.command.startswith(step.command))
        before = found.line_count
        found.end()
        self._running.remove(found)
        found.prints(step.shown, before)

    def _command(self, step: Command) -> None:
        self.commands.append(step.text)
        if step.text.startswith(self._never_run):
            self.not_run.append(step.text)
            return
        command = self.here(_recipe_of_make_up() if step.text == "make up" else step.text)
        lasting = next((each for kind, each in LASTING.items() if command.startswith(kind)), None)
        if lasting is not None:
            self._end_those_before(command)
            running = Background(command, lasting, self.folder, self._environment, step.shown)
            self._running.append(running)
            running.prints(step.shown)
        elif command.startswith("export "):
            self._export(command)
        else:
            command += self._scheduler_port(command)
            self._run_and_reload(command)
            self._expect(command, step.shown)

    def _scheduler_port(self, command: str) -> str:
        """For commands that read a scheduler at its usual port: the port that it has here."""
        schedulers = [each for each in self._running if each.command.startswith("moorage run")]
        if not command.startswith(_ASKS_SCHEDULER) or not schedulers:
            return ""
        return f" --scheduler https://127.0.0.1:{schedulers[-1].port}"

    def _run_and_reload(self, command: str) -> None:
        """Run a command; where it changes a plugin that is watched, wait for that to be read again."""
        plugins = self._plugin_files()
        line_counts = [running.line_count for running in self._running]
        self._shell(command)
        changed = {name for name, text in self._plugin_files().items() if plugins.get(name, text) != text}
        for name in changed:
            for running, after in zip(self._running, line_counts, strict=True):
                if "--watch" in running.command:
                    running.prints([f"…{name} reloaded"], after)

    def _export(self, command: str) -> None:
        """Set variables, for all commands that follow."""
        self._shell(f"{command}; env -0")
        named = dict(each.split("=", 1) for each in "\n".join(self._printed).split("\0") if "=" in each)
        self._environment |= {name: named[name] for name in re.findall(r"(\w+)=", command)}

    def _end_those_before(self, command: str) -> None:
        """A second cluster takes the place of the first, and of all that worked in it."""
        if command.startswith("moorage up"):
            while self._running:
                self._running.pop().end()

    def _plugin_files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.folder.glob("*.py")}

    def _shell(self, command: str) -> None:
        self._run(["bash", "-o", "pipefail", "-c", command])

    def _run(self, command: list[str]) -> None:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}{done.stderr}"
        self._printed = [line.rstrip() for line in done.stdout.splitlines()]

    def _expect(self, command: str, lines: Sequence[str]) -> None:
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not shows(self._printed, lines) and command.startswith(READING) and time.monotonic() < deadline:
            self._shell(command)
        if shows(self._printed, lines):
            return
        lasting = self._running[-1:]
        assert any(each.comes_to_print(lines) for each in lasting), "\n".join(
            [command, "printed", *self._printed, "and not", *lines]
        )


_ANY_CERTIFICATE = ssl._create_unverified_context()
"""A scheduler's certificate is made by itself."""


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def _recipe_of_make_up() -> str:
    found = _MAKE_UP.search((ROOT / "Makefile").read_text())
    assert found, "make up runs no moorage up"
    return found[1]


def shows(printed: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether lines are among those that were printed, in the same order."""
    left = iter(printed)
    return all(any(_is_like(line, wanted) for line in left) for wanted in expected)


def _is_like(line: str, wanted: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, _usual(wanted).split("…"))), _usual(line)) is not None


def _usual(line: str) -> str:
    """A line without what differs between two runs."""
    for pattern, name in VARYING.items():
        line = re.sub(pattern, name, line)
    return " ".join(line.split())
