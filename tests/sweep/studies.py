"""Small studies for tests."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import yaml

from moorage.sweep.plan import Plan, read_plan

WEIGHT = "profiles[0].plugins.multiPoint.enabled[NodeResourcesFit].weight"
STRATEGY = "profiles[0].pluginConfig[NodeResourcesFit].args.scoringStrategy.type"

_STUDY: dict[str, Any] = {
    "apiVersion": "moorage.io/v1alpha1",
    "kind": "Study",
    "configurations": [{"name": "default"}],
    "scenarios": [
        {
            "name": "small",
            "cluster": {"shapes": ["count=2,cpu=4,memory=8Gi,price=0.5"]},
            "workload": {"generate": {"pods": 6, "meanInterval": "30s", "cpu": ["1", "3"]}},
        }
    ],
    "objectives": [{"figure": "waitingSeconds.mean"}, {"figure": "cost"}],
}


def study(**fields: Any) -> dict[str, Any]:
    """A study of one small simulation, with some fields replaced."""
    return deepcopy({**_STUDY, **fields})


def written(folder: Path, document: Any) -> Path:
    file = folder / "study.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    return file


def planned(folder: Path, **fields: Any) -> Plan:
    return read_plan(written(folder, study(**fields)))


def parameter(name: str, path: str, **choice: Any) -> dict[str, Any]:
    return {"name": name, "path": path, **choice}
