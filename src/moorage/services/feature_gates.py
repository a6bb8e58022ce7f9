"""Feature gates of kube-scheduler v1.36: their defaults, the values that were set, and the result.

Most gates concern other components, or behaviour that moorage has as v1.36 has it by default. Those that
change moorage's decisions are in `config.features.Features`; `ComponentFlagz` and `ComponentStatusz` enable
two pages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from importlib.resources import files
from typing import Final, NamedTuple

from moorage.config.features import Features

_ALL_ALPHA, _ALL_BETA = "AllAlpha", "AllBeta"
_SPECIAL: Final = {_ALL_ALPHA: "ALPHA", _ALL_BETA: "BETA"}
"""Gates that set all others of a stage that are not set themselves."""
_SERVED: Final = ("ComponentFlagz", "ComponentStatusz")
_LOGGING: Final = ("LoggingAlphaOptions", "LoggingBetaOptions")
_COMPONENT: Final = "kube"
_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


class GateError(ValueError):
    """Unknown feature gates, or invalid values."""


class Gate(NamedTuple):
    """A feature gate of v1.36."""

    name: str
    stage: str
    """ALPHA, BETA, GA or DEPRECATED."""
    is_on: bool
    """The default."""
    is_locked: bool
    needs: tuple[str, ...]

    @property
    def label(self) -> str:
        """The stage's label in metrics."""
        return "" if self.stage == "GA" else self.stage


def _read() -> Iterator[Gate]:
    for line in files(__package__).joinpath("feature_gates.txt").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            head, _, needs = line.partition(" needs ")
            name, stage, default, *locked = head.split()
            yield Gate(name, stage, default == "on", bool(locked), tuple(needs.split()))


GATES: Final[Mapping[str, Gate]] = {gate.name: gate for gate in _read()}
"""All gates by name."""


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The values that were set, and the value of each gate."""

    given: Mapping[str, bool]
    enabled: Mapping[str, bool]

    def features(self) -> Features:
        """The gates that change decisions."""
        names = {name.lower(): name for name in GATES}
        return Features(
            **{field.name: self.enabled[names[field.name.replace("_", "")]] for field in fields(Features)}
        )

    def without_effect(self) -> list[str]:
        """Gates that were set to other than their default and have no effect here."""
        heeded = {field.name.replace("_", "") for field in fields(Features)}
        heeded |= {name.lower() for name in (*_SERVED, *_LOGGING)}
        return [
            name
            for name, is_on in self.given.items()
            if name.lower() not in heeded and is_on is not GATES[name].is_on
        ]


def parse_gates(texts: Iterable[str]) -> FeatureGates:
    """Parse flags (`A=true,B=false`, possibly `kube:A=true`); GateError if they are invalid."""
    given: dict[str, bool] = {}
    prefixes: set[str] = set()
    for text in texts:
        for pair in filter(None, text.split(",")):
            component, colon, bare = pair.rpartition(":")
            prefixes.add(colon and component)
            given |= _pair(bare)
    if unknown := sorted(prefixes - {"", _COMPONENT}):
        raise GateError(f"component not registered: {unknown[0]}")
    if len(prefixes) > 1:
        raise GateError(
            "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
        )
    return set_gates(given)


def _pair(text: str) -> dict[str, bool]:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise GateError(f"missing bool value for {name}")
    if value not in (*_TRUE, *_FALSE):
        raise GateError(f"invalid value of {name}={value}: neither true nor false")
    return {name: value in _TRUE}


def set_gates(given: Mapping[str, bool]) -> FeatureGates:
    """All gates, with some of them set; GateError if that is invalid."""
    for name, is_on in given.items():
        gate = GATES.get(name)
        if gate is None:
            raise GateError(f"unrecognized feature gate: {name}")
        if gate.is_locked and is_on is not gate.is_on:
            values = f"{is_on}, feature is locked to {gate.is_on}".lower()
            raise GateError(f"cannot set feature gate {name} to {values}")
    enabled = {name: gate.is_on for name, gate in GATES.items()}
    for special, stage in _SPECIAL.items():
        if special in given:
            enabled |= {name: given[special] for name, gate in GATES.items() if gate.stage == stage}
    enabled |= {name: is_on for name, is_on in given.items() if name not in _SPECIAL}
    enabled |= {special: given.get(special, False) for special in _SPECIAL}
    for name, gate in GATES.items():
        missing = [other for other in gate.needs if not enabled[other]]
        if enabled[name] and missing:
            listed = " ".join(missing)
            raise GateError(f"{name} is enabled, but depends on features that are disabled: [{listed}]")
    return FeatureGates(dict(given), enabled)


DEFAULT_GATES: Final = set_gates({})
"""The gates if nothing is set."""
