"""What programs read around them and answer with: environment variables, paths, JSON."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Final

from moorage.ui.application import API
from tools.interface.fact import Fact
from tools.interface.source import UNKNOWN, Place, called, places, texts

_DOCUMENTS: Final = {
    "moorage attempts -o json": "moorage.client.scheduler_api:AttemptList",
    "moorage bench --json": "moorage.bench.results:BenchmarkReport",
    "moorage chaos -o json": "moorage_cluster.chaos.campaign:Tally",
    "moorage chaos processes -o json": "moorage_cluster.cli.chaos_processes:Tally",
    "moorage chaos store -o json": "moorage_cluster.chaos.durability.report:Result",
    "moorage compare -o json": "moorage.comparison.results:Comparison",
    "moorage decide --json": "moorage.explain.report:Report.as_dict",
    "moorage explain -o json": "moorage.explain.document:as_document",
    "moorage plan consolidate -o json": "moorage.planning.consolidation:Consolidation",
    "moorage plan drain -o json": "moorage.planning.drain:Drain",
    "moorage plan failures -o json": "moorage.planning.failures:Failures",
    "moorage plan fit -o json": "moorage.planning.fit:Fit",
    "moorage plan nodes -o json": "moorage.planning.node_set:NodeSet",
    "moorage queue -o json": "moorage.client.scheduler_api:QueueList",
    "moorage replay --json": "moorage.cli.replay:_as_json",
    "moorage simulate -o json": "moorage.simulation.results:SimulationResult",
    "moorage soak -o json": "moorage_cluster.cli.soak:Report",
    "moorage sweep -o json": "moorage.sweep.results:SweepResult",
}
"""What each command writes: a type, or a function that makes a dictionary; of lists, what is in them."""


def environment_facts() -> Iterator[Fact]:
    """Environment variables that are read."""
    for place in places("environ"):
        for name in _variable(place):
            yield Fact(name, f"read by {place.module.name.partition('.')[0]}")


def _variable(place: Place) -> list[str]:
    match place.node:
        case ast.Call(func=ast.Attribute(value=mapping, attr="get"), args=[key, *_]):
            return texts(place, key) if _is_environment(mapping) else []
        case ast.Subscript(value=mapping, slice=key):
            return texts(place, key) if _is_environment(mapping) else []
    return []


def _is_environment(mapping: ast.expr) -> bool:
    match mapping:
        case ast.Name(id="environ") | ast.Attribute(attr="environ"):
            return True
    return False


def endpoint_facts() -> Iterator[Fact]:
    """Paths of the scheduler's own server, and of the page's; one that ends with a slash is for all below."""
    for place in places("routes(", "Feature("):
        if place.module.name.startswith("moorage."):
            yield from (Fact(path, _server(path)) for path in _paths(place) if _is_whole(path))


def _is_whole(path: str) -> bool:
    return path.startswith("/") and UNKNOWN not in path


def _server(path: str) -> str:
    return "of the page" if path.startswith(API) else "of the scheduler"


def _paths(place: Place) -> Iterator[str]:
    made_by = "" if isinstance(place.function, ast.Module) else place.function.name
    match place.node:
        case ast.Dict(keys=keys) if made_by.endswith("_routes"):
            prefix = API if made_by == "timeline_routes" else ""
            yield from (f"{prefix}{path}" for key in keys if key is not None for path in texts(place, key))
        case ast.Call(args=[ast.Constant(value=str(name)), *_]) if called(place.node) == "endpoint_routes":
            yield f"/{name}"
        case ast.Call(args=[_, ast.Dict(keys=keys), *_]) if called(place.node) == "Feature":
            yield from (f"{API}{path}" for key in keys if key is not None for path in texts(place, key))


def document_facts() -> Iterator[Fact]:
    """The fields of what commands write as JSON."""
    for command, where in _DOCUMENTS.items():
        module, _, path = where.partition(":")
        target: Any = import_module(module)
        for name in path.split("."):
            target = getattr(target, name)
        fields = _keys_made_by(target) if inspect.isfunction(target) else target.__struct_encode_fields__
        yield from (Fact(f"{command} {field}", "field") for field in fields)


def commands_with_json() -> set[str]:
    """The commands whose fields are listed."""
    return {each.removesuffix(" -o json").removesuffix(" --json") for each in _DOCUMENTS}


def _keys_made_by(function: Any) -> list[str]:
    """The keys of the dictionary that a function makes, without those of dictionaries within it."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    found: list[str] = []
    for each in ast.walk(tree):
        match each:
            case ast.Return(value=ast.Dict() as made) | ast.Assign(value=ast.Dict() as made):
                found += _texts(made)
            case ast.AnnAssign(value=ast.Dict() as made) | ast.AugAssign(value=ast.Dict() as made):
                found += _texts(made)
            case ast.Assign(targets=[ast.Subscript(slice=ast.Constant(value=str(key)))]):
                found.append(key)
    return found


def _texts(made: ast.Dict) -> list[str]:
    return [key.value for key in made.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
