"""The wire format of the built-in kinds, parsed from `wire.txt` one type at a time, on first use.

`wire.txt` holds facts about Kubernetes' API and nothing else, of each version that can be emulated: lines
that only one of them has begin with its number. Its head explains the notation, which is also written here
(`render`, `merge_versions`), so that the file has exactly one form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

from moorage.emulation.kubernetes_version import DEFAULT_VERSION

NOTATION: Final = """\
# The wire format of the kinds that Kubernetes {version} has built in: facts, one field a line.
# Written by tools/wire_format.py; do not edit by hand.
#
# A type begins at the margin with its full name, and after it, where they apply
#   kind=GROUP/VERSION/KIND   what objects of this type say they are
#   atomic                    server-side apply owns it as a whole
#   untyped                   any JSON value may stand here
# A field is a name, a type and, where they apply
#   #4           its number in protobuf; #2.1 is number 1 of a message embedded as number 2
#   in=Name      the Go name of the struct it is embedded with
#   go=Name      the Go name of its type, where that is not what the type says
#   zero         its zero value is kept, because it is not the same as leaving the field out
#   required     clients must send it
#   default=JSON what leaving it out means
#   enum=A|B     the only values, with %20 for a space
#   list=map(a,b), list=set, list=atomic     how server-side apply merges a list; (a,b) identify an item
#   map=atomic, map=granular                 the same for a map or a struct
#   patch=merge(key), patch=retainKeys, ...  how a strategic merge patch merges; key finds an item
#   gate=Name    the feature gate without which a server drops it
# Types are string int32 int64 double bool bytes, Quantity IntOrString Time MicroTime, FieldsV1 RawExtension
# (any JSON), [items], {{values}} (a map with text as keys) or a type below, in full if of another package.
# A line that begins with a version, such as 1.37|, is a fact of that version alone.
"""

LEAVES: Final = {
    "Quantity": "io.k8s.apimachinery.pkg.api.resource.Quantity",
    "IntOrString": "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
    "Time": "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
    "MicroTime": "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
    "FieldsV1": "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1",
    "RawExtension": "io.k8s.apimachinery.pkg.runtime.RawExtension",
}
"""Types with a JSON form of their own, by their word in the notation."""
PRIMITIVES: Final = frozenset(("string", "int32", "int64", "double", "bool", "bytes"))
ZERO_VALUES: Final[dict[str, Any]] = {
    "string": "",
    "int32": 0,
    "int64": 0,
    "double": 0.0,
    "bool": False,
    "bytes": "",
    "list": [],
    "map": {},
}
"""The zero values, with which most fields of a type are omitted."""
_GO_PRIMITIVES: Final = {"double": "float64", "bytes": "[]uint8"}
_NO_DEFAULT: Final = object()


class TypeUse(NamedTuple):
    """The type of a field, an item or a value: a primitive, a list or map, or another type's name."""

    word: str
    """`list`, `map`, `struct`, or a primitive or leaf's own word."""
    items: TypeUse | None = None
    name: str = ""
    """`struct`: the full name."""
    types: WireFormat | None = None
    """`struct`: the format that defines it."""

    @property
    def struct(self) -> WireType:
        """The type that `struct` means."""
        assert self.types is not None, self.name
        return self.types.type(self.name)

    @property
    def go(self) -> str:
        """The default Go name of the type."""
        if self.word == "list" and self.items:
            return f"[]{self.items.go}"
        if self.word == "map" and self.items:
            return f"map[string]{self.items.go}"
        if self.word in PRIMITIVES:
            return _GO_PRIMITIVES.get(self.word, self.word)
        package, _, name = (self.name or LEAVES[self.word]).rpartition(".")
        return f"{package.rpartition('.')[2]}.{name}"


@dataclass(frozen=True, slots=True)
class WireField:
    """One field of a type."""

    name: str
    type: TypeUse
    number: tuple[int, ...] = ()
    """In protobuf; several where it is in an embedded message; none where protobuf lacks it."""
    embedded: tuple[str, ...] = ()
    """The Go names of the structs it is embedded with."""
    go: str = ""
    """The Go name of its type, as in error messages."""
    keeps_zero: bool = False
    """Whether an empty text, list or map, 0 or false differs from omitting the field."""
    required: bool = False
    default: Any = _NO_DEFAULT
    enum: tuple[str, ...] = ()
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    patch: tuple[str, ...] = ()
    """The patch strategies: merge, replace, retainKeys."""
    merge_key: str = ""
    gate: str = ""
    """The feature gate without which a server drops it."""

    @property
    def has_default(self) -> bool:
        """Whether there is a default for when it is omitted."""
        return self.default is not _NO_DEFAULT

    @property
    def go_type(self) -> str:
        """The Go name of its type."""
        return self.go or self.type.go


@dataclass(frozen=True, eq=False)
class WireType:
    """A struct, or a type of which only the name is known."""

    name: str
    fields: tuple[WireField, ...] = ()
    kinds: tuple[tuple[str, str, str], ...] = ()
    """Group, version and kind."""
    atomic: bool = False
    untyped: bool = False
    types: WireFormat | None = field(default=None, repr=False)
    """The format that it is a part of."""

    @cached_property
    def dropped(self) -> frozenset[str]:
        """The names of the fields that are dropped, because their feature gates are off."""
        gates = self.types.gates if self.types else None
        return frozenset(
            known.name
            for known in self.fields
            if known.gate and gates is not None and known.gate not in gates
        )

    @cached_property
    def by_name(self) -> dict[str, WireField]:
        """The fields by their JSON names."""
        return {known.name: known for known in self.fields}

    @property
    def package(self) -> str:
        """The full name without the last word."""
        return self.name.rpartition(".")[0]

    @property
    def short_name(self) -> str:
        """The last word of the name: the Go struct's."""
        return self.name.rpartition(".")[2]


def parse_use(text: str, package: str, types: WireFormat) -> TypeUse:
    """Parse the notation of a type in a field of a type of `package`."""
    if text[0] == "[":
        return TypeUse("list", parse_use(text[1:-1], package, types))
    if text[0] == "{":
        return TypeUse("map", parse_use(text[1:-1], package, types))
    if text in PRIMITIVES or text in LEAVES:
        return TypeUse(text)
    return TypeUse("struct", None, text if "." in text else f"{package}.{text}", types)


def render_use(use: TypeUse, package: str) -> str:
    """The reverse of `parse_use`."""
    if use.word == "list" and use.items:
        return f"[{render_use(use.items, package)}]"
    if use.word == "map" and use.items:
        return f"{{{render_use(use.items, package)}}}"
    if use.word != "struct":
        return use.word
    inside, _, name = use.name.rpartition(".")
    return name if inside == package else use.name


_WITH_KEYS: Final = re.compile(r"([\w,]+)(?:\((.*)\))?")


def _with_keys(text: str) -> tuple[str, str]:
    match = _WITH_KEYS.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is not a word with keys in parentheses")
    return match[1], match[2] or ""


def _parse_field(line: str, package: str, types: WireFormat) -> WireField:
    name, use, *facts = line.split()
    found: dict[str, Any] = {}
    for fact in facts:
        word, _, value = fact.partition("=")
        if fact[0] == "#":
            found["number"] = tuple(map(int, fact[1:].split(".")))
        elif word == "in":
            found["embedded"] = tuple(value.split("."))
        elif word == "zero":
            found["keeps_zero"] = True
        elif word == "required":
            found["required"] = True
        elif word == "default":
            found["default"] = json.loads(value)
        elif word == "enum":
            found["enum"] = tuple(value.replace("%20", " ").split("|"))
        elif word == "list":
            found["list_type"], keys = _with_keys(value)
            found["list_keys"] = tuple(filter(None, keys.split(",")))
        elif word == "patch":
            strategies, found["merge_key"] = _with_keys(value)
            found["patch"] = tuple(strategies.split(","))
        elif word == "map":
            found["map_type"] = value
        elif word in ("go", "gate"):
            found[word] = value
        else:
            raise ValueError(f"{fact!r} of field {name!r} is no known fact")
    return WireField(name, parse_use(use, package, types), **found)


def _render_field(known: WireField, package: str) -> str:
    facts = [known.name, render_use(known.type, package)]
    if known.number:
        facts.append("#" + ".".join(map(str, known.number)))
    if known.embedded:
        facts.append("in=" + ".".join(known.embedded))
    if known.go:
        facts.append(f"go={known.go}")
    if known.keeps_zero:
        facts.append("zero")
    if known.required:
        facts.append("required")
    if known.has_default:
        facts.append(f"default={json.dumps(known.default, separators=(',', ':'))}")
    if known.enum:
        facts.append("enum=" + "|".join(known.enum).replace(" ", "%20"))
    if known.list_type:
        keys = f"({','.join(known.list_keys)})" if known.list_keys else ""
        facts.append(f"list={known.list_type}{keys}")
    if known.map_type:
        facts.append(f"map={known.map_type}")
    if known.patch:
        key = f"({known.merge_key})" if known.merge_key else ""
        facts.append(f"patch={','.join(known.patch)}{key}")
    if known.gate:
        facts.append(f"gate={known.gate}")
    return "  " + " ".join(facts)


def _parse_type(block: str, types: WireFormat) -> WireType:
    head, *lines = block.splitlines()
    name, *facts = head.split()
    package = name.rpartition(".")[0]
    kinds = []
    for fact in facts:
        if fact.startswith("kind="):
            group, version, kind = fact[len("kind=") :].split("/")
            kinds.append((group, version, kind))
    fields = tuple(_parse_field(line, package, types) for line in lines)
    return WireType(name, fields, tuple(kinds), "atomic" in facts, "untyped" in facts, types)


def _render_type(wire: WireType) -> str:
    facts = [wire.name, *(f"kind={'/'.join(kind)}" for kind in wire.kinds)]
    if wire.atomic:
        facts.append("atomic")
    if wire.untyped:
        facts.append("untyped")
    return "\n".join([" ".join(facts), *(_render_field(known, wire.package) for known in wire.fields)])


def render(types: Iterable[WireType], version: str) -> str:
    """The whole file."""
    blocks = [_render_type(wire) for wire in sorted(types, key=lambda wire: wire.name)]
    return "\n\n".join([NOTATION.format(version=version).rstrip("\n"), *blocks]) + "\n"


_MARKED: Final = re.compile(r"\n(\d+\.\d+)\|(.*)")
_GAP: Final = re.compile(r"\n\n\n+")


def merge_versions(texts: Mapping[str, str]) -> str:
    """The one file of several versions, given by number: lines that not all of them have are marked."""
    by_name: dict[str, list[tuple[str, str]]] = {}
    for minor, text in texts.items():
        notation, *blocks = text.rstrip("\n").split("\n\n")
        by_name.setdefault("", []).append((minor, notation))
        for block in blocks:
            by_name.setdefault(block.split(maxsplit=1)[0], []).append((minor, block))
    return "\n\n".join(_merge_blocks(by_name[name], texts) for name in sorted(by_name)) + "\n"


def _merge_blocks(blocks: Iterable[tuple[str, str]], minors: Collection[str]) -> str:
    """The forms that a type has in some versions: its head, then the fields by name."""
    found: dict[tuple[str, str], list[str]] = {}
    for minor, block in blocks:
        for index, line in enumerate(block.split("\n")):
            place = line.split()[0] if line.startswith(" ") else f"{index:2}"
            found.setdefault((place, line), []).append(minor)
    merged: list[str] = []
    for (_, line), having in sorted(found.items(), key=lambda item: (item[0][0], item[1])):
        merged += [line] if len(having) == len(minors) else [f"{minor}|{line}" for minor in having]
    return "\n".join(merged)


def select_version(text: str, minor: str) -> str:
    """The lines of one version of the file."""
    kept = _MARKED.sub(lambda line: f"\n{line[2]}" if line[1] == minor else "", f"\n{text}")
    return _GAP.sub("\n\n", kept).strip("\n") + "\n"


@dataclass(eq=False)
class WireFormat:
    """All types, each parsed on first use."""

    text: str
    gates: frozenset[str] | None = None
    """The feature gates that are on; None: all."""
    _blocks: dict[str, str] = field(init=False, repr=False)
    _names_of_kinds: dict[tuple[str, str, str], str] = field(init=False, repr=False)
    _parsed: dict[str, WireType] = field(init=False, repr=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._blocks, self._names_of_kinds = {}, {}
        for block in self.text.rstrip("\n").split("\n\n")[1:]:
            head = block.partition("\n")[0]
            name, *facts = head.split()
            self._blocks[name] = block
            for fact in facts:
                if fact.startswith("kind="):
                    group, version, kind = fact[len("kind=") :].split("/")
                    self._names_of_kinds[group, version, kind] = name

    def __iter__(self) -> Iterator[WireType]:
        return map(self.type, self._blocks)

    def __contains__(self, name: object) -> bool:
        return name in self._blocks

    @property
    def version(self) -> str:
        """The version of Kubernetes this is the format of."""
        match = re.match(r"# .* that Kubernetes (\S+) has", self.text)
        return match[1] if match else ""

    def type(self, name: str) -> WireType:
        """A type by its full name."""
        wire = self._parsed.get(name)
        if wire is None:
            wire = self._parsed[name] = _parse_type(self._blocks[name], self)
        return wire

    def of_kind(self, group: str, version: str, kind: str) -> WireType | None:
        """The type of a kind's objects."""
        name = self._names_of_kinds.get((group, version, kind))
        return self.type(name) if name else None


@cache
def wire_format(minor: str = DEFAULT_VERSION.minor, gates: frozenset[str] | None = None) -> WireFormat:
    """The format of a version of Kubernetes, such as 1.37, with some feature gates on; None: all of them."""
    return WireFormat(select_version(Path(__file__).with_name("wire.txt").read_text(), minor), gates)
