"""Texts that are edited in the page: read within limits, with a line for each problem."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import yaml

from moorage.admission.cluster_objects import json_copy
from moorage.api.decode import InputError
from moorage.api.yaml_reading import YamlError, YamlLimits, compose_all_yaml, load_yaml
from moorage.config.load import duplicate_keys
from moorage.http.api_error import ApiError
from moorage.ui.what_if.documents import MAX_TEXT_CHARACTERS, TextProblem

_LIMITS: Final = YamlLimits(max_nodes=20_000)
_MAX_PROBLEMS: Final = 50
_PATH: Final = re.compile(r"^(?P<path>[A-Za-z]\w*(?:\[[^\]]*\]|\.[^\s:.\[]+)*): (?P<message>.+)$", re.DOTALL)
_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_QUOTED_FIELD: Final = re.compile(r'unknown field "([^"]+)"')


class TextError(Exception):
    """A text that cannot be used."""

    def __init__(self, problems: Iterable[TextProblem]) -> None:
        super().__init__()
        self.problems = tuple(problems)[:_MAX_PROBLEMS]


class EditedText:
    """A document in YAML; TextError if it is none. of: what it is, for its problems."""

    def __init__(self, of: str, text: str) -> None:
        self._of = of
        if len(text) > MAX_TEXT_CHARACTERS:
            raise TextError([self._problem(f"longer than {MAX_TEXT_CHARACTERS} characters")])
        try:
            self._nodes = compose_all_yaml(text, _LIMITS)
            self.value: Any = json_copy(load_yaml(text, _LIMITS))
        except YamlError as error:
            raise TextError([self._problem(f"not YAML: {error.reason}", line=error.line)]) from None
        except ApiError as error:
            raise TextError([self._problem(error.message)]) from None
        self.check(duplicate_keys(self._nodes))

    def check(self, lines: Iterable[str]) -> None:
        """TextError if there are any lines, which begin with the path of a field."""
        if found := list(lines):
            raise self.rejected_for(found)

    def rejected_for(self, lines: Iterable[str]) -> TextError:
        """The problems in lines, which begin with the path of a field."""
        return TextError(map(self._located, lines))

    def rejected(self, error: InputError | ApiError) -> TextError:
        """The problems that an error names, with their lines."""
        if isinstance(error, InputError):
            return self.rejected_for([str(error)])
        causes = error.details.get("causes")
        if causes:
            return TextError(self._at(each["field"], each["message"]) for each in causes)
        fields = _QUOTED_FIELD.findall(error.message)
        if fields:
            return TextError(self._at(field, "unknown field") for field in fields)
        return TextError([self._problem(error.message)])

    def _located(self, line: str) -> TextProblem:
        found = _PATH.match(line)
        return self._problem(line) if found is None else self._at(found["path"], found["message"])

    def _at(self, path: str, message: str) -> TextProblem:
        return self._problem(message, path, _line_of(self._nodes, path))

    def _problem(self, message: str, path: str = "", line: int | None = None) -> TextProblem:
        return TextProblem(message=message, path=path, line=line, of=self._of)


def _line_of(documents: list[yaml.Node], path: str) -> int | None:
    """The line of a field, or of the innermost part of its path that is there."""
    if not documents:
        return None
    node, line = documents[0], documents[0].start_mark.line
    for index, name in _STEP.findall(path):
        found = _child(node, index, name)
        if found is None:
            break
        line, node = found
    return int(line) + 1


def _child(node: yaml.Node, index: str, name: str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.SequenceNode) and index.isdecimal() and int(index) < len(node.value):
        item = node.value[int(index)]
        return item.start_mark.line, item
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == (name or index):
                return key.start_mark.line, value
    return None
