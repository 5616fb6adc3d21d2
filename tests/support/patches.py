# SPDX-License-Identifier: Apache-2.0
"""Finds where a test changes or opens up what is not its own: modules by patches, asyncio's insides, types by casts."""

import ast
import asyncio
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

PRODUCT: Final = ("audit", "coordinator", "protocol", "storage")
PATCHES: Final = frozenset({"setattr", "delattr"})


class Find(NamedTuple):
    """What a test should be given instead."""

    line: int
    what: str


def finds(source: str) -> list[Find]:
    """All of a source, in order of lines."""
    tree = ast.parse(source)
    modules, ours = _imported(tree)
    found: set[Find] = set()
    for node in ast.walk(tree):
        found |= {Find(node.lineno, what) for what in _in(node, modules, ours)}  # type: ignore[attr-defined]  # only nodes that have lines yield
    return sorted(found)


def _in(node: ast.AST, modules: set[str], ours: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield from _of_import(node)
    elif isinstance(node, ast.Call):
        yield from _of_call(node, modules, ours)
    elif isinstance(node, ast.Attribute):
        is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
        if not is_own and node.attr in _private_of_asyncio():
            yield f"a private attribute as of asyncio: {ast.unparse(node)}"
        if isinstance(node.ctx, ast.Store | ast.Del) and ast.unparse(node.value) in modules:
            yield f"a module is changed: {ast.unparse(node)}"


def _of_import(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    names = [each.name for each in node.names]
    if isinstance(node, ast.ImportFrom):
        names = [f"{node.module}.{name}" for name in names]
    if any(name.startswith("unittest.mock") for name in names):
        yield "unittest.mock"


def _of_call(node: ast.Call, modules: set[str], ours: set[str]) -> Iterator[str]:
    function = node.func
    if isinstance(function, ast.Attribute) and function.attr in PATCHES:
        yield f"a patch: {ast.unparse(node)[:60]}"
    name = function.id if isinstance(function, ast.Name) else ""
    if name in PATCHES and node.args and ast.unparse(node.args[0]) in modules:
        yield f"a module is changed: {ast.unparse(node)[:60]}"
    if name == "cast" and node.args and {each.id for each in _names(node.args[0])} & ours:
        yield f"a cast into a type of ours: {ast.unparse(node)[:60]}"


def _names(node: ast.expr) -> Iterator[ast.Name]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    return (each for each in ast.walk(node) if isinstance(each, ast.Name))


def _imported(tree: ast.AST) -> tuple[set[str], set[str]]:
    """The names of modules, and those that come from the product."""
    modules, ours = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {each.asname or each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PRODUCT:
            names = {each.asname or each.name for each in node.names}
            ours |= names
            modules |= {name for name in names if name.islower()}  # not a class, nor a constant
    return modules, ours


@cache
def _private_of_asyncio() -> frozenset[str]:
    """Every private attribute that an object of asyncio has."""
    return frozenset(
        node.attr
        for file in Path(asyncio.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
        if node.attr.startswith("_") and not node.attr.startswith("__")
    )
