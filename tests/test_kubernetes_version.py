"""The Kubernetes version is written down in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import moorage
from moorage.version import KUBERNETES_MINOR, KUBERNETES_PREVIOUS_MINOR, KUBERNETES_VERSION

SOURCE = Path(moorage.__file__).parent
VERSION = re.compile(r"(v|.*/)?1\.3\d(\.\d+)?")


def versions_in(path: Path) -> Iterator[str]:
    text = path.read_text()
    if "1.3" not in text:
        return  # Parsing every module takes a second.
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VERSION.fullmatch(node.value):
            yield f"{path.relative_to(SOURCE)}:{node.lineno}: {node.value}"


def test_no_module_but_one_has_a_version_of_kubernetes() -> None:
    others = [path for path in SOURCE.rglob("*.py") if path != SOURCE / "version.py"]
    assert [found for path in others for found in versions_in(path)] == []


def test_the_minor_versions_follow_from_the_version() -> None:
    major, minor, _ = KUBERNETES_VERSION.split(".")
    assert f"{major}.{minor}" == KUBERNETES_MINOR
    assert f"{major}.{int(minor) - 1}" == KUBERNETES_PREVIOUS_MINOR
