"""Pods as users write them: with an image, which an API server demands of new ones."""

from __future__ import annotations

from typing import Any

from tests import builders

Manifest = dict[str, Any]


def pod(name: str, cpu: str = "100m", **fields: Any) -> Manifest:
    return builders.pod(name, containers=[builders.container({"cpu": cpu}, image="app")], **fields)
