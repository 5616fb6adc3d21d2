# SPDX-License-Identifier: Apache-2.0
"""Finds reads that a compiled function may refuse although the source goes on.

When a function has tested or set an attribute, mypy takes it for what the test left, up to the next assignment in
that same function: calls in between that set it are not seen. mypyc compiles by that, and checks: where a call has
changed the attribute meanwhile, reading it raises TypeError in the compiled function alone.

`stale_reads` follows the ways through a function. Each mention of an attribute makes it known; a call, an await, a
yield or what else may run other code makes everything unknown again. A read that mypy takes for less than the
declaration says must be of a known one. The mend is to read into a local variable, or through a method.
"""

import ast
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from tests.compiled.typed import Typed

Known = set[str] | None
"""Mentions since which nothing else has run; None where no way leads."""


class StaleRead(NamedTuple):
    """A read that a compiled function refuses, if a call above it has changed what it reads."""

    line: int
    name: str
    narrowed: str
    declared: str


def stale_reads(source: str, typed: Typed, constant: Callable[[str], bool]) -> list[StaleRead]:
    """All of a file; `constant(name)` says whether attributes of this name are set in constructors alone."""
    nodes = list(ast.walk(ast.parse(source)))
    shared = {name for node in nodes if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    found: set[StaleRead] = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            _Function(typed, constant, shared, found).block(node.body)
        elif isinstance(node, ast.Lambda):
            _Function(typed, constant, shared, found).value(node.body)
    return sorted(found)


class Constants:
    """Which names of attributes are set in constructors alone, in all the files that are given."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._set: set[str] = set()
        for file in files:
            for function in ast.walk(ast.parse(file.read_text())):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    self._note(function)

    def _note(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if any(
            isinstance(node, ast.Name) and node.id.endswith("property") for node in function.decorator_list
        ):
            self._set.add(function.name)  # a property may say something else each time
        if function.name in ("__init__", "__post_init__"):
            return
        for node in ast.walk(function):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                self._set.add(node.attr)

    def __call__(self, name: str) -> bool:
        return name not in self._set and not name.startswith("[")


def _key(node: ast.expr) -> str | None:
    """The name of what mypy narrows: `a.b`, `a[0].b`; None for anything else."""
    at: ast.expr = node
    while not isinstance(at, ast.Name):
        if isinstance(at, ast.Subscript) and not isinstance(at.slice, ast.Constant | ast.UnaryOp):
            return None
        if not isinstance(at, ast.Subscript | ast.Attribute):
            return None
        at = at.value
    return ast.unparse(node)


def _parts(key: str) -> list[str]:
    return key.replace("[", ".[").split(".")


def _join(*ways: Known) -> Known:
    open_ways = [way for way in ways if way is not None]
    return set.intersection(*open_ways) if open_ways else None


class _Function:
    """One walk through one function, in the order in which it runs."""

    def __init__(
        self, typed: Typed, constant: Callable[[str], bool], shared: set[str], found: set[StaleRead]
    ) -> None:
        self._typed = typed
        self._constant = constant
        self._shared = shared  # variables that other functions set, too
        self._found = found
        self._known: Known = set()
        self._breaks: list[Known] = []
        self._continues: list[Known] = []

    # --- what mentions, and what runs something else ---

    def _mention(self, node: ast.Name | ast.Attribute | ast.Subscript) -> None:
        key = _key(node)
        if self._known is None:
            return
        place = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
        if place in self._typed.narrowed and (key is None or key not in self._known):
            self._found.add(StaleRead(node.lineno, ast.unparse(node), *self._typed.narrowed[place]))
        if key is not None:
            self._known.add(key)

    def _anything_may_run(self) -> None:
        if self._known is not None:
            self._known = {key for key in self._known if self._stays(_parts(key))}

    def _stays(self, parts: list[str]) -> bool:
        return parts[0] not in self._shared and all(map(self._constant, parts[1:]))

    def _is_harmless(self, node: ast.expr) -> bool:
        return (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) in self._typed.harmless

    def _set(self, target: ast.expr) -> None:
        if isinstance(target, ast.Tuple | ast.List):
            for part in target.elts:
                self._set(part)
        elif isinstance(target, ast.Starred):
            self._set(target.value)
        elif isinstance(target, ast.Name):
            self._forget(lambda parts: parts[0] == target.id)
            self._know(target)
        elif isinstance(target, ast.Attribute):
            self.value(target.value)
            self._forget(lambda parts: target.attr in parts[1:])
            self._know(target)
        elif isinstance(target, ast.Subscript):
            self.value(target.value)
            self.value(target.slice)
            self._forget(lambda parts: any(part.startswith("[") for part in parts))
            self._know(target)

    def _know(self, node: ast.expr) -> None:
        key = _key(node)
        if key is not None and self._known is not None:
            self._known.add(key)

    def _forget(self, concerned: Callable[[list[str]], bool]) -> None:
        if self._known is not None:
            self._known = {key for key in self._known if not concerned(_parts(key))}

    # --- expressions ---

    def value(self, node: ast.AST) -> None:
        """Evaluate an expression, and what it consists of before it."""
        special = getattr(self, f"_value_{type(node).__name__}", None)
        if special is not None:
            special(node)
        else:
            self._children(node)

    def _children(self, node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            self.value(child)

    def _value_Name(self, node: ast.Name) -> None:
        if node.id in self._shared:
            self._mention(node)

    def _value_Attribute(self, node: ast.Attribute) -> None:
        self.value(node.value)
        self._mention(node)

    def _value_Subscript(self, node: ast.Subscript) -> None:
        self.value(node.value)
        self.value(node.slice)
        self._mention(node)

    def _value_Call(self, node: ast.Call) -> None:
        self._children(node)
        if not self._is_harmless(node):
            self._anything_may_run()

    def _runs(self, node: ast.AST) -> None:
        self._children(node)
        self._anything_may_run()

    _value_Await = _value_Yield = _value_YieldFrom = _runs

    def _value_Lambda(self, node: ast.Lambda) -> None:
        self.value(node.args)

    def _value_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.value(node.value)
        self._set(node.target)

    def _value_BoolOp(self, node: ast.BoolOp) -> None:
        self._known = _join(*self._test(node))

    def _value_IfExp(self, node: ast.IfExp) -> None:
        holds, fails = self._test(node.test)
        self._known = holds
        self.value(node.body)
        holds, self._known = self._known, fails
        self.value(node.orelse)
        self._known = _join(holds, self._known)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> None:
        first, *others = node.generators
        self.value(first.iter)
        for _ in range(2):  # the second time with what is known when it comes round
            before = _copy(self._known)
            self._chosen(first)
            for part in others:
                self.value(part.iter)
                self._chosen(part)
            for element in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                self.value(element)
            self._known = _join(before, self._known)

    def _chosen(self, part: ast.comprehension) -> None:
        self._set(part.target)
        for test in part.ifs:
            self._known = self._test(test)[0]

    _value_ListComp = _value_SetComp = _value_DictComp = _value_GeneratorExp = _comprehension

    def _test(self, node: ast.expr) -> tuple[Known, Known]:
        """Evaluate a condition; what is known where it holds, and where it does not."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            holds, fails = self._test(node.operand)
            return fails, holds
        if isinstance(node, ast.BoolOp):
            early: list[Known] = []
            for part in node.values[:-1]:
                holds, fails = self._test(part)
                goes_on, stops = (holds, fails) if isinstance(node.op, ast.And) else (fails, holds)
                early.append(stops)
                self._known = goes_on
            holds, fails = self._test(node.values[-1])
            if isinstance(node.op, ast.And):
                return holds, _join(fails, *early)
            return _join(holds, *early), fails
        self.value(node)
        return _copy(self._known), _copy(self._known)

    # --- statements ---

    def block(self, statements: Iterable[ast.stmt]) -> None:
        """Run one statement after the other."""
        for statement in statements:
            special = getattr(self, f"_run_{type(statement).__name__}", None)
            if special is not None:
                special(statement)
            else:
                self._children(statement)

    def _run_FunctionDef(self, node: ast.stmt) -> None:
        """Its body runs at another time, and is walked through by itself."""

    _run_AsyncFunctionDef = _run_ClassDef = _run_FunctionDef

    def _run_Assign(self, node: ast.Assign) -> None:
        self.value(node.value)
        for target in node.targets:
            self._set(target)

    def _run_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.value(node.value)
            self._set(node.target)

    def _run_AugAssign(self, node: ast.AugAssign) -> None:
        self.value(node.target)
        self.value(node.value)
        self._set(node.target)

    def _run_If(self, node: ast.If) -> None:
        holds, fails = self._test(node.test)
        self._known = holds
        self.block(node.body)
        holds, self._known = self._known, fails
        self.block(node.orelse)
        self._known = _join(holds, self._known)

    def _run_Assert(self, node: ast.Assert) -> None:
        self._known = self._test(node.test)[0]

    def _leave(self, node: ast.stmt) -> None:
        self._children(node)
        self._known = None

    _run_Return = _run_Raise = _leave

    def _run_Break(self, node: ast.Break) -> None:
        self._breaks.append(self._known)
        self._known = None

    def _run_Continue(self, node: ast.Continue) -> None:
        self._continues.append(self._known)
        self._known = None

    def _run_While(self, node: ast.While) -> None:
        self._loop(node, lambda: self._test(node.test))

    def _run_For(self, node: ast.For | ast.AsyncFor) -> None:
        self.value(node.iter)
        is_stored = not isinstance(node.iter, ast.Call) or self._is_harmless(node.iter)  # else a generator

        def step() -> tuple[Known, Known]:
            if isinstance(node, ast.AsyncFor) or not is_stored:
                self._anything_may_run()
            ended = _copy(self._known)
            self._set(node.target)
            return self._known, ended

        self._loop(node, step)

    _run_AsyncFor = _run_For

    def _loop(
        self, node: ast.For | ast.AsyncFor | ast.While, step: Callable[[], tuple[Known, Known]]
    ) -> None:
        """`step` decides on one more round: what is known where there is one, and where there is none."""
        outer = self._breaks, self._continues
        entry = _copy(self._known)
        found, self._found = self._found, set()
        self._round(node, step)  # only says what is known when it comes round
        self._found = found
        self._known = _join(entry, self._known)
        self._known = self._round(node, step)
        self.block(node.orelse)
        self._known = _join(self._known, *self._breaks)
        self._breaks, self._continues = outer

    def _round(
        self, node: ast.For | ast.AsyncFor | ast.While, step: Callable[[], tuple[Known, Known]]
    ) -> Known:
        self._breaks, self._continues = [], []
        self._known, ended = step()
        self.block(node.body)
        self._known = _join(self._known, *self._continues)
        return ended

    def _run_With(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            self.value(item.context_expr)
            self._anything_may_run()
            if item.optional_vars is not None:
                self._set(item.optional_vars)
        self.block(node.body)
        self._anything_may_run()

    _run_AsyncWith = _run_With

    def _run_Try(self, node: ast.Try) -> None:
        self.block(node.body)
        self.block(node.orelse)
        ways = [self._known]
        for handler in node.handlers:
            self._known = set()  # anything may have run
            self.block(handler.body)
            ways.append(self._known)
        self._known = _join(*ways)
        if node.finalbody:
            way, self._known = self._known, set()
            self.block(node.finalbody)
            self._known = None if way is None else self._known

    _run_TryStar = _run_Try

    def _run_Match(self, node: ast.Match) -> None:
        self.value(node.subject)
        before = _copy(self._known)
        ways = [self._known]
        for case in node.cases:
            self._known = _copy(before)
            if case.guard is not None:
                self._known = self._test(case.guard)[0]
            self.block(case.body)
            ways.append(self._known)
        self._known = _join(*ways)


def _copy(known: Known) -> Known:
    return None if known is None else set(known)
