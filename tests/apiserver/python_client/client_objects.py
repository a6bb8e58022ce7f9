"""Bodies of requests, and what refusals say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from kubernetes.client import ApiException


def pod(name: str, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "main", "image": "registry.example/app:1"}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": containers, **spec},
    }


def config_map(name: str, labels: dict[str, str] | None = None, **data: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, "data": data}


def deployment(name: str, replicas: int = 1) -> dict[str, Any]:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": pod(name)["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


class Refusal:
    """What a refused request was told."""

    def __init__(self) -> None:
        self.status: dict[str, Any] = {}

    @property
    def message(self) -> str:
        return str(self.status["message"])


@contextmanager
def refused(code: int, reason: str) -> Iterator[Refusal]:
    """A request that must be refused."""
    refusal = Refusal()
    with pytest.raises(ApiException) as caught:
        yield refusal
    refusal.status = json.loads(caught.value.body)
    assert (caught.value.status, refusal.status["reason"]) == (code, reason), refusal.status
    assert (refusal.status["kind"], refusal.status["code"]) == ("Status", code)


def done(response: Any) -> int:
    """The code of a raw answer whose content does not matter."""
    response.drain_conn()
    response.release_conn()
    return int(response.status)


def names(found: Any) -> list[str]:
    return [item.metadata.name for item in found.items]
