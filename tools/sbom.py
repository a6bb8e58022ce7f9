"""Write a software bill of materials: `python -m tools.sbom requirements/runtime.txt --output sbom.cdx.json`.

The format is CycloneDX JSON. Versions and hashes of all files come from the lock; the packages of this
platform and their licences come from the environment of the running interpreter. The tool uses only the
standard library, so that it runs in the image; it names no package index, and its output is reproducible.
"""

from __future__ import annotations

import argparse
import json
import sys
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from tools.locks import Locked, canonical, read_lock

PROJECT = "moorage"
_LICENSE_CLASSIFIER = "License :: OSI Approved :: "


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write what a lock installs as CycloneDX JSON.")
    parser.add_argument("lock", type=Path, help="requirements with hashes")
    parser.add_argument("--output", type=Path, required=True, help="the file to write")
    chosen = parser.parse_args()
    installed = {canonical(each.metadata["Name"]): each for each in distributions()}
    found = [each for each in read_lock(chosen.lock) if is_installed(each, installed)]
    chosen.output.write_text(json.dumps(bill(found, installed), indent=2) + "\n")
    return 0


def is_installed(locked: Locked, installed: dict[str, Distribution]) -> bool:
    """Whether the environment has a package; the others are for other platforms."""
    return locked.name in installed and installed[locked.name].version == locked.version


def bill(found: list[Locked], installed: dict[str, Distribution]) -> dict[str, Any]:
    """The document: the project, its packages, and which of them need which."""
    project = installed[PROJECT]
    known = {PROJECT, *(each.name for each in found)}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _described("application", project)},
        "components": [
            {**_described("library", installed[each.name]), "externalReferences": [_files(each)]}
            for each in found
        ],
        "dependencies": [_needs(installed[name], known, installed) for name in sorted(known)],
    }


def _described(kind: str, package: Distribution) -> dict[str, Any]:
    licences = license_of(package)
    return {
        "type": kind,
        "bom-ref": _reference(package),
        "name": canonical(package.metadata["Name"]),
        "version": package.version,
        "purl": _reference(package),
        **({"licenses": [licences]} if licences else {}),
    }


def _reference(package: Distribution) -> str:
    return f"pkg:pypi/{canonical(package.metadata['Name'])}@{package.version}"


def license_of(package: Distribution) -> dict[str, Any] | None:
    """A package's declared licence: an SPDX expression if it has one, else a name; None if it has neither."""
    metadata = package.metadata
    for expression in metadata.get_all("License-Expression", []):
        return {"expression": expression}
    approved = [each for each in metadata.get_all("Classifier", []) if each.startswith(_LICENSE_CLASSIFIER)]
    written = [*approved, *metadata.get_all("License", []), ""]
    said = written[0].removeprefix(_LICENSE_CLASSIFIER)
    name = said.strip().splitlines()[0] if said.strip() else ""
    return {"license": {"name": name}} if name else None


def _files(locked: Locked) -> dict[str, Any]:
    hashes = [{"alg": "SHA-256", "content": each} for each in locked.hashes]
    return {"type": "distribution", "url": f"pkg:pypi/{locked.name}@{locked.version}", "hashes": hashes}


def _needs(package: Distribution, known: set[str], installed: dict[str, Distribution]) -> dict[str, Any]:
    names = {canonical(_name(each)) for each in package.requires or () if "extra ==" not in each}
    return {
        "ref": _reference(package),
        "dependsOn": [_reference(installed[name]) for name in sorted(names & known)],
    }


def _name(requirement: str) -> str:
    end = next((at for at, each in enumerate(requirement) if not (each.isalnum() or each in "-_.")), None)
    return requirement[:end]


if __name__ == "__main__":
    sys.exit(main())
