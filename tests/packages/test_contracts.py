"""The scheduler never imports the laptop cluster: `make lint` checks it, and it can fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
LINTER: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
(FORBIDDEN,) = (each for each in LINTER["contracts"] if each.get("forbidden_modules") == ["moorage_cluster"])
IMPORTED = "moorage_cluster.apiserver.embedded"
IMPORTERS = ("scheduler.process", "services.serving", "plugins.node_name", "http.serving", "api.pod")


def write(folder: Path, module: str, imported: str = "") -> None:
    """Add a module, and the packages above it, to a project."""
    path = folder.joinpath(*module.split(".")).with_suffix(".py")
    path.parent.mkdir(parents=True, exist_ok=True)
    for parent in path.relative_to(folder).parents[:-1]:
        (folder / parent / "__init__.py").touch()
    path.write_text(f"import {imported}\n" if imported else "")


def checked(folder: Path) -> subprocess.CompletedProcess[str]:
    """What import-linter says of a project under the contract."""
    write(folder, IMPORTED)
    head = f"[tool.importlinter]\nroot_packages = {json.dumps(LINTER['root_packages'])}\n"
    fields = [f"{name} = {json.dumps(value)}" for name, value in FORBIDDEN.items()]
    (folder / "pyproject.toml").write_text("\n".join((head, "[[tool.importlinter.contracts]]", *fields)))
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_imports_of_the_laptop_cluster_break_the_contract(tmp_path: Path) -> None:
    for module in IMPORTERS:
        write(tmp_path, f"moorage.{module}", IMPORTED)
    done = checked(tmp_path)
    assert done.returncode == 1
    for module in IMPORTERS:
        assert f"moorage.{module} -> {IMPORTED}" in done.stdout


def test_a_project_without_them_keeps_it(tmp_path: Path) -> None:
    write(tmp_path, "moorage.api.pod")
    done = checked(tmp_path)
    assert "1 kept, 0 broken" in done.stdout, done.stdout + done.stderr


def test_there_are_no_exceptions() -> None:
    assert "ignore_imports" not in FORBIDDEN
