"""The bill of materials has every package that runs, with its hashes and its licence."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.markers import Marker
from packaging.requirements import Requirement

from tools import sbom
from tools.locks import canonical, read_lock

ROOT = Path(__file__).parent.parent.parent
LOCK = ROOT / "requirements" / "runtime.txt"


@pytest.fixture(scope="module")
def bill(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("sbom") / "sbom.cdx.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["sbom", str(LOCK), "--output", str(path)])
        assert sbom.main() == 0
    assert "://" not in path.read_text().replace("http://cyclonedx.org/schema/", "")
    return json.loads(path.read_text())


def test_it_is_what_the_format_allows(bill: Any) -> None:
    validator = JsonStrictValidator(SchemaVersion.from_version(bill["specVersion"]))
    assert validator.validate_str(json.dumps(bill)) is None
    assert validator.validate_str(json.dumps({**bill, "components": [{"name": "no type"}]})) is not None


def test_every_package_of_the_lock_is_in_it_with_its_hashes(bill: Any) -> None:
    locked = {
        each.name: (each.version, set(each.hashes))
        for each in read_lock(LOCK)
        if not each.marker or Marker(each.marker).evaluate()
    }
    listed = {
        each["name"]: (
            each["version"],
            {one["content"] for where in each["externalReferences"] for one in where["hashes"]},
        )
        for each in bill["components"]
    }
    assert listed == locked
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {canonical(Requirement(each).name) for each in wanted} <= listed.keys()


def test_every_package_that_says_its_licence_has_it(bill: Any) -> None:
    for each in bill["components"]:
        metadata = distribution(each["name"]).metadata
        classified = any(one.startswith("License ::") for one in metadata.get_all("Classifier", []))
        if metadata.get_all("License-Expression") or any(metadata.get_all("License", [])) or classified:
            assert each["licenses"], each["name"]
    licensed = [each for each in bill["components"] if "licenses" in each]
    assert len(licensed) == len(bill["components"])


def test_what_needs_what_is_in_it(bill: Any) -> None:
    references = {each["bom-ref"] for each in (bill["metadata"]["component"], *bill["components"])}
    needs = {each["ref"]: each["dependsOn"] for each in bill["dependencies"]}
    assert needs.keys() == references
    assert {each for some in needs.values() for each in some} == references - {
        bill["metadata"]["component"]["bom-ref"]
    }
