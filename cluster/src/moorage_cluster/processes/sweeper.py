"""A process that briefly outlives `moorage up`: it ends the remaining processes, and removes their files.

It reads lines `+PID` and `-PID`, for process groups that have started and ended, until its input ends, which
also happens when the other process is killed. It is run as a script, and imports nothing of moorage.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from contextlib import suppress


def main() -> None:
    """Wait for the end of the input, then end all groups and remove the directory in the argument."""
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line.startswith("+") else groups.discard)(int(line[1:]))
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, signal.SIGKILL)
    shutil.rmtree(sys.argv[1], ignore_errors=True)


if __name__ == "__main__":
    main()
