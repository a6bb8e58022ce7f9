"""`moorage up` in another process, and several kubectl commands at once."""

from __future__ import annotations

import subprocess
import threading
from pathlib import Path

from tests.apiserver.running import KUBECTL_WITHIN_SECONDS, Kubectl, KubectlError, RunningServer, start_server

TIMEOUT_SECONDS = "--timeout=100s"
"""How long a wait may take on a busy machine."""


def start_cluster(folder: Path, *options: str) -> RunningServer:
    """Start `moorage up` with its files in a folder, and wait until it is up."""
    return start_server(folder, "--no-ui", *options, command="up")


def all_at_once(kubectl: Kubectl, *commands: str) -> list[str]:
    """What several commands print that run side by side; all must succeed."""
    running = [kubectl.start(*command.split()) for command in commands]
    try:
        return [finished(process) for process in running]
    finally:
        for process in running:
            end(process)


def finished(process: subprocess.Popen[str]) -> str:
    """What a command printed that must succeed by and by."""
    try:
        output, _ = process.communicate(timeout=KUBECTL_WITHIN_SECONDS)
    finally:
        end(process)
    if process.returncode:
        raise KubectlError(f"{process.args!r} did not succeed:\n{output}")
    return output


def line_with(process: subprocess.Popen[str], text: str) -> str:
    """The next line of a running command that contains a text; the command must not end before."""
    assert process.stdout is not None
    # Whoever says nothing is ended, which ends the lines, too.
    patience = threading.Timer(KUBECTL_WITHIN_SECONDS, process.kill)
    patience.start()
    try:
        for line in process.stdout:
            if text in line:
                return line
    finally:
        patience.cancel()
    raise KubectlError(f"{process.args!r} ended without saying {text!r}")


def end(process: subprocess.Popen[str]) -> None:
    """End a command, if it has not ended by itself."""
    process.kill()
    process.communicate()
