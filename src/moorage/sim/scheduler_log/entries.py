"""The entries of a structured log, in klog's text format or in JSON.

A text entry is a line, unless a value has several lines: then it is between `<` and `>`, indented by tabs.
Container runtimes put a time, a stream and a tag before each line, and divide long lines (tag `P`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

_RUNTIME_PREFIX: Final = re.compile(r"\d{4}-\d\d-\d\dT\S+ (?:stdout|stderr) (?P<tag>[FP])(?::\S+)? ")
_HEADER: Final = re.compile(r'[IWEF]\d{4} \S+\s+\d+ [^\]]+\] "')
_MESSAGE: Final = re.compile(r'((?:[^"\\]|\\.)*)"')
_JSON_MESSAGE: Final = re.compile(r'"msg":"((?:[^"\\]|\\.)*)"')
_VALUE: Final = re.compile(
    r' (?P<key>[^=\n]+)=(?P<value>"(?:[^"\\]|\\.)*"|<\n(?:\t.*\n)* >|[^\s"<]\S*|(?=\s|$))'
)
_OPEN_VALUE: Final = "=<\n"
_END_OF_VALUE: Final = " >"


@dataclass(frozen=True, slots=True)
class Entry:
    """A message with its values; references to objects are `namespace/name`."""

    message: str
    values: dict[str, str]


class EntryReader:
    """Reads the entries with certain messages. Lines of other programs are left out.

    cut_count: number of entries that are not whole, because a log ends within them.
    """

    def __init__(self, messages: Collection[str]) -> None:
        self._messages = messages
        self.cut_count = 0

    def read(self, lines: Iterable[str]) -> Iterator[Entry]:
        """The entries of a log; lines end with line feeds, except one that is cut off."""
        text = ""
        for line in _whole_lines(lines):
            if text and line.startswith(("\t", _END_OF_VALUE)):
                text += line
            else:
                self.cut_count += bool(text)
                text = line if self._is_wanted(line) else ""
            if text and not text.endswith(_OPEN_VALUE) and not line.startswith("\t"):
                yield from self._parsed(text)
                text = ""
        self.cut_count += bool(text)

    def _is_wanted(self, line: str) -> bool:
        """Whether a line begins an entry with one of the messages; counts those that are cut off."""
        if line.startswith("{"):
            found = _JSON_MESSAGE.search(line)
            is_cut = not line.endswith("}\n")
        else:
            header = _HEADER.match(line)
            found = _MESSAGE.match(line, header.end()) if header else None
            is_cut = header is not None and (found is None or not line.endswith("\n"))
        self.cut_count += is_cut
        return not is_cut and found is not None and found[1] in self._messages

    def _parsed(self, text: str) -> Iterator[Entry]:
        entry = _json_entry(text) if text.startswith("{") else _text_entry(text.removesuffix("\n"))
        if entry is None:
            self.cut_count += 1
        else:
            yield entry


def _whole_lines(lines: Iterable[str]) -> Iterator[str]:
    """Lines without what a container runtime adds."""
    begun = ""
    for line in lines:
        if (prefix := _RUNTIME_PREFIX.match(line)) is None:
            yield begun + line
            begun = ""
        elif prefix["tag"] == "P":
            begun += line[prefix.end() :].removesuffix("\n")
        else:
            yield begun + line[prefix.end() :]
            begun = ""
    if begun:
        yield begun


def _text_entry(text: str) -> Entry | None:
    """An entry in the text format; None if it is not whole."""
    header = _HEADER.match(text)
    message = _MESSAGE.match(text, header.end()) if header else None
    if message is None:
        return None
    values: dict[str, str] = {}
    at = message.end()
    while (found := _VALUE.match(text, at)) is not None:
        values.setdefault(found["key"], _text_value(found["value"]))
        at = found.end()
    return Entry(message[1], values) if at == len(text) else None


def _text_value(value: str) -> str:
    if value.startswith("<\n"):
        lines = value.removeprefix("<\n").removesuffix(_END_OF_VALUE).splitlines()
        return "\n".join(line.removeprefix("\t") for line in lines)
    try:
        return str(json.loads(value)) if value.startswith('"') else value
    except ValueError:
        return value


def _json_entry(text: str) -> Entry | None:
    """An entry in JSON; None if it is not whole."""
    try:
        fields = json.loads(text)
    except ValueError:
        return None
    return Entry(str(fields.pop("msg", "")), {key: _json_value(value) for key, value in fields.items()})


def _json_value(value: Any) -> str:
    if not isinstance(value, dict) or "name" not in value:
        return str(value)
    return f"{value['namespace']}/{value['name']}" if value.get("namespace") else str(value["name"])
