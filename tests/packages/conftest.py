"""What is built is built once for all tests of a process."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.plugin_packages.environment import CLUSTER, ROOT, CleanEnvironment, build_wheel, environment_with

FOLDERS = {"moorage": ROOT, "moorage_cluster": CLUSTER}


@pytest.fixture(scope="package")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The wheels, by the name of their package."""
    into = tmp_path_factory.mktemp("wheels")
    return {name: build_wheel(into, folder) for name, folder in FOLDERS.items()}


@pytest.fixture(scope="package")
def installed(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> CleanEnvironment:
    """An environment with the wheels and what they say they need; its programs are in `installed.bin`."""
    folder = tmp_path_factory.mktemp("installed")
    return environment_with(folder / "environment", wheels["moorage"].parent)
