"""The modules of a package as syntax trees, and what texts their expressions can be."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import product
from pathlib import Path

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False)
class Module:
    """A module's syntax tree."""

    path: Path
    tree: ast.Module = field(repr=False)

    @cached_property
    def _functions(self) -> dict[ast.AST, Function | None]:
        """The innermost function around each node."""
        found: dict[ast.AST, Function | None] = {self.tree: None}
        waiting: list[ast.AST] = [self.tree]
        while waiting:
            node = waiting.pop()
            function = node if isinstance(node, Function) else found[node]
            for child in ast.iter_child_nodes(node):
                found[child] = function
                waiting.append(child)
        return found

    def around(self, node: ast.AST) -> Iterator[Function]:
        """The functions that a node is in, the innermost first."""
        function = self._functions[node]
        while function is not None:
            yield function
            function = self._functions[function]

    @cached_property
    def calls(self) -> list[ast.Call]:
        """All calls, in the order of lines."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, ast.Call)]
        return sorted(found, key=lambda call: (call.lineno, call.col_offset))


@cache
def module_of(path: Path) -> Module:
    """The module in a file."""
    return Module(path, ast.parse(path.read_text("utf-8")))


def modules(folder: Path, containing: str) -> list[Module]:
    """The modules below a folder with some text in them; others are not parsed, which takes long."""
    texts = {path: path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}
    return [module_of(path) for path, text in texts.items() if containing in text]


def texts_of(module: Module, node: ast.expr) -> list[str]:
    """The texts that an expression can be; what is inserted at run time is shown in braces.

    Names are followed to their assignments, and parameters to the calls in the module.
    """
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=values):
            return _joined(module, values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return ["".join(each) for each in product(texts_of(module, left), texts_of(module, right))]
        case ast.IfExp(body=body, orelse=other):
            return [*texts_of(module, body), *texts_of(module, other)]
        case ast.Name(id=name):
            found = [text for value in _values(module, node, name) for text in texts_of(module, value)]
            return list(dict.fromkeys(found)) or [f"{{{name}}}"]
    return [f"{{{ast.unparse(node)}}}"]


def words_of(module: Module, node: ast.expr) -> tuple[str, ...]:
    """The texts of a tuple, which may have a name."""
    values = _values(module, node, node.id) if isinstance(node, ast.Name) else [node]
    items = [item for value in values if isinstance(value, ast.Tuple) for item in value.elts]
    return tuple(text for item in items for text in texts_of(module, item))


def _joined(module: Module, values: list[ast.expr]) -> list[str]:
    parts = [
        _inserted(module, value.value) if isinstance(value, ast.FormattedValue) else texts_of(module, value)
        for value in values
    ]
    return ["".join(each) for each in product(*parts)]


def _inserted(module: Module, node: ast.expr) -> list[str]:
    """A value in an f-string: its texts if they are constants, else the expression."""
    found = texts_of(module, node)
    return [f"{{{ast.unparse(node)}}}"] if any("{" in text for text in found) else found


def _values(module: Module, node: ast.AST, name: str) -> list[ast.expr]:
    """The expressions that a name stands for where it is read."""
    for function in module.around(node):
        if found := _assigned(function, name):
            return found
        positions = [each.arg for each in function.args.args]
        if name in positions or name in [each.arg for each in function.args.kwonlyargs]:
            return list(_given(module, function, name, positions))
    return _assigned(module.tree, name)


def _assigned(scope: ast.AST, name: str) -> list[ast.expr]:
    """What is assigned to a name; not to itself, as by `text += more`."""
    found = []
    for node in ast.walk(scope):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found.append(value)
            case ast.Assign(targets=[ast.Tuple(elts=targets)], value=ast.Tuple(elts=values)):
                pairs = zip(targets, values, strict=True)
                found += [value for target, value in pairs if ast.unparse(target) == name]
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                found.append(value)
            case ast.NamedExpr(target=ast.Name(id=target), value=value) if target == name:
                found.append(value)
    return found


def _given(module: Module, function: Function, name: str, positions: list[str]) -> Iterator[ast.expr]:
    """The arguments for a parameter in calls of a function of the same module."""
    for call in module.calls:
        called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if called != function.name:
            continue
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        skipped = int(positions[:1] == ["self"])
        index = positions.index(name) - skipped if name in positions else len(call.args)
        if (value := named.get(name)) is not None:
            yield value
        elif 0 <= index < len(call.args):
            yield call.args[index]
