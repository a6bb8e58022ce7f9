"""Forms of one installation, made comparable: what `moorage manifests` prints, the Helm chart, Kustomize."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from moorage.api.manifests import copy
from tests.manifests.grants import single
from tests.manifests.printing import Manifest

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
CHART, BASE = DEPLOY / "chart" / "moorage", DEPLOY / "kustomize" / "base"
POD_MONITOR, OVERLAYS = DEPLOY / "kustomize" / "components" / "pod-monitor", DEPLOY / "kustomize" / "overlays"
CHART_LABELS = {"app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart"}
"""Labels that only the chart's objects have, as Helm recommends them."""
DIGEST = "moorage.io/configuration"
"""The annotation that rolls a changed configuration out; in Kustomize the ConfigMap's name does."""


def program(name: str) -> str:
    """A program of the environment, or else of the system: not every platform has it in the lock."""
    installed = Path(sys.executable).with_name(name)
    found = str(installed) if installed.exists() else shutil.which(name)
    assert found is not None, f"{name} is not installed; `make setup` installs it where there is a package"
    return found


def finished(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def helm(*words: object) -> subprocess.CompletedProcess[str]:
    """What helm does without a cluster."""
    return finished([program("helm"), *map(str, words)])


def charted(name: str, namespace: str, *options: object) -> list[Manifest]:
    """The chart's objects, which must be rendered without a warning."""
    done = helm("template", name, CHART, "--namespace", namespace, *options)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return _read(done.stdout)


def with_values(folder: Path, values: Manifest) -> tuple[str, ...]:
    """The options of values."""
    path = folder / "values.json"
    path.write_text(json.dumps(values))
    return ("--values", str(path))


def kustomized(folder: Path) -> list[Manifest]:
    """The objects of a kustomization."""
    done = finished([program("kubectl"), "kustomize", str(folder)])
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return _read(done.stdout)


def _read(text: str) -> list[Manifest]:
    return [each for each in yaml.safe_load_all(text) if each]


def with_plain_config_name(objects: list[Manifest], name: str) -> list[Manifest]:
    """Objects of Kustomize with the ConfigMap's name as it is printed: without a suffix and a digest."""
    found: list[Manifest] = copy(objects)
    (files,) = (each for each in found if each["kind"] == "ConfigMap")
    (deployment,) = (each for each in found if each["kind"] == "Deployment")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]
    (volume,) = (each for each in volumes if "configMap" in each)
    assert volume["configMap"]["name"] == files["metadata"]["name"]
    assert files["metadata"]["name"].startswith(f"{name}-config-")
    files["metadata"]["name"] = volume["configMap"]["name"] = name
    return found


def comparable(objects: list[Manifest]) -> dict[tuple[str, str, str], Manifest]:
    """Objects by kind, namespace and name, without what may differ between forms.

    Rules are what they allow, a configuration is what its YAML says; the labels of charts and the digest
    of the configuration are left out.
    """
    found = {}
    for obj in copy(objects):
        meta = obj["metadata"]
        meta["labels"] = {key: value for key, value in meta["labels"].items() if key not in CHART_LABELS}
        if "rules" in obj:
            obj["rules"] = sorted(one for rule in obj["rules"] for one in single(rule))
        if obj["kind"] == "ConfigMap":
            obj["data"]["config.yaml"] = yaml.safe_load(obj["data"]["config.yaml"])
        if obj["kind"] == "Deployment":
            _without_digest(obj["spec"]["template"]["metadata"])
        found[obj["kind"], meta.get("namespace", ""), meta["name"]] = obj
    assert len(found) == len(objects)
    return found


def _without_digest(metadata: dict[str, Any]) -> None:
    if annotations := metadata.pop("annotations", None):
        del annotations[DIGEST]
        assert annotations == {}
