"""Command lines as Kubernetes components read them: flags as data, `--leader-elect=false`, `-v=2`, `--a_b`.

A flag has a kind, which defines how its value is parsed and shown. Flags on the command line are recorded
separately from defaults, because only they override a configuration file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

from moorage.api.quantity import parse_quantity
from moorage.config.duration import Duration, parse_duration

_TRUE, _FALSE = ("1", "t", "T", "true", "TRUE", "True"), ("0", "f", "F", "false", "FALSE", "False")


class FlagError(ValueError):
    """A command line that cannot be parsed; the message is one line."""


@dataclass(frozen=True, slots=True)
class FlagType:
    """How a flag's value is parsed: from one text, or from all texts that were given for it."""

    name: str
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str
    is_repeated: bool = False
    """Whether repeated values accumulate; otherwise the last one counts."""
    bare: str = ""
    """The value of the flag if none is given; empty: it requires one."""


def _switch(text: str) -> bool:
    if text not in (*_TRUE, *_FALSE):
        raise ValueError("neither true nor false")
    return text in _TRUE


def _whole(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise ValueError("not a whole number") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError("not a number") from None


def _address(text: str) -> str:
    try:
        return str(ip_address(text.strip()))
    except ValueError:
        raise ValueError(f'failed to parse IP: "{text}"') from None


def _version(text: str) -> str:
    return text if text == "raw" or text.startswith("v") else _shown_switch(_switch(text))


def _shown_switch(value: bool) -> str:
    return "true" if value else "false"


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(_whole(word.strip()) for word in text.split(",")) if text else ()


def _shown_words(values: Sequence[Any]) -> str:
    return f"[{','.join(map(str, values))}]"


def _one(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


TEXT: Final = FlagType("string", str)
SWITCH: Final = FlagType("bool", _switch, _shown_switch, bare="true")
WHOLE: Final = FlagType("int", _whole)
NUMBER: Final = FlagType("float", _number, lambda value: f"{value:g}")
DURATION: Final = FlagType("duration", parse_duration)
ADDRESS: Final = FlagType("ip", _address)
QUANTITY: Final = FlagType("quantity", lambda text: (parse_quantity(text), text)[1])
VERSION: Final = FlagType("version", _version, bare="true")
WORDS: Final = FlagType("strings", _words, _shown_words, is_repeated=True)
NUMBERS: Final = FlagType("int32Slice", _numbers, _shown_words, is_repeated=True)
PHRASES: Final = FlagType("strings", _one, _shown_words, is_repeated=True)
"""Like WORDS, but commas do not separate values."""


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag: its name, kind, default and description."""

    name: str
    kind: FlagType
    default: str
    help: str
    note: str = ""
    """Why it has no effect; empty: it has one."""
    short: str = ""

    def read(self, text: str) -> Any:
        """The parsed value; FlagError if it is invalid."""
        try:
            return self.kind.read(text)
        except ValueError as error:
            named = f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"
            raise FlagError(f'invalid argument "{text}" for "{named}" flag: {error}') from None


class FlagValues:
    """The effective values after parsing a command line."""

    def __init__(self, flags: Iterable[Flag], given: Mapping[str, Any]) -> None:
        self._flags = {flag.name: flag for flag in flags}
        self._given = given
        self._values = {flag.name: flag.kind.read(flag.default) for flag in self._flags.values()}
        self._values.update(given)

    def is_given(self, name: str) -> bool:
        """Whether a flag was on the command line."""
        assert name in self._flags, name
        return name in self._given

    def given(self, name: str) -> Any | None:
        """A flag's value if it was on the command line, else None."""
        return self._given[name] if self.is_given(name) else None

    def text(self, name: str) -> str:
        """A text."""
        return str(self._values[name])

    def path(self, name: str) -> Path | None:
        """A file's path; None if it is empty."""
        text = self.text(name)
        return Path(text) if text else None

    def switch(self, name: str) -> bool:
        """True or false."""
        return bool(self._values[name])

    def whole(self, name: str) -> int:
        """A whole number."""
        return int(self._values[name])

    def duration(self, name: str) -> Duration:
        """A length of time."""
        return Duration(self._values[name])

    def words(self, name: str) -> tuple[str, ...]:
        """Several texts."""
        return tuple(self._values[name])

    def numbers(self, name: str) -> tuple[int, ...]:
        """Several whole numbers."""
        return tuple(self._values[name])

    def shown(self) -> dict[str, str]:
        """Every flag with its value, as components show them."""
        return {name: flag.kind.show(self._values[name]) for name, flag in sorted(self._flags.items())}

    def notes(self) -> list[str]:
        """The given flags that have no effect, each with the reason."""
        return [f"--{name}: {self._flags[name].note}" for name in self._given if self._flags[name].note]


def read_flags(flags: Sequence[Flag], words: Sequence[str], command: str) -> FlagValues:
    """The values of a command line; FlagError with the message of Kubernetes components if it is invalid."""
    given: dict[str, Any] = {}
    left_over: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if word == "--":
            left_over += rest
            break
        if not word.startswith("-") or word == "-":
            left_over.append(word)
            continue
        flag, value = _flag_of(word, flags)
        if value is None and flag.kind.bare:
            value = flag.kind.bare
        elif value is None:
            if not rest:
                raise FlagError(f"flag needs an argument: {word}")
            value = rest.pop(0)
        read = flag.read(value)
        given[flag.name] = given.get(flag.name, ()) + read if flag.kind.is_repeated else read
    if any(left_over):
        listed = " ".join(f'"{word}"' for word in left_over)
        raise FlagError(f'"{command}" does not take any arguments, got [{listed}]')
    return FlagValues(flags, given)


def _flag_of(word: str, flags: Sequence[Flag]) -> tuple[Flag, str | None]:
    """The flag that a word names (`--name`, `--name=value`, `-n`, `-n=value`, `-nvalue`), and its value."""
    if word.startswith("--"):
        name, equals, value = word[2:].partition("=")
        flag = next((flag for flag in flags if flag.name == name.replace("_", "-")), None)
        if flag is None:
            raise FlagError(f"unknown flag: --{name}")
        return flag, value if equals else None
    flag = next((flag for flag in flags if flag.short == word[1]), None)
    if flag is None:
        raise FlagError(f"unknown shorthand flag: '{word[1]}' in {word}")
    return flag, word[2:].removeprefix("=") if word[2:] else None
