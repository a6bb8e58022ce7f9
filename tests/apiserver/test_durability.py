"""What `--data-dir` promises: no acknowledged write is lost, whenever the process dies."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kubernetes import client
from typer.testing import CliRunner
from urllib3.exceptions import HTTPError

from moorage.cli.main import app
from moorage_cluster.apiserver.embedded import Settings
from moorage_cluster.apiserver.journal import JournalError, SqliteJournal
from moorage_cluster.cli import apiserver
from tests.apiserver.client import Cluster, configmap, owned, owner
from tests.apiserver.extensions.definitions import crd, widget
from tests.apiserver.python_client.connecting import connected
from tests.apiserver.running import RunningServer, start_server

WRITERS = 3
KILLS = 3
ROUNDS = int(os.environ.get("MOORAGE_KILL_ROUNDS", "1"))
"""How often the whole test is done, each time with other moments; more on request."""
MAPS = "/api/v1/namespaces/default/configmaps"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@dataclass
class Acknowledged:
    """What one writer was told: the last version and content of each of its objects, None if deleted."""

    objects: dict[str, tuple[str, dict[str, str]] | None] = field(default_factory=dict)
    unsure: str = ""
    """What the last request, which was never answered, was about."""


class Writer(threading.Thread):
    """Creates, updates and deletes config maps until the server is gone."""

    def __init__(self, server: RunningServer, number: int, life: int, counted: threading.Semaphore) -> None:
        super().__init__()
        self._server = server
        self._random = Random(f"{number} {life}")
        self._prefix = f"w{number}-{life}"
        self._counted = counted
        self.acknowledged = Acknowledged()
        self.failure: BaseException | None = None

    def run(self) -> None:
        with connected(self._server) as api:
            core = client.CoreV1Api(api)
            try:
                for step in range(1_000_000):
                    self._write(core, step)
                    self._counted.release()
            except BaseException as error:
                if not _is_connection_lost(error):
                    self.failure = error

    def _write(self, core: client.CoreV1Api, step: int) -> None:
        objects = self.acknowledged.objects
        living = [name for name, state in objects.items() if state is not None]
        action = self._random.choice(("create", "create", "update", "delete")) if living else "create"
        content = {"step": str(step), "filler": "x" * self._random.randrange(2000)}
        if action == "create":
            name = self.acknowledged.unsure = f"{self._prefix}-{step}"
            body = {"metadata": {"name": name}, "data": content}
            made = core.create_namespaced_config_map("default", body)
            objects[name] = (made.metadata.resource_version, content)
        elif action == "update":
            name = self.acknowledged.unsure = self._random.choice(living)
            state = objects[name]
            assert state is not None
            body = {"metadata": {"name": name, "resourceVersion": state[0]}, "data": content}
            made = core.replace_namespaced_config_map(name, "default", body)
            objects[name] = (made.metadata.resource_version, content)
        else:
            name = self.acknowledged.unsure = self._random.choice(living)
            core.delete_namespaced_config_map(name, "default")
            objects[name] = None
        self.acknowledged.unsure = ""


def _is_connection_lost(error: BaseException) -> bool:
    """Whether a request ended because the server is gone.

    For a TLS connection that ends in the middle of a record, the client makes an ApiException without a body,
    and fails to decode that.
    """
    if isinstance(error, AttributeError):
        cause = error.__context__
        return isinstance(cause, client.ApiException) and cause.status == 0
    return isinstance(error, (HTTPError, OSError))


@contextmanager
def killable_server(folder: Path, *options: str) -> Iterator[RunningServer]:
    """A server that is killed in the end, if not before."""
    server = start_server(folder, *options)
    try:
        yield server
    finally:
        server.kill()


def killed_while_writing(server: RunningServer, life: int, random: Random) -> list[Acknowledged]:
    """Let writers write, and kill the server after some number of writes, or a moment after."""
    counted = threading.Semaphore(0)
    writers = [Writer(server, number, life, counted) for number in range(WRITERS)]
    for writer in writers:
        writer.start()
    for _ in range(random.randrange(20, 200)):
        assert counted.acquire(timeout=60)
    server.process.send_signal(signal.SIGKILL)
    for writer in writers:
        writer.join()
        assert writer.failure is None, writer.failure
    return [writer.acknowledged for writer in writers]


def check(server: RunningServer, acknowledged: list[Acknowledged]) -> int:
    """See that all that was told is so; the answer is the server's revision."""
    with connected(server) as api:
        found = client.CoreV1Api(api).list_namespaced_config_map("default")
    stored = {item.metadata.name: item for item in found.items}
    newest = 0
    for each in acknowledged:
        for name, state in each.objects.items():
            if name == each.unsure:
                continue  # Its last write may have happened or not.
            if state is None:
                assert name not in stored, f"{name} is back"
                continue
            version, content = state
            assert name in stored, f"{name} is lost"
            assert stored[name].metadata.resource_version == version
            assert stored[name].data == content
            newest = max(newest, int(version))
    revision = int(found.metadata.resource_version)
    assert revision >= newest
    return revision


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_acknowledged_write_is_lost(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    options = ("--data-dir", str(tmp_path / "data"))
    acknowledged: list[Acknowledged] = []
    for life in range(KILLS + 1):
        with killable_server(tmp_path, *options) as server:
            revision = check(server, acknowledged)
            with connected(server) as api:
                body = {"metadata": {"name": f"life-{life}"}}
                made = client.CoreV1Api(api).create_namespaced_config_map("default", body)
            assert int(made.metadata.resource_version) > revision
            if life < KILLS:
                acknowledged += killed_while_writing(server, life, random)
    assert sum(len(each.objects) for each in acknowledged) > 20


def test_secrets_and_custom_resources_survive(tmp_path: Path) -> None:
    options = ("--data-dir", str(tmp_path / "data"))
    with killable_server(tmp_path, *options) as server, connected(server) as api:
        first = server.kubeconfig.read_text().replace(server.url, "")
        client.ApiextensionsV1Api(api).create_custom_resource_definition(crd())
        customs = client.CustomObjectsApi(api)
        made = customs.create_namespaced_custom_object(
            "example.com", "v1", "default", "widgets", widget(spec={"x": "y"})
        )
        issued = client.CoreV1Api(api).create_namespaced_service_account_token(
            "default", "default", {"spec": {}}
        )
    with killable_server(tmp_path, *options) as server, connected(server) as api:
        assert server.kubeconfig.read_text().replace(server.url, "") == first
        customs = client.CustomObjectsApi(api)
        address = ("example.com", "v1", "default", "widgets")
        assert customs.get_namespaced_custom_object(*address, "w") == made
        changed = customs.patch_namespaced_custom_object(*address, "w", {"spec": {"x": "z"}})
        assert int(changed["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        review = client.V1TokenReview(spec=client.V1TokenReviewSpec(token=issued.status.token))
        answer = client.AuthenticationV1Api(api).create_token_review(review)
        assert answer.status.authenticated


# -- within one process: what had begun goes on


def restarted(cluster: Cluster, settings: Settings) -> Cluster:
    cluster.close()
    return Cluster(settings)


def test_what_was_being_deleted_goes_after_a_restart(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    cluster = Cluster(settings)
    cluster.create("/api/v1/namespaces", {"metadata": {"name": "a"}})
    cluster.create(DEFINITIONS, crd())
    held = {"finalizers": ["example.com/slow"]}
    first = cluster.create(MAPS, configmap("owner"))
    dependent = owned(configmap("dependent"), owner(first, blockOwnerDeletion=True))
    for path, obj in (
        (MAPS, dependent),
        ("/api/v1/namespaces/a/configmaps", configmap("m", "a")),
        (WIDGETS, widget()),
    ):
        obj["metadata"] |= held
        cluster.create(path, obj)
    cluster.delete(f"{MAPS}/owner", {"propagationPolicy": "Foreground"})
    cluster.delete("/api/v1/namespaces/a")
    cluster.delete(f"{DEFINITIONS}/widgets.example.com")
    cluster = restarted(cluster, settings)
    for path in (f"{MAPS}/dependent", "/api/v1/namespaces/a/configmaps/m", f"{WIDGETS}/w"):
        released = cluster.patch(path, "merge", {"metadata": {"finalizers": None}})
        assert released.code == 200, path
    for path in (f"{MAPS}/owner", "/api/v1/namespaces/a", f"{DEFINITIONS}/widgets.example.com"):
        assert not cluster.exists(path), path
    assert cluster.get(WIDGETS).code == 404
    cluster.close()


def test_dependents_whose_owner_went_last_go_after_a_restart(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    cluster = Cluster(settings)
    first = cluster.create(MAPS, configmap("owner"))
    cluster.create(MAPS, owned(configmap("dependent"), owner(first)))
    cluster.close()
    journal = SqliteJournal(tmp_path)
    journal.delete("/configmaps", ("default", "owner"), journal.revision + 1)
    journal.close()
    cluster = Cluster(settings)
    cluster.get(MAPS)
    cluster.server.start()
    cluster.advance(0)
    assert not cluster.exists(f"{MAPS}/dependent")
    cluster.close()


def test_watchers_of_before_a_restart_list_again(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    cluster = Cluster(settings)
    before = cluster.get(MAPS)["metadata"]["resourceVersion"]
    latest = cluster.create(MAPS, configmap("a"))["metadata"]["resourceVersion"]
    cluster = restarted(cluster, settings)
    assert cluster.get(MAPS, watch="1", resourceVersion=before).code == 410
    watcher = cluster.watch(MAPS, resourceVersion=latest)
    cluster.create(MAPS, configmap("b"))
    assert watcher.seen() == [("ADDED", "b")]
    cluster.close()


def test_full_disk_refuses_a_write_and_no_later_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(Settings(data_dir=tmp_path))
    journal = cluster.server._journal
    assert journal is not None
    connection = journal._connection
    (pages,) = connection.execute("PRAGMA page_count").fetchone()
    connection.execute(f"PRAGMA max_page_count = {pages}")
    revision = cluster.server.store.revision
    refused = cluster.post(MAPS, configmap("big", data="x" * 500_000))
    assert refused.code == 500
    reason = "cannot write to the data directory: database or disk is full"
    assert refused.message == f"Internal error occurred: {reason}"
    (record,) = caplog.records  # And no stack.
    assert record.getMessage() == f"cannot write to {tmp_path}/objects.db: database or disk is full"
    assert record.exc_info is None
    assert not cluster.exists(f"{MAPS}/big")
    assert cluster.server.store.revision == revision
    connection.execute("PRAGMA max_page_count = 1000000")
    cluster.create(MAPS, configmap("big", data="x" * 500_000))
    cluster = restarted(cluster, Settings(data_dir=tmp_path))
    assert cluster.exists(f"{MAPS}/big")
    cluster.close()


def test_what_follows_from_a_deletion_is_done_when_the_disk_has_room_again(tmp_path: Path) -> None:
    cluster = Cluster(Settings(data_dir=tmp_path))
    journal = cluster.server._journal
    assert journal is not None
    execute = journal._connection.execute
    first = cluster.create(MAPS, configmap("owner"))
    cluster.create(MAPS, owned(configmap("dependent"), owner(first)))
    cluster.create(DEFINITIONS, crd())
    cluster.create(WIDGETS, widget())

    def refuse_writes(*_: object) -> None:
        execute("PRAGMA query_only = ON")

    cluster.server.store.listeners.append(refuse_writes)
    for path in (f"{MAPS}/owner", f"{DEFINITIONS}/widgets.example.com"):
        execute("PRAGMA query_only = OFF")
        assert cluster.delete(path).code == 200
    assert cluster.exists(f"{MAPS}/dependent")
    assert cluster.exists(f"{WIDGETS}/w")
    cluster.server.store.listeners.remove(refuse_writes)
    execute("PRAGMA query_only = OFF")
    cluster.advance(10)
    assert not cluster.exists(f"{MAPS}/dependent")
    assert not cluster.exists(f"{DEFINITIONS}/widgets.example.com")
    cluster.close()


# -- a server that cannot start says why in one line


def refused_start(folder: Path, *options: str) -> str:
    command = [sys.executable, "-m", "moorage", "apiserver", "--kubeconfig", str(folder / "refused")]
    if "--port" not in options:
        command += ["--port", "0"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1, done
    assert done.stdout == ""
    assert done.stderr.startswith("moorage apiserver: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.rstrip()


def test_taken_data_directory_and_taken_port(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with start_server(tmp_path, "--data-dir", data) as server:
        output = refused_start(tmp_path, "--data-dir", data)
        assert output == f"moorage apiserver: cannot use {data}/objects.db: another process uses it"
        port = server.url.rpartition(":")[2]
        output = refused_start(tmp_path, "--port", port)
        assert output == f"moorage apiserver: cannot listen on 127.0.0.1:{port}: address already in use"
        with connected(server) as api:
            assert client.VersionApi(api).get_code().major == "1"


def newer(folder: Path) -> None:
    SqliteJournal(folder).close()
    with sqlite3.connect(folder / "objects.db") as database:
        database.execute("PRAGMA user_version = 9")
    database.close()


def garbage(folder: Path) -> None:
    folder.mkdir()
    (folder / "objects.db").write_bytes(b"no database " * 1000)


def a_folder(folder: Path) -> None:
    (folder / "objects.db").mkdir(parents=True)


def a_file(folder: Path) -> None:
    folder.write_text("")


def bad_object(folder: Path) -> None:
    SqliteJournal(folder).close()
    with sqlite3.connect(folder / "objects.db") as database:
        database.execute("INSERT INTO object VALUES ('/pods', 'default', 'a', 5, 0, ?)", (b'{"kind": "P',))
    database.close()


def changed(statement: str, folder: Path) -> None:
    cluster = Cluster(Settings(data_dir=folder))
    cluster.create(MAPS, configmap("a", data="x"))
    cluster.close()
    with sqlite3.connect(folder / "objects.db") as database:
        database.execute(statement)
    database.close()


def log_cut_off_behind_a_checkpoint(folder: Path) -> None:
    """A log whose pages are in the database already, without the last of them: there a is deleted."""
    first = folder / "first"
    cluster = Cluster(Settings(data_dir=first))
    for name in ("a", *(f"b-{number}" for number in range(60))):
        cluster.create(MAPS, configmap(name, data="x" * 500))
    cluster = restarted(cluster, Settings(data_dir=first))
    for number in range(20):
        cluster.create(MAPS, configmap(f"c-{number}", data="x" * 500))
    log = first / "objects.db-wal"
    size = log.stat().st_size
    cluster.delete(f"{MAPS}/a")
    assert cluster.server._journal is not None
    cluster.server._journal._connection.execute("PRAGMA wal_checkpoint")
    for name in ("objects.db", "objects.db-wal"):
        (folder / name).write_bytes((first / name).read_bytes())
    cluster.close()
    os.truncate(folder / "objects.db-wal", size)


def log_without_its_database(folder: Path) -> None:
    log_cut_off_behind_a_checkpoint(folder)
    os.truncate(folder / "objects.db", 0)


UNUSABLE: dict[str, tuple[Any, str]] = {
    "newer": (newer, "objects.db is of format 9; this moorage reads format 2"),
    "garbage": (garbage, "file is not a database"),
    "a folder in its place": (a_folder, "Is a directory"),
    "a file in its place": (a_file, "File exists"),
    "bad object": (bad_object, "/pods default/a is not what was written"),
    "another content": (
        partial(changed, "UPDATE object SET raw = CAST(replace(raw, 'x', 'y') AS BLOB) WHERE name = 'a'"),
        "/configmaps default/a is not what was written",
    ),
    "a text instead of bytes": (
        partial(changed, "UPDATE object SET raw = 'text' WHERE name = 'a'"),
        "a row is not what was written",
    ),
    "another revision": (partial(changed, "UPDATE revision SET value = 1"), "never there together"),
    "no revision": (partial(changed, "DELETE FROM revision"), "a row is not what was written"),
    "no object": (partial(changed, "DELETE FROM object WHERE name = 'a'"), "never there together"),
    "a log without its database": (log_without_its_database, "the database is empty, its log is not"),
    "a log cut off behind a checkpoint": (log_cut_off_behind_a_checkpoint, "never there together"),
}


@pytest.mark.parametrize(("spoil", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_data_directory(tmp_path: Path, spoil: Any, message: str) -> None:
    spoil(tmp_path / "data")
    with pytest.raises(JournalError) as caught:
        Cluster(Settings(data_dir=tmp_path / "data"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unusable_data_directory_ends_the_command(tmp_path: Path) -> None:
    bad_object(tmp_path / "data")
    assert "cannot read" in refused_start(tmp_path, "--data-dir", str(tmp_path / "data"))


# -- `--sync`


@pytest.mark.parametrize(("options", "is_synced"), [((), False), (("--sync",), True)])
def test_writes_are_flushed_on_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], is_synced: bool
) -> None:
    used: list[Settings] = []

    async def run(settings: Settings, *others: object) -> None:
        used.append(settings)

    monkeypatch.setattr(apiserver, "_run", run)
    result = CliRunner().invoke(app, ["apiserver", "--data-dir", str(tmp_path), *options])
    assert result.exit_code == 0, result.output
    cluster = Cluster(used[0])
    assert cluster.server._journal is not None
    (synchronous,) = cluster.server._journal._connection.execute("PRAGMA synchronous").fetchone()
    assert synchronous == (2 if is_synced else 1)
    cluster.close()


def test_nothing_to_flush() -> None:
    result = CliRunner().invoke(app, ["apiserver", "--sync"])
    assert result.exit_code == 1
    assert result.stderr == "moorage apiserver: --sync: there is nothing to flush without --data-dir\n"
