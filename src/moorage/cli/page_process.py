"""The page as a process beside a command that has something to show: it cannot slow the command.

The page ends with the command, however that ends: it reads a pipe whose other end only the command has.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from moorage.cli.commands.ui import ANY_PORT_FLAG, END_FLAG
from moorage.cli.version_options import GATES_FLAG, VERSION_FLAG

TOKEN_VARIABLE: Final = "MOORAGE_SCHEDULER_TOKEN"
"""Environment variable with the token for the scheduler's port: command lines can be read by everybody."""
_NICENESS: Final = 5
"""Added to the niceness of this process for the page's: the command has the larger share of busy cores."""
_ENDS_WITHIN_SECONDS: Final = 5.0
_STDIN: Final = 0
_READ_BYTES: Final = 4096


@dataclass(frozen=True, slots=True)
class PageProcess:
    """What the page shows, and where."""

    kubeconfig: Path | None
    port: int
    opens: bool = False
    config: Path | None = None
    plugins: Sequence[Path] = ()
    emulated_version: str = ""
    feature_gates: Sequence[str] = ()
    """What pods are explained with: that of the scheduler."""
    scheduler: str = ""
    """The address of the scheduler's port; empty: there is none to ask."""
    token: str = ""
    """The token for that port."""

    def command(self) -> list[str]:
        """The command line."""
        words = [sys.executable, "-m", "moorage", "ui", "--port", str(self.port), ANY_PORT_FLAG, END_FLAG]
        if self.kubeconfig is not None:
            words += ["--kubeconfig", str(self.kubeconfig.absolute())]
        if self.config is not None:
            words += ["--config", str(self.config)]
        words += [f"--plugin={path}" for path in self.plugins]
        if self.emulated_version:
            words.append(f"{VERSION_FLAG}={self.emulated_version}")
        words += [f"{GATES_FLAG}={gates}" for gates in self.feature_gates]
        if self.scheduler:  # The token is worth nothing elsewhere: no certificate has to be known.
            words += ["--scheduler", self.scheduler, "--insecure-skip-tls-verify"]
        return [*words, "--open"] if self.opens else words

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs while the context lasts; it prints its address itself."""
        environment = {**os.environ, TOKEN_VARIABLE: self.token} if self.token else None
        # In a session of its own: Ctrl-C in a terminal reaches the command only, which ends the page.
        process = subprocess.Popen(
            self.command(), stdin=subprocess.PIPE, env=environment, start_new_session=True
        )
        with suppress(OSError):  # It has ended, which is said elsewhere.
            os.setpriority(os.PRIO_PROCESS, process.pid, os.nice(0) + _NICENESS)
        try:
            yield
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_ENDS_WITHIN_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def end_with_stdin() -> None:
    """Ask this process to terminate when its standard input ends."""
    threading.Thread(target=_follow_stdin, name="stdin", daemon=True).start()


def _follow_stdin() -> None:
    with suppress(OSError):  # There may be no standard input, which is as good as its end.
        while os.read(_STDIN, _READ_BYTES):
            pass
    os.kill(os.getpid(), signal.SIGTERM)
