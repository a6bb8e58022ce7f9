"""What `moorage manifests` prints, read."""

from __future__ import annotations

from typing import Any

import yaml
from typer.testing import CliRunner, Result

from moorage.cli.main import app

Manifest = dict[str, Any]


def run(*options: object) -> Result:
    return CliRunner().invoke(app, ["manifests", *map(str, options)], env={"COLUMNS": "200"})


def printed(*options: object) -> list[Manifest]:
    """The objects that the command prints, which must succeed."""
    result = run(*options)
    assert result.exit_code == 0, result.output
    return list(yaml.safe_load_all(result.stdout))


def the(objects: list[Manifest], kind: str, name: str = "moorage") -> Manifest:
    """The one object of a kind and name."""
    (found,) = (each for each in objects if each["kind"] == kind and each["metadata"]["name"] == name)
    return found


def pod_of(objects: list[Manifest], name: str = "moorage") -> Manifest:
    """The spec of a Deployment's pods."""
    spec: Manifest = the(objects, "Deployment", name)["spec"]["template"]["spec"]
    return spec
