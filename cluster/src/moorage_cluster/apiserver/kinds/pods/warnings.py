"""Warnings about pods that are accepted, but may not be what the client intended."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from moorage.admission.pods.scheduling import PREFERRED_TERMS, REQUIRED_TERMS
from moorage.api.manifests import Manifest
from moorage.api.names import dns_label_problems
from moorage.api.quantity import NANO, parse_quantity
from moorage.api.text import quoted

_NO_POD: Final = "a null labelSelector results in matching no pod"
_VOLUMES: Final = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11, and disabled by default in v1.33+",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": "deprecated in v1.22, non-functional in v1.25+",
    "storageos": "deprecated in v1.22, non-functional in v1.25+",
    "quobyte": "deprecated in v1.22, non-functional in v1.25+",
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": "deprecated in v1.28, non-functional in v1.31+",
    "rbd": "deprecated in v1.28, non-functional in v1.31+",
}
_CONTAINER_LISTS: Final = ("initContainers", "containers", "ephemeralContainers")
_MAX_PORT_WARNINGS = 200
"""Maximum number of warnings about ports, more than fit in a header."""


def name_warnings(name: str) -> list[str]:
    """The warnings about a new pod's name."""
    if problems := dns_label_problems(name):
        return [
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "
            f"a DNS label is recommended: [{' '.join(problems)}]"
        ]
    return []


def spec_warnings(spec: Manifest) -> list[str]:
    """The warnings about a new pod's spec."""
    warnings: list[str] = []
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if "labelSelector" not in constraint:
            warnings.append(f"spec.topologySpreadConstraints[{index}].labelSelector: {_NO_POD}")
    for index, volume in enumerate(spec.get("volumes") or ()):
        for kind in volume:
            if kind in _VOLUMES:
                warnings.append(f"spec.volumes[{index}].{kind}: {_VOLUMES[kind]}")
    warnings += _repeated_names(spec)
    for container, path in _containers(spec):
        if variables := container.get("env"):
            warnings += _hidden_variables(variables, f"{path}.env")
        if resources := container.get("resources"):
            warnings += _fractions(resources, f"{path}.resources")
    warnings += _repeated_ports(spec)
    if spec.get("terminationGracePeriodSeconds", 0) < 0:
        warnings.append(
            "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be "
            "treated as 1"
        )
    if affinity := spec.get("affinity"):
        warnings += _terms_without_selector(affinity)
    return warnings


def _containers(spec: Manifest) -> Iterator[tuple[Manifest, str]]:
    for key in _CONTAINER_LISTS:
        for index, container in enumerate(spec.get(key) or ()):
            yield container, f"spec.{key}[{index}]"


def _repeated_names(spec: Manifest) -> list[str]:
    warnings: list[str] = []
    for field, key in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen: set[str] = set()
        for index, item in enumerate(spec.get(field) or ()):
            value = item.get(key, "")
            if value in seen:
                warnings.append(f"spec.{field}[{index}].{key}: duplicate {key} {quoted(value)}")
            seen.add(value)
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            warnings.append(f'spec.imagePullSecrets[{index}].name: invalid empty name ""')
    return warnings


def _hidden_variables(variables: list[Manifest], path: str) -> list[str]:
    warnings: list[str] = []
    seen: set[str] = set()
    for index, variable in enumerate(variables):
        name, value = variable.get("name", ""), variable.get("value", "")
        reference = f"$({name})"
        if name in seen and ("valueFrom" in variable or value == reference or reference not in value):
            warnings.append(
                f"{path}[{index}]: hides previous definition of {quoted(name)}, which may be dropped when "
                "using apply"
            )
        seen.add(name)
    return warnings


def _fractions(resources: Manifest, path: str) -> list[str]:
    return [
        f"{path}.{which}[{name}]: fractional byte value {quoted(amount)} is invalid, must be an integer"
        for name in ("memory", "ephemeral-storage")
        for which in ("limits", "requests")
        if (amount := (resources.get(which) or {}).get(name))
        and amount[-1] in "mun"
        and parse_quantity(amount) % NANO
    ]


def _repeated_ports(spec: Manifest) -> list[str]:
    warnings: list[str] = []
    by_number: dict[tuple[int, str], _Ports] = {}
    by_name: dict[str, str] = {}
    names: list[str] = []
    for container, path in _containers(spec):
        for index, port in enumerate(container.get("ports") or ()):
            where = f"{path}.ports[{index}]"
            others = by_number.setdefault((port.get("containerPort", 0), port.get("protocol", "")), _Ports())
            # Every port may overlap every other, so the number of warnings is limited.
            room = max(0, _MAX_PORT_WARNINGS - len(warnings))
            warnings += [
                f"{where}: {how} port definition with {there}"
                for how, there in others.added(port, where, room)
            ]
            if name := port.get("name"):
                if name in by_name:
                    first = by_name[name]
                    names.append(
                        f"{where}: duplicate port name {quoted(name)} with {first}, services and probes "
                        f"that select ports by name will use {first}"
                    )
                else:
                    by_name[name] = where
    return warnings + names


_HostPort = tuple[str, int]
"""The host IP and host port; empty and 0 if they are not set."""


class _Ports:
    """Ports with one number and protocol, indexed by overlap: no pair is compared without need."""

    def __init__(self) -> None:
        self._places: list[tuple[_HostPort, str]] = []
        self._same: dict[_HostPort, list[int]] = {}
        self._of_number: dict[tuple[int, bool], list[int]] = {}

    def added(self, port: Manifest, where: str, most: int) -> list[tuple[str, str]]:
        """Add a port; returns the overlap and path of the first earlier ports that it overlaps with."""
        address, number = this = port.get("hostIP", ""), port.get("hostPort", 0)
        found = self._overlapping(this, most)
        index = len(self._places)
        self._places.append((this, where))
        self._same.setdefault(this, []).append(index)
        self._of_number.setdefault((number, bool(address)), []).append(index)
        return found

    def _overlapping(self, this: _HostPort, most: int) -> list[tuple[str, str]]:
        address, number = this
        candidates: Iterable[int] = range(len(self._places))
        if number:
            of_number = self._of_number
            groups = (
                self._same.get(this, ()),
                of_number.get((number, not address), ()),
                of_number.get((0, False), ()),
                of_number.get((0, True), ()),
            )
            candidates = heapq.merge(*groups)
        found = (self._places[index] for index in islice(candidates, most))
        return [(_overlap(this, other), where) for other, where in found]


def _overlap(port: _HostPort, other: _HostPort) -> str:
    if port == other:
        return "duplicate"
    return "overlapping" if not port[1] or not other[1] else "dangerously ambiguous"


def _terms_without_selector(affinity: Manifest) -> list[str]:
    warnings: list[str] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        terms, path = affinity.get(kind) or {}, f"spec.affinity.{kind}"
        for index, term in enumerate(terms.get(REQUIRED_TERMS) or ()):
            if "labelSelector" not in term:
                warnings.append(f"{path}.{REQUIRED_TERMS}[{index}].labelSelector: {_NO_POD}")
        for index, weighted in enumerate(terms.get(PREFERRED_TERMS) or ()):
            if "labelSelector" not in (weighted.get("podAffinityTerm") or {}):
                where = f"{path}.{PREFERRED_TERMS}[{index}].podAffinityTerm.labelSelector"
                warnings.append(f"{where}: {_NO_POD}")
    return warnings
