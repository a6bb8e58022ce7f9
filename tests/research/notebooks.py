"""Notebooks, executed in kernels of their own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from unittest import mock

import nbclient

_WITHIN_SECONDS = 300


def executed(notebook: Any, folder: Path, jupyter: Path) -> Any:
    """A notebook with its outputs, as if it was run in a folder; Jupyter's files are elsewhere.

    The kernel is `ipykernel` of this environment, whatever kernels a user has.
    """
    places = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "runtime"}
    variables = {f"JUPYTER_{name}": str(jupyter / place) for name, place in places.items()}
    variables |= {
        "HOME": str(jupyter),
        "IPYTHONDIR": str(jupyter / "ipython"),
        "JUPYTER_PLATFORM_DIRS": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    with mock.patch.dict(os.environ, variables):
        client = nbclient.NotebookClient(
            notebook,
            timeout=_WITHIN_SECONDS,
            kernel_name="python3",
            resources={"metadata": {"path": str(folder)}},
        )
        return client.execute()
