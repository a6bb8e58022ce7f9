"""What is in a data directory is its owner's alone."""

from __future__ import annotations

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.apiserver.journal import JournalError, SqliteJournal
from tests.apiserver.client import Cluster, configmap


@pytest.fixture(autouse=True)
def careless_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(directory: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in directory.iterdir()}


def directory_with(tmp_path: Path, mode: int) -> Path:
    directory = tmp_path / "data"
    directory.mkdir()
    directory.chmod(mode)
    return directory


@pytest.mark.parametrize("existed", [False, True], ids=["new", "existed"])
def test_every_file_is_private_whatever_the_umask(tmp_path: Path, existed: bool) -> None:
    directory = directory_with(tmp_path, 0o755) if existed else tmp_path / "data"
    cluster = Cluster(Settings(directory))
    cluster.create("/api/v1/namespaces/default/configmaps", configmap("a"))
    assert {"objects.db", "objects.db-wal", "token"} <= {path.name for path in directory.iterdir()}
    assert modes(directory) == {0o600}
    cluster.close()
    assert modes(directory) == {0o600}
    assert stat.S_IMODE(directory.stat().st_mode) == (0o755 if existed else 0o700)


def test_files_that_others_could_read_are_made_private(tmp_path: Path) -> None:
    Cluster(Settings(tmp_path)).close()
    for path in tmp_path.iterdir():
        path.chmod(0o644)
    Cluster(Settings(tmp_path)).close()
    assert modes(tmp_path) == {0o600}


def test_directory_that_others_can_enter_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = directory_with(tmp_path, 0o750)
    with caplog.at_level(logging.WARNING):
        SqliteJournal(directory).close()
        assert f"run: chmod 700 {directory}" in caplog.text
        directory.chmod(0o700)
        caplog.clear()
        SqliteJournal(directory).close()
    assert not caplog.records


def test_directory_that_every_user_can_write_to_is_refused(tmp_path: Path) -> None:
    directory = directory_with(tmp_path, 0o777)
    with pytest.raises(JournalError, match=r"every user may write to the directory; run: chmod 700 "):
        SqliteJournal(directory)
    assert not list(directory.iterdir())


def test_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with pytest.raises(JournalError, match="owned by another user"):
        SqliteJournal(tmp_path)


@pytest.mark.parametrize("name", ["objects.db", "objects.db-wal", "token", "service-account.key"])
def test_symbolic_link_in_place_of_a_file_is_not_followed(tmp_path: Path, name: str) -> None:
    directory = directory_with(tmp_path, 0o700)
    target = tmp_path / "precious"
    target.write_bytes(b"")
    target.chmod(0o644)
    (directory / name).symlink_to(target)
    with pytest.raises(JournalError, match=f"{name} is a symbolic link"):
        SqliteJournal(directory)
    assert (target.read_bytes(), stat.S_IMODE(target.stat().st_mode)) == (b"", 0o644)
