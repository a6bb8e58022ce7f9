"""The end of a command's own process: output is written, and memory is not freed."""

from __future__ import annotations

import os
import sys

import pytest

from moorage.cli import process_end


class ProcessEndError(Exception):
    pass


def test_only_a_commands_own_process_ends(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    statuses: list[int] = []

    def exit_with(status: int) -> None:
        statuses.append(status)
        raise ProcessEndError

    monkeypatch.setattr(os, "_exit", exit_with)
    process_end.end_process()
    assert not statuses
    sys.stdout.write("the last line")
    with process_end.own_process(), pytest.raises(ProcessEndError):
        process_end.end_process()
    process_end.end_process()
    assert (statuses, capfd.readouterr().out) == ([0], "the last line")
