"""The combinations of parameters that a search tries, and their values in a configuration."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import islice, product
from random import Random
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.sweep.study import GRID, Parameter, Range, Search, StudyConfiguration

_SIGNIFICANT_DIGITS: Final = 4
"""Number of digits of what is drawn from a range, so that labels and values are the same."""
_STEP: Final = re.compile(r"(?P<key>[^.\[\]]+)|\[(?P<item>[^\]]+)\]")
_PATH: Final = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[[^\]]+\])*")
_NAMES: Final = ("name", "schedulerName")
"""The fields by which an item of a list is found."""

Values = dict[str, Any]
"""The values of parameters, by name."""


def combinations(configuration: StudyConfiguration, search: Search, most: int) -> list[Values]:
    """The values of its parameters that a search tries, at most as many; equal combinations count once.

    More samples do not change the first ones, nor do other configurations.
    """
    tried = _grid if search.type == GRID else _samples
    unique = {json.dumps(each): each for each in islice(tried(configuration, search), most)}
    return list(unique.values())


def _grid(configuration: StudyConfiguration, search: Search) -> Iterator[Values]:
    names = [each.name for each in configuration.parameters]
    for values in product(*(each.values for each in configuration.parameters)):
        yield dict(zip(names, values, strict=True))


def _samples(configuration: StudyConfiguration, search: Search) -> Iterator[Values]:
    random = Random(f"{search.seed} {configuration.name}")
    for _ in range(search.samples if configuration.parameters else 1):
        yield {each.name: _drawn(each, random) for each in configuration.parameters}


def _drawn(parameter: Parameter, random: Random) -> Any:
    if parameter.range is None:
        return random.choice(parameter.values)
    value = _between(parameter.range, random.random())
    return value if parameter.range.whole else float(f"{value:.{_SIGNIFICANT_DIGITS}g}")


def _between(extent: Range, share: float) -> float:
    """The number at a share of a range; whole numbers stand for spans of length 1 that begin with them."""
    start, end = (extent.start, extent.to + 1) if extent.whole else (extent.start, extent.to)
    if extent.logarithmic:
        value = start * math.exp(share * math.log(end / start))
    else:
        value = start + share * (end - start)
    return min(int(value), int(extent.to)) if extent.whole else value


def label(values: Values) -> str:
    """The values as text: `weight=3 strategy=MostAllocated`."""
    shown = (each if isinstance(each, str) else json.dumps(each) for each in values.values())
    return " ".join(f"{name}={value}" for name, value in zip(values, shown, strict=True))


def with_values(
    manifest: Mapping[str, Any], parameters: Iterable[Parameter], values: Values
) -> dict[str, Any]:
    """A configuration with the values of parameters; InputError if it has no such place."""
    changed = deepcopy(dict(manifest))
    for each in parameters:
        _put(changed, each.path, values[each.name])
    return changed


def _put(manifest: dict[str, Any], path: str, value: Any) -> None:
    if not _PATH.fullmatch(path):
        raise InputError(path, "expected a path such as profiles[0].percentageOfNodesToScore")
    *steps, last = _STEP.finditer(path)
    place: Any = manifest
    for step in steps:
        place = place[_index(place, step, path)]
    if isinstance(place, dict) and last["key"]:
        place[last["key"]] = value
    else:
        place[_index(place, last, path)] = value


def _index(place: Any, step: re.Match[str], path: str) -> Any:
    """The key of a step in an object, or its index in a list."""
    until = path[: step.end()]
    if step["key"]:
        if not isinstance(place, dict) or step["key"] not in place:
            raise InputError(path, f"the configuration has no {until}")
        return step["key"]
    if not isinstance(place, list):
        raise InputError(path, f"{path[: step.start()]} is no list")
    return _item(place, step["item"], path, until)


def _item(items: Sequence[Any], wanted: str, path: str, until: str) -> int:
    if wanted.isdecimal() and int(wanted) < len(items):
        return int(wanted)
    names = [_name_of(each) for each in items]
    if wanted not in names:
        known = ", ".join(filter(None, names)) or f"{len(items)} without a name"
        raise InputError(path, f"the configuration has no {until}; the items there are {known}")
    return names.index(wanted)


def _name_of(item: Any) -> str:
    """The name by which an item of a list is found; empty for one that has none."""
    names = (item.get(each) for each in _NAMES) if isinstance(item, dict) else ()
    return next((each for each in names if isinstance(each, str)), "")
