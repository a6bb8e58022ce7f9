"""Pods in a log: at -v=10 kube-scheduler logs the answers of the API server, protobuf as a hex dump.

Those are the pods whose status it writes, and the victims of preemption. What informers receive is not
logged.
"""

from __future__ import annotations

import json
from typing import Any, Final

from moorage.api.decode import InputError, decode_object
from moorage.api.pod import Pod
from moorage.apimachinery.errors import ApiError
from moorage.apimachinery.protobuf import decode_protobuf
from moorage.apimachinery.schema.wire import wire_format

_DUMPED: Final = slice(10, 58)
"""Columns of the hexadecimal numbers in a line of a dump."""


def pod_in_body(body: str) -> Pod | None:
    """The pod in the body of an answer; None if it is something else."""
    try:
        manifest = json.loads(body) if body.startswith("{") else _from_dump(body)
        if not isinstance(manifest, dict) or manifest.get("kind") != "Pod":
            return None
        pod = decode_object(manifest, "Response Body")
        return pod if isinstance(pod, Pod) else None
    except (ValueError, ApiError, InputError):
        return None


def _from_dump(body: str) -> Any:
    first, *_ = body.splitlines() or [""]
    if b"Pod" not in _bytes(first):
        return None
    return decode_protobuf(b"".join(map(_bytes, body.splitlines())), wire_format())


def _bytes(line: str) -> bytes:
    return bytes.fromhex(line[_DUMPED])
