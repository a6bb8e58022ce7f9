"""Write `src/moorage/emulation/feature_gates_MINOR.txt` from a checkout of Kubernetes.

    python tools/feature_gates.py --upstream ~/kubernetes --minor 1.37

A gate is as its newest specification says. They are literals of one form, so they are read as text.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

FILES = (
    "pkg/features/kube_features.go",
    "staging/src/k8s.io/apiextensions-apiserver/pkg/features/kube_features.go",
    "staging/src/k8s.io/apiserver/pkg/features/kube_features.go",
    "staging/src/k8s.io/client-go/features/known_features.go",
    "staging/src/k8s.io/component-base/logs/api/v1/kube_features.go",
    "staging/src/k8s.io/component-base/metrics/features/kube_features.go",
    "staging/src/k8s.io/component-base/zpages/features/kube_features.go",
)
"""The files with the gates that kube-scheduler knows; dependencies are in the first."""
TARGET = Path(__file__).parents[1] / "src/moorage/emulation"
HEAD = """\
# Every feature gate that kube-scheduler v{minor} knows: its name, stage and default; `locked` where that
# cannot be changed; and after `needs` the gates without which it cannot be on.
AllAlpha ALPHA off
AllBeta BETA off
"""

_COMMENT = re.compile(r"//.*")
_NAME = re.compile(r'^\s*(\w+) +(?:(?:featuregate\.)?Feature )?= "(\w+)"', re.MULTILINE)
_GATE = re.compile(r"^\t+(?:\w+\.)?(\w+): +\{\n((?:.*\n)*?)\t+\},?\n", re.MULTILINE)
_SPEC = re.compile(r"Default: (true|false).*?PreRelease: (?:featuregate\.)?(\w+)")
_DEPENDENCIES = "defaultKubernetesFeatureGateDependencies = "
_NEEDS = re.compile(r"^\t(?:\w+\.)?(\w+): +\{(.*?)\},", re.MULTILINE | re.DOTALL)
_OTHER_GATE = re.compile(r"(\w+)\)?(?:,|\s*$)")
_NEEDS_MINIMUM = "MinCompatibilityVersion"
"""Specifications for clusters without older components, which is not the default."""


def gates(upstream: Path) -> Iterator[tuple[str, str]]:
    """The constant of every gate, with its stage and default."""
    for file in FILES:
        text = _COMMENT.sub("", (upstream / file).read_text("utf-8")).partition(_DEPENDENCIES)[0]
        for constant, body in _GATE.findall(text):
            specs = [line for line in body.splitlines() if _NEEDS_MINIMUM not in line]
            found = [(_SPEC.search(line), "LockToDefault: true" in line) for line in specs]
            newest = [(spec, is_locked) for spec, is_locked in found if spec is not None]
            if newest:
                spec, is_locked = newest[-1]
                default = "on" if spec[1] == "true" else "off"
                yield constant, f"{spec[2].upper()} {default}{' locked' if is_locked else ''}"


def needs(upstream: Path) -> Iterator[tuple[str, list[str]]]:
    """The constant of every gate that depends on others, with theirs."""
    text = _COMMENT.sub("", (upstream / FILES[0]).read_text("utf-8")).partition(_DEPENDENCIES)[2]
    for constant, body in _NEEDS.findall(text.partition("\n}\n")[0]):
        if body.strip():
            yield constant, _OTHER_GATE.findall(body)


def names(upstream: Path) -> dict[str, str]:
    """The names of gates by constant, where a constant is text."""
    return dict(name for file in FILES for name in _NAME.findall((upstream / file).read_text("utf-8")))


def lines(upstream: Path) -> list[str]:
    """A line for each gate; a gate is in several files if another component switches it, too."""
    name_of = names(upstream)
    needed = {
        constant: f" needs {' '.join(name_of.get(other, other) for other in others)}"
        for constant, others in needs(upstream)
    }
    return sorted(
        {f"{name_of.get(each, each)} {values}{needed.get(each, '')}\n" for each, values in gates(upstream)}
    )


def main() -> None:
    """Write the list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--upstream", type=Path, required=True, help="the checkout")
    parser.add_argument("--minor", required=True, help="its minor version, such as 1.37")
    given = parser.parse_args()
    target = TARGET / f"feature_gates_{given.minor}.txt"
    target.write_text(HEAD.format(minor=given.minor) + "".join(lines(given.upstream)), encoding="utf-8")


if __name__ == "__main__":
    main()
