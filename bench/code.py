# SPDX-License-Identifier: Apache-2.0
"""Figures of the code itself: `python -m bench code [TREE ...]`, side by side for trees of different commits.

Counted from the syntax trees, generated code left out. A *room* is a folder of a package or a module in its root; two
rooms that import each other, also at type checking, are a *pair*: neither can be read without the other.
"""

import argparse
import ast
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Final

PACKAGES: Final = ("protocol", "storage", "coordinator", "audit")
GENERATED: Final = "protocol/hot"
LONG_FUNCTION: Final = 40
SUBJECT_MAX: Final = 72
WORDS: Final = re.compile(r"\b(tell|told|tells|nobody|whoever)\b", re.IGNORECASE)
MEANINGLESS: Final = re.compile(r"(The same|See )")

Function = ast.FunctionDef | ast.AsyncFunctionDef
Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Module:
    """One source file of a tree."""

    name: str
    text: str
    tree: ast.Module

    @property
    def room(self) -> str:
        """Package and first folder or module below it."""
        return ".".join(self.name.split(".")[:2])

    @property
    def functions(self) -> list[Function]:
        """All functions, methods and nested ones."""
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]


def read(root: Path, packages: Sequence[str]) -> list[Module]:
    """The modules of some packages below `root`."""
    found = []
    for path in sorted(path for package in packages for path in (root / package).rglob("*.py")):
        place = path.relative_to(root)
        if not place.is_relative_to(GENERATED):
            text = path.read_text()
            name = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
            found.append(Module(name, text, ast.parse(text)))
    return found


def figures(root: Path) -> dict[str, str]:
    """What there is to count in a checkout, by name, as it is printed."""
    product, tests = read(root, PACKAGES), read(root, ["tests"])
    rows: dict[str, str] = {}
    for package in PACKAGES:
        rows |= _sizes(package, [module for module in product if module.name.split(".")[0] == package])
    counted: dict[str, Callable[[], int]] = {
        "pairs of rooms that import each other": lambda: len(pairs(product)),
        f"functions over {LONG_FUNCTION} lines": lambda: sum(n > LONG_FUNCTION for n in _lengths(product)),
        "names of classes that stand for several": lambda: _ambiguous(_class_names(product)),
        "file names used twice or more": lambda: _ambiguous(module.name.split(".")[-1] for module in product),
        "lines with Any in coordinator": lambda: _lines_with("Any", product, "coordinator"),
        "NewTypes": lambda: sum(module.text.count("NewType(") for module in product),
        "docstrings that begin 'The same' or 'See'": lambda: sum(map(_is_meaningless, _docstrings(product))),
        "tell, told, nobody, whoever": lambda: sum(len(WORDS.findall(module.text)) for module in product),
        "casts in tests": lambda: sum(call == "cast" for call in _calls(tests)),
        "patched attributes in tests": lambda: sum(call == "monkeypatch.setattr" for call in _calls(tests)),
    }
    rows |= {name: f"{count():,}" for name, count in counted.items()}
    return rows | _history(root)


def _sizes(package: str, modules: Sequence[Module]) -> dict[str, str]:
    files = sorted(len(module.text.splitlines()) for module in modules)
    lengths = sorted(_lengths(modules))
    in_root = [module for module in modules if module.name.count(".") == 1]
    public = [node for module in modules for node in _named(module.tree) if not node.name.startswith("_")]
    described = sum(ast.get_docstring(node) is not None for node in public)
    return {
        f"{package}: files, lines": f"{len(files)}, {sum(files):,}",
        f"{package}: lines of a file, median/p90/max": _spread(files, 0.5, 0.9, 1),
        f"{package}: lines of a function, median/p90/p99/max": _spread(lengths, 0.5, 0.9, 0.99, 1),
        f"{package}: public names with a docstring": f"{described / max(len(public), 1):.1%}",
        f"{package}: modules and folders in its root": f"{len({module.name for module in in_root})}",
    }


def _named(scope: ast.Module | ast.ClassDef) -> Iterator[Named]:
    """Classes and functions that others can use: those within functions are left out."""
    for node in scope.body:
        if isinstance(node, Named):
            yield node
        if isinstance(node, ast.ClassDef):
            yield from _named(node)


def _spread(values: Sequence[int], *shares: float) -> str:
    if not values:
        return "-"
    return "/".join(str(values[min(int(len(values) * share), len(values) - 1)]) for share in shares)


def _lengths(modules: Sequence[Module]) -> list[int]:
    return [(node.end_lineno or 0) - node.lineno + 1 for module in modules for node in module.functions]


def pairs(modules: Sequence[Module]) -> list[tuple[str, str]]:
    """Rooms of one package that import each other."""
    known = {module.name for module in modules}
    arrows = {
        (module.room, ".".join(target.split(".")[:2]))
        for module in modules
        for target in _imported(module.tree)
        if target in known and "." in target
    }
    rooms = sorted({room for arrow in arrows for room in arrow})
    return [
        (one, other)
        for one, other in combinations(rooms, 2)
        if {(one, other), (other, one)} <= arrows and one.split(".")[0] == other.split(".")[0]
    ]


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def _ambiguous(names: Iterator[str]) -> int:
    return sum(count > 1 for count in Counter(names).values())


def _class_names(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        yield from (node.name for node in module.tree.body if isinstance(node, ast.ClassDef))


def _lines_with(word: str, modules: Sequence[Module], package: str) -> int:
    pattern = re.compile(rf"\b{word}\b")
    return sum(
        bool(pattern.search(line))
        for module in modules
        if module.name.split(".")[0] == package
        for line in module.text.splitlines()
    )


def _calls(modules: Sequence[Module]) -> Iterator[str]:
    """What is called, as it is written: neither in strings nor in comments."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func)


def _docstrings(modules: Sequence[Module]) -> Iterator[str]:
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, Named):
                yield ast.get_docstring(node) or ""


def _is_meaningless(docstring: str) -> bool:
    return MEANINGLESS.match(docstring) is not None


def _history(root: Path) -> dict[str, str]:
    """How commits describe themselves; nothing where there is no git, or no history."""
    command = ["git", "-C", str(root), "log", "--format=%s%x00%b%x01"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    commits = [one.strip().partition("\0") for one in done.stdout.split("\1") if one.strip()]
    if done.returncode != 0 or not commits:
        return {}
    long = sum(len(subject) > SUBJECT_MAX for subject, _, _ in commits)
    described = sum(bool(body.strip()) for _, _, body in commits)
    return {"commits, long subjects, with a body": f"{len(commits)}, {long}, {described}"}


def main(arguments: Sequence[str]) -> int:
    """Print the figures of each tree in a column of its own; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench code", description=__doc__.splitlines()[0])
    here = Path(__file__).parents[1]
    parser.add_argument(
        "trees", nargs="*", type=Path, default=[here], metavar="TREE", help="a checkout (this)"
    )
    trees: list[Path] = parser.parse_args(arguments).trees
    columns = [figures(tree.resolve()) for tree in trees]
    width = max(len(value) for column in columns for value in column.values()) + 2
    for name in columns[-1]:
        print(f"{name:<55}" + "".join(f"{column.get(name, '-'):>{width}}" for column in columns))
    return 0
