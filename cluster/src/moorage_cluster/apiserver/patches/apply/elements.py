"""Steps of a field's path, each in the form that FieldsV1 gives it.

- `f:name`: a field of an object, or a key of a map
- `k:{"name":"x"}`: the item of a list that has these key fields
- `v:"x"`: the item of a set that has this value
- `i:0`: the item at this index

Every step has exactly one such text, so that steps are compared, and looked up, as text.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api.text import quoted
from moorage.api.text_cache import cached_by_text
from moorage.apimachinery.json_values import go_json, go_text
from moorage.apimachinery.schema.shape import Shape

_FORM_ORDER: Final = {"f": 0, "k": 1, "v": 2, "i": 3}


class MalformedError(Exception):
    """A value of the wrong shape; its text is what users see."""


def item_element(item: Any, shape: Shape) -> str:
    """What identifies an item in a list that is a set or has keys."""
    if not shape.keys:
        return f"v:{go_json(_set_item(item))}"
    if item is None:
        raise MalformedError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise MalformedError("associative list with keys may not have non-map elements")
    key = {}
    for name in shape.keys:
        if name in item:
            key[name] = item[name]
        elif (default := shape.key_defaults.get(name)) is not None:
            key[name] = default
    if not key:
        names = " ".join(quoted(name) for name in shape.keys)
        raise MalformedError(
            f"associative list with keys has an element that omits all key fields [{names}] "
            "(and doesn't have default values for any key fields)"
        )
    return _key_element(key)


def _set_item(item: Any) -> Any:
    if isinstance(item, dict):
        raise MalformedError("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise MalformedError("not supported: associative list with lists as elements")
    if item is None:
        raise MalformedError("associative list without keys has an element that's an explicit null")
    return item


def _key_element(key: dict[str, Any]) -> str:
    fields = ",".join(f"{go_json(name)}:{go_json(key[name])}" for name in sorted(key))
    return f"k:{{{fields}}}"


@cached_by_text(count=1 << 16)
def normalized(element: str) -> str | None:
    """The canonical text of an element; None if its form is unknown, MalformedError if it is invalid."""
    form, content = element[:1], element[2:]
    if element[1:2] != ":":
        raise MalformedError(f"missing colon: {element}")
    if form == "f":
        return element
    if form not in _FORM_ORDER:
        return None
    try:
        value = msgspec.json.decode(content)
    except msgspec.DecodeError as problem:
        raise MalformedError(f"parsing key as path element: {problem}") from None
    if form == "v":
        return f"v:{go_json(value)}"
    if form == "i" and type(value) is int:
        return f"i:{value}"
    if form == "k" and isinstance(value, dict):
        return _key_element(value)
    raise MalformedError(f"parsing key as path element: {element}")


@cached_by_text(count=1 << 16)
def sort_key(element: str) -> tuple[Any, ...]:
    """The sort key of an element among its siblings."""
    form, content = element[0], element[2:]
    if form == "f":
        return 0, content
    value = msgspec.json.decode(content)
    if form == "k":
        return 1, [(name, *_rank(item)) for name, item in value.items()]
    return _FORM_ORDER[form], *_rank(value)


def _rank(value: Any) -> tuple[int, Any]:
    """Numbers come first, then strings, then booleans."""
    if isinstance(value, bool):
        return 2, value
    if isinstance(value, int | float):
        return 0, value
    if isinstance(value, str):
        return 1, value
    return 3, go_json(value)


def element_text(element: str) -> str:
    """An element as messages print it: `.name`, `[name="x"]`, `[="x"]`, `[0]`."""
    form, content = element[0], element[2:]
    if form == "f":
        return f".{content}"
    value = msgspec.json.decode(content)
    if form == "k":
        return f"[{','.join(f'{name}={_value_text(item)}' for name, item in value.items())}]"
    return f"[={_value_text(value)}]" if form == "v" else f"[{value}]"


def _value_text(value: Any) -> str:
    if value is None:
        return "null"
    return quoted(value) if isinstance(value, str) else go_text(value)
