"""The versions of Kubernetes are written down in one place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import moorage

SOURCE = Path(moorage.__file__).parent
TABLE = SOURCE / "emulation" / "kubernetes_version.py"
VERSION = re.compile(r"(v|.*/)?1\.3\d(\.\d+)?")


def versions_in(path: Path) -> Iterator[str]:
    text = path.read_text()
    if "1.3" not in text:
        return  # Parsing every module takes a second.
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and VERSION.fullmatch(node.value):
            yield f"{path.relative_to(SOURCE)}:{node.lineno}: {node.value}"


def test_no_module_but_one_has_a_version_of_kubernetes() -> None:
    others = [path for path in SOURCE.rglob("*.py") if path != TABLE]
    assert [found for path in others for found in versions_in(path)] == []
    assert [*versions_in(TABLE)]


def test_plugins_and_the_queue_do_not_compare_versions() -> None:
    """What differs is a field of the table: nothing that decides asks which version it is."""
    asks = re.compile(r"\.minor\b|\bV1_3\d\b|KUBERNETES_VERSIONS")
    deciding = ("plugins", "queue", "engine", "framework", "cluster", "scheduler", "config")
    found = [path for folder in deciding for path in (SOURCE / folder).rglob("*.py")]
    assert [path.name for path in found if asks.search(path.read_text())] == ["load.py"]  # In a message.
