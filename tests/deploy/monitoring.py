"""The files for Prometheus and Grafana, read."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent.parent
RULES = ROOT / "deploy/prometheus/rules.yaml"
DASHBOARD = ROOT / "deploy/grafana/moorage.json"
ALERTS = ROOT / "docs/how-to/alerts.md"
SOURCE: str = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Source"]
"""The address of the repository."""
TARGET_LABELS = {"job", "instance"}
"""Labels that Prometheus adds to every series."""


def alerts() -> list[dict[str, Any]]:
    """The alert rules."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    document: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return document


def expressions() -> dict[str, str]:
    """All expressions, by what has them."""
    return {**{rule["alert"]: rule["expr"] for rule in alerts()}, **dict(_queries())}


def _queries() -> Iterator[tuple[str, str]]:
    for panel in dashboard()["panels"]:
        for target in panel.get("targets", ()):
            yield f"{panel['title']} {target['refId']}", target["expr"]
