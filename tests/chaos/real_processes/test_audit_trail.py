"""What is found in an audit log: writes of processes without the lease, and pods that were bound twice."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from moorage.api.manifests import micro_timestamp
from moorage_cluster.chaos.real_processes.audit_trail import AuditTrail

Line = tuple[float, int, str]
"""Seconds, number of the process, and what it did."""

REFERENCES = {
    "renew": ("update", {"resource": "leases", "name": "kube-scheduler"}, 200),
    "ask": ("get", {"resource": "leases", "name": "kube-scheduler"}, 200),
    "create lease": ("create", {"resource": "leases"}, 201),
    "lose": ("update", {"resource": "leases", "name": "kube-scheduler"}, 409),
    "bind": ("create", {"resource": "pods", "subresource": "binding", "name": "p"}, 201),
    "conflict": ("create", {"resource": "pods", "subresource": "binding", "name": "p"}, 409),
    "status": ("patch", {"resource": "pods", "subresource": "status", "name": "p"}, 200),
    "event": ("create", {"resource": "events"}, 201),
    "read": ("list", {"resource": "pods"}, 200),
}


def encoded(line: Line) -> bytes:
    at, number, what = line
    verb, reference, code = REFERENCES[what]
    event = {
        "verb": verb,
        "user": {"username": f"system:serviceaccount:kube-system:scheduler-{number}"},
        "responseStatus": {"code": code},
        "requestReceivedTimestamp": micro_timestamp(datetime.fromtimestamp(at, UTC)),
        "objectRef": reference,
    }
    return msgspec.json.encode(event) + b"\n"


def found(path: Path, lines: Sequence[Line], pauses: Sequence[tuple[float, float]] = ()) -> list[str]:
    failures: list[str] = []
    trail = AuditTrail(path, failures.append, pauses=list(pauses))
    path.write_bytes(b"".join(map(encoded, lines)))
    trail.read()
    return failures


CASES: dict[str, tuple[list[Line], list[str]]] = {
    "the holder writes": ([(10.0, 0, "create lease"), (11.0, 0, "bind"), (12.0, 0, "status")], []),
    "every renewal counts": ([(10.0, 0, "renew"), (13.0, 0, "renew"), (16.9, 0, "bind")], []),
    "a standby reads and tells": ([(10.0, 0, "renew"), (11.0, 1, "read"), (11.0, 1, "event")], []),
    "the next holder writes": ([(10.0, 0, "renew"), (15.0, 1, "renew"), (15.1, 1, "bind")], []),
    "after the lease": (
        [(10.0, 0, "renew"), (14.75, 0, "bind")],
        ["scheduler process 0 did create pods/p binding 0.750 s after its lease ended"],
    ),
    "after a renewal that failed": (
        [(10.0, 0, "renew"), (13.0, 0, "lose"), (14.75, 0, "status")],
        ["scheduler process 0 did patch pods/p status 0.750 s after its lease ended"],
    ),
    "while another holds the lease": (
        [(10.0, 0, "renew"), (14.0, 1, "renew"), (14.1, 0, "bind")],
        ["scheduler process 0 did create pods/p binding when another held the lease"],
    ),
    "a standby that never led": (
        [(10.0, 0, "renew"), (11.0, 1, "bind")],
        ["scheduler process 1 did create pods/p binding and never held the lease"],
    ),
    "an attempt that was refused counts, too": (
        [(10.0, 0, "renew"), (11.0, 1, "conflict")],
        ["scheduler process 1 did create pods/p binding and never held the lease"],
    ),
    "bound twice": (
        [(10.0, 0, "renew"), (11.0, 0, "bind"), (11.1, 0, "bind")],
        ["pod p was bound 2 times"],
    ),
    "a binding that was refused is none": (
        [(10.0, 0, "renew"), (11.0, 0, "bind"), (11.1, 0, "conflict")],
        [],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_writes(name: str, tmp_path: Path) -> None:
    lines, failures = CASES[name]
    assert found(tmp_path / "audit.log", lines) == failures


@pytest.mark.parametrize(
    ("pause", "is_excused"), [((12.0, 13.0), True), ((14.0, float("inf")), True), ((8.0, 9.0), False)]
)
def test_a_request_that_waited_for_the_server_may_come_late(
    tmp_path: Path, pause: tuple[float, float], is_excused: bool
) -> None:
    failures = found(tmp_path / "audit.log", [(10.0, 0, "renew"), (15.0, 0, "bind")], [pause])
    assert bool(failures) != is_excused


def test_who_asks_for_the_lease_is_a_candidate(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    path.write_bytes(b"".join(map(encoded, [(10.0, 0, "renew"), (11.0, 1, "ask"), (11.0, 2, "read")])))
    failures: list[str] = []
    trail = AuditTrail(path, failures.append)
    trail.read()
    assert failures == []
    names = {user.rpartition(":")[2] for user in trail.candidates}
    assert names == {"scheduler-0", "scheduler-1"}


def test_a_line_that_is_not_complete_is_read_when_it_is(tmp_path: Path) -> None:
    path = tmp_path / "audit.log"
    failures: list[str] = []
    trail = AuditTrail(path, failures.append)
    trail.read()  # There is no file yet.
    line = encoded((10.0, 0, "bind"))
    path.write_bytes(line[:20])
    trail.read()
    assert failures == []
    with path.open("ab") as log:
        log.write(line[20:])
    trail.read()
    assert len(failures) == 1
