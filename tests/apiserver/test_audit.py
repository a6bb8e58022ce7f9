"""The audit log: who asked for what, and with what result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.decode import InputError
from moorage.http.transport import Request, Response
from moorage_cluster.apiserver.audit import AuditedServer, AuditLog
from tests.apiserver.client import Cluster

MAPS = "/api/v1/namespaces/default/configmaps"


class Audited:
    """A server with an audit log."""

    def __init__(self, cluster: Cluster, path: Path) -> None:
        self.token = cluster.server.token
        self.path = path
        self.log = AuditLog(path)
        server = cluster.server
        self._server = AuditedServer(
            server.api, server.authenticator.authenticate, cluster.clock.utc_now, self.log
        )

    def ask(
        self, method: str, path: str, query: str = "", body: bytes = b"", token: str | None = None
    ) -> Response:
        """A request as the admin, or with another token."""
        headers = {
            "host": "localhost",
            "authorization": f"Bearer {self.token if token is None else token}",
            "content-type": "application/json",
            "user-agent": "test",
        }
        return self._server.answer(Request(method, path, query, headers, body))

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was logged."""
        return [msgspec.json.decode(line) for line in self.path.read_bytes().splitlines()]


@pytest.fixture
def audited(tmp_path: Path) -> Iterator[Audited]:
    cluster = Cluster()
    audited = Audited(cluster, tmp_path / "audit.log")
    yield audited
    audited.log.close()
    cluster.close()


def test_an_event_says_who_asked_for_what(audited: Audited) -> None:
    audited.ask("POST", MAPS, body=b'{"metadata": {"name": "a"}}')
    (event,) = audited.events
    del event["auditID"]
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": MAPS,
        "verb": "create",
        "user": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "userAgent": "test",
        "objectRef": {"resource": "configmaps", "namespace": "default", "apiVersion": "v1"},
        "responseStatus": {"code": 201},
        "requestReceivedTimestamp": "2026-03-01T12:00:00.000000Z",
        "stageTimestamp": "2026-03-01T12:00:00.000000Z",
    }


@pytest.mark.parametrize(
    ("method", "path", "query", "verb", "code", "stage"),
    [
        ("GET", f"{MAPS}/missing", "", "get", 404, "ResponseComplete"),
        ("GET", MAPS, "watch=1", "watch", 200, "ResponseStarted"),
        ("GET", MAPS, "limit=many", "list", 400, "ResponseComplete"),
        ("DELETE", f"{MAPS}/missing", "", "delete", 404, "ResponseComplete"),
        ("GET", "/version", "", "get", 200, "ResponseComplete"),
    ],
)
def test_refused_requests_and_watches_are_logged(
    audited: Audited, method: str, path: str, query: str, verb: str, code: int, stage: str
) -> None:
    response = audited.ask(method, path, query)
    (event,) = audited.events
    assert response.status == code
    assert (event["verb"], event["responseStatus"]["code"], event["stage"]) == (verb, code, stage)
    assert event["requestURI"] == (f"{path}?{query}" if query else path)
    assert ("objectRef" in event) == (path != "/version")


def test_a_user_that_is_not_known_has_no_name_and_tokens_are_not_logged(audited: Audited) -> None:
    assert audited.ask("GET", MAPS, token="wrong-secret").status == 401
    (event,) = audited.events
    assert event["user"] == {}
    assert "wrong-secret" not in audited.path.read_text()


def test_a_log_that_cannot_be_written_does_not_keep_requests_from_being_answered(
    audited: Audited, caplog: pytest.LogCaptureFixture
) -> None:
    with open("/dev/full", "wb") as full:
        os.dup2(full.fileno(), audited.log._file)
    assert audited.ask("GET", MAPS).status == 200
    assert caplog.messages == ["cannot write the audit log: No space left on device"]


def test_a_file_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"missing/audit\.log: cannot be written: No such"):
        AuditLog(tmp_path / "missing" / "audit.log")
