"""Objects from files with Go's template expressions in them (`template_expressions`).

A file is read and parsed once, with a placeholder for each expression. An object is made by filling in the
values where they occur.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from moorage.api.decode import InputError
from moorage.api.files import load_documents, read_text
from moorage.api.manifests import Manifest
from moorage.api.yaml_reading import (
    PLACEHOLDER,
    UnresolvedScalar,
    load_template_yaml,
    placeholder,
    resolved_scalar,
)
from moorage.bench.template_actions import BadAction, expand_template
from moorage.bench.template_expressions import FIELDS, BadExpression, number_text, parse_expression

_ACTION = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.DOTALL)
_FREE_KEYS: Final = frozenset(
    (
        "annotations",
        "labels",
        "matchLabels",
        "nodeSelector",
        "selector",
        "requests",
        "limits",
        "capacity",
        "allocatable",
        "overhead",
        "data",
        "parameters",
        "volumeAttributes",
    )
)
"""Fields that contain maps with keys chosen by the user."""


class Template:
    """A file with one object, which may depend on its index and on the count."""

    def __init__(self, text: str, where: str) -> None:
        self._where = where
        if PLACEHOLDER.search(text):
            raise InputError(where, "the characters U+E000 and U+E001 are not supported")
        pieces = _pieces(text)
        texts = list(dict.fromkeys(pieces[1::2]))
        try:
            self._expressions = [parse_expression(each) for each in texts]
        except BadExpression as error:
            raise InputError(where, str(error)) from None
        pieces[1::2] = [placeholder(texts.index(each)) for each in pieces[1::2]]
        self._base = _parsed("".join(pieces), where)
        self._fill = _filler(self._base)

    def object(self, index: int = 0, count: int = 1) -> Manifest:
        """The object at an index; read-only, since objects share what does not depend on the index."""
        if not self._expressions:
            return self._base
        fields = dict(zip(FIELDS, (index, count), strict=True))
        try:
            values = [number_text(expression(fields)) for expression in self._expressions]
        except BadExpression as error:
            raise InputError(self._where, str(error)) from None
        filled: Manifest = self._base if self._fill is None else self._fill(values)
        return filled


def _pieces(text: str) -> list[str]:
    """Alternating text and expressions, beginning and ending with text."""
    pieces, end = [], 0
    trims = False
    for action in _ACTION.finditer(text):
        before = text[end : action.start()]
        before = before.lstrip() if trims else before
        pieces += [before.rstrip() if action[1] else before, action[2].strip()]
        end, trims = action.end(), bool(action[3])
    rest = text[end:]
    return [*pieces, rest.lstrip() if trims else rest]


_Filler = Callable[[list[str]], Any]
"""Makes a value from the texts that its placeholders stand for."""


def _filler(value: Any) -> _Filler | None:
    """How a value is filled in; None if it has no placeholders."""
    if isinstance(value, dict):
        return _map_filler(value)
    if isinstance(value, list):
        return _list_filler(value)
    return _text_filler(value) if isinstance(value, str) else None


def _map_filler(value: Manifest) -> _Filler | None:
    fillers = {key: filler for key, item in value.items() if (filler := _filler(item)) is not None}
    keys = {key: filler for key in value if (filler := _filler(key)) is not None}
    if not fillers and not keys:
        return None

    def fill(values: list[str]) -> Any:
        filled = value | {key: filler(values) for key, filler in fillers.items()}
        if not keys:
            return filled
        return {keys[key](values) if key in keys else key: item for key, item in filled.items()}

    return fill


def _list_filler(value: list[Any]) -> _Filler | None:
    fillers = [_filler(item) for item in value]
    if not any(fillers):
        return None

    def fill(values: list[str]) -> Any:
        return [
            item if filler is None else filler(values) for item, filler in zip(value, fillers, strict=True)
        ]

    return fill


def _text_filler(text: str) -> _Filler | None:
    pieces: list[Any] = PLACEHOLDER.split(text)
    if len(pieces) == 1:
        return None
    pieces[1::2] = map(int, pieces[1::2])

    def fill(values: list[str]) -> str:
        return "".join([values[each] if number % 2 else each for number, each in enumerate(pieces)])

    if isinstance(text, UnresolvedScalar):
        return lambda values: resolved_scalar(fill(values))
    return fill


def _parsed(text: str, where: str) -> Manifest:
    documents = load_documents(text, where, load_template_yaml)
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError(where, "expected one object")
    found: Manifest = _as_named(documents[0])
    return found


def _as_named(value: object) -> Manifest:
    """An object with the first letters of its fields in lower case; unlike Go, servers are case-sensitive."""
    named = _named(value)
    assert isinstance(named, dict)
    return named


def _named(value: object) -> object:
    if isinstance(value, list):
        return [_named(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = {}
    for key, item in value.items():
        name = str(key)[:1].lower() + str(key)[1:]
        named[name] = item if name in _FREE_KEYS and not _is_selector(item) else _named(item)
    return named


def _is_selector(value: object) -> bool:
    """Whether this is a label selector, not a plain map in another field called `selector`."""
    return isinstance(value, dict) and any(str(key).lower() in _SELECTOR_FIELDS for key in value)


_SELECTOR_FIELDS: Final = ("matchlabels", "matchexpressions")
_NO_PARAMS: Final[Mapping[str, Any]] = {}


class Templates:
    """The templates of one workload file, each read once; paths are relative to the file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[tuple[str, str], Template] = {}

    def get(self, path: str, params: Mapping[str, Any] = _NO_PARAMS) -> Template:
        """A template with some parameters, read and validated; InputError if it is invalid."""
        key = (path, repr(params))
        template = self._read.get(key)
        if template is None:
            file = self._directory / path
            try:
                text = expand_template(read_text(file), params)
            except BadAction as error:
                raise InputError(str(file), str(error)) from None
            template = Template(text, str(file))
            template.object()
            self._read[key] = template
        return template
