# SPDX-License-Identifier: Apache-2.0
"""What mypy takes each expression of a source file for, and what was declared; both are what mypyc compiles by."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from mypy import build
from mypy.expandtype import expand_type_by_instance
from mypy.main import process_options
from mypy.maptype import map_instance_to_supertype
from mypy.nodes import (
    CallExpr,
    Context,
    Decorator,
    Expression,
    IndexExpr,
    IntExpr,
    MemberExpr,
    MypyFile,
    NameExpr,
    OverloadedFuncDef,
    RefExpr,
    StrExpr,
    SymbolNode,
    TypeInfo,
    UnaryExpr,
    Var,
)
from mypy.server.subexpr import get_subexpressions
from mypy.subtypes import is_same_type
from mypy.typeops import make_simplified_union, tuple_fallback
from mypy.types import CallableType, Instance, TupleType, Type, TypeVarType, UnionType, get_proper_type

Place = tuple[int, int, int | None, int | None]
"""First line and column, last line and column: as ast has them."""

RUNS_NOTHING_OF_OURS: Final = frozenset(
    {"builtins", "collections", "_collections_abc", "enum", "struct", "_struct", "time", "typing"}
)
"""Modules whose functions and methods call nothing back, unless they get a function."""


@dataclass
class Typed:
    """One file."""

    narrowed: dict[Place, tuple[str, str]] = field(default_factory=dict)
    """Expressions that mypy takes for something else than their declaration says: (what, declaration)."""
    harmless: set[Place] = field(default_factory=set)
    """Calls, and iterables of loops, that run no code of ours."""


def typed(files: Sequence[Path], root: Path) -> Mapping[Path, Typed]:
    """Check the files as `make lint` does, with mypy's settings in `root`; takes some ten seconds.

    Raises AssertionError where mypy finds errors.
    """
    before = Path.cwd()
    os.chdir(root)  # mypy names modules by their path from here
    try:
        sources, options = process_options(["--config-file", "pyproject.toml", *map(str, files)])
        options.export_types = options.preserve_asts = True
        options.incremental = False
        options.cache_dir = os.devnull
        result = build.build(sources, options)
    finally:
        os.chdir(before)
    assert not result.errors, result.errors
    return {
        Path(source.path): _typed(result.files[source.module], result.types)
        for source in sources
        if source.path is not None
    }


def _typed(file: MypyFile, types: Mapping[Expression, Type]) -> Typed:
    found = Typed()
    for expression in get_subexpressions(file):
        if isinstance(expression, CallExpr) and _is_harmless(expression, types):
            found.harmless.add(place(expression))
        if isinstance(expression, NameExpr | MemberExpr | IndexExpr) and expression in types:
            declared = _declared(expression, types)
            # What is of its owner's own kind (Self) is as its owner, and not narrowed.
            if declared is None or isinstance(declared, TypeVarType):
                continue
            if not is_same_type(types[expression], declared):
                found.narrowed[place(expression)] = str(types[expression]), str(declared)
    return found


def place(node: Context) -> Place:
    """Where an expression stands."""
    return node.line, node.column, node.end_line, node.end_column


def _instances(type_: Type | None) -> Iterable[Instance]:
    proper = get_proper_type(type_)
    if isinstance(proper, UnionType):
        for item in proper.items:
            yield from _instances(item)
    elif isinstance(proper, TupleType):
        yield tuple_fallback(proper)
    elif isinstance(proper, Instance):
        yield proper


def _declared(expression: NameExpr | MemberExpr | IndexExpr, types: Mapping[Expression, Type]) -> Type | None:
    """The type without any narrowing; None where there is none to compare with, as for methods."""
    if isinstance(expression, IndexExpr):
        found = _of_items(expression, types)
    elif isinstance(expression.node, Var) and expression.node.type is not None:
        found = [expression.node.type]
    elif isinstance(expression, MemberExpr):
        found = [
            declared
            for instance in _instances(types.get(expression.expr))
            if (declared := _of_member(instance, expression.name)) is not None
        ]
    else:
        found = []
    return make_simplified_union(found) if found else None


def _of_items(expression: IndexExpr, types: Mapping[Expression, Type]) -> list[Type]:
    """The types of a container's items; of one index or key that is written there, as no other is narrowed."""
    if not isinstance(expression.index, IntExpr | StrExpr | UnaryExpr):
        return []
    return [
        instance.args[-1]
        for instance in _instances(types.get(expression.base))
        if instance.type.fullname in ("builtins.list", "builtins.dict", "collections.deque")
    ]


def _of_member(instance: Instance, name: str) -> Type | None:
    if instance.type.is_enum and name in ("name", "value"):
        return None
    symbol = instance.type.get(name)
    node: SymbolNode | None = None if symbol is None else symbol.node
    if isinstance(node, Var) and node.type is not None and node.info is not None:
        return expand_type_by_instance(node.type, map_instance_to_supertype(instance, node.info))
    if isinstance(node, OverloadedFuncDef):
        node = node.items[0]
    if isinstance(node, Decorator) and node.func.is_property and isinstance(node.func.type, CallableType):
        return node.func.type.ret_type
    return None


def _is_harmless(call: CallExpr, types: Mapping[Expression, Type]) -> bool:
    """Whether a call runs nothing that could change an object of ours."""
    if any(isinstance(get_proper_type(types.get(argument)), CallableType) for argument in call.args):
        return False
    callee = call.callee
    if isinstance(callee, RefExpr) and callee.node is not None:
        return _only_makes(callee.node) or callee.fullname.rpartition(".")[0] in RUNS_NOTHING_OF_OURS
    if isinstance(callee, MemberExpr):
        receivers = list(_instances(types.get(callee.expr)))
        return bool(receivers) and all(
            receiver.type.module_name in RUNS_NOTHING_OF_OURS for receiver in receivers
        )
    return False


def _only_makes(node: SymbolNode) -> bool:
    """Whether it is a class whose objects are made of their fields, by no code of ours."""
    return isinstance(node, TypeInfo) and all(map(_has_no_constructor, node.mro))


def _has_no_constructor(base: TypeInfo) -> bool:
    if base.is_named_tuple or base.module_name.partition(".")[0] in ("builtins", "typing", "msgspec"):
        return True
    written = [base.names[name] for name in ("__init__", "__new__", "__post_init__") if name in base.names]
    return all(symbol.plugin_generated for symbol in written)
