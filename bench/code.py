# SPDX-License-Identifier: Apache-2.0
"""Figures of the code itself: `python bench/code.py [TREE ...]`, side by side for trees of different commits.

Everything is counted from the syntax trees with the standard library alone; generated code is left out.
code_limits.json holds how much there may be of what we want less of: `--check`, which `make lint` runs, fails where
there is more, and where a limit is higher than it need be or than it has been; `--lower` lowers the limits to what
there is; `--show WORD` lists the places. A *room* is a folder of a package or a module in its root; two rooms that
import each other, also at type checking, are a *pair*: neither can be read without the other.
"""

import argparse
import ast
import json
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Final

PACKAGES: Final = ("protocol", "storage", "coordinator", "audit")
GENERATED: Final = "protocol/hot"
LIMITS: Final = Path("bench/code_limits.json")
LONG_FUNCTION: Final = 40
MANY_PARAMETERS: Final = 8
SHORT_DOCSTRING: Final = 4
SUBJECT_MAX: Final = 72
OPENERS: Final = re.compile(r"(What|Whether|Those|This|It)\b")
PRIVATE_WORDS: Final = frozenset(
    {
        "beside",
        "hear",
        "hears",
        "heard",
        "mend",
        "mends",
        "mended",
        "nobody",
        "nowhere",
        "owed",
        "said",
        "somebody",
        "tell",
        "tells",
        "told",
        "void",
        "whoever",
    }
)
SLICING: Final = re.compile(
    r"(AT_ONCE|AT_A_TIME|PER_(STEP|SLICE|TURN|QUESTION|COMMIT|APPEND)|(SLICE|TURN)_NS)$"
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
Named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Module:
    """One source file of a tree."""

    name: str
    path: str
    text: str
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package in the tree's root."""
        return self.name.split(".")[0]

    @property
    def room(self) -> str:
        """Package and first folder or module below it."""
        return ".".join(self.name.split(".")[:2])

    @cached_property
    def functions(self) -> list[Function]:
        """All functions, methods and nested ones."""
        return [node for node in ast.walk(self.tree) if isinstance(node, Function)]

    @cached_property
    def docstrings(self) -> list[tuple[int, str]]:
        """Line and text of each docstring: of the module, its classes and its functions."""
        documented = [node for node in ast.walk(self.tree) if isinstance(node, Named | ast.Module)]
        found = [(getattr(node, "lineno", 1), ast.get_docstring(node)) for node in documented]
        return [(line, text) for line, text in found if text]

    @cached_property
    def notes(self) -> list[tuple[int, str]]:
        """Line and text of each string below a constant or an attribute, which documents it."""
        bodies = [node.body for node in ast.walk(self.tree) if isinstance(node, Named | ast.Module)]
        return [
            (each.lineno, each.value.value)
            for body in bodies
            for each in body[1:]
            if isinstance(each, ast.Expr)
            and isinstance(each.value, ast.Constant)
            and isinstance(each.value.value, str)
        ]

    def place(self, line: int) -> str:
        """How a line of it is shown."""
        return f"{self.path}:{line}"


def read(root: Path, packages: Sequence[str]) -> list[Module]:
    """Read the modules of some packages below `root`."""
    found = []
    for path in sorted(path for package in packages for path in (root / package).rglob("*.py")):
        place = path.relative_to(root)
        if not place.is_relative_to(GENERATED):
            text = path.read_text()
            name = ".".join(place.with_suffix("").parts).removesuffix(".__init__")
            found.append(Module(name, str(place), text, ast.parse(text)))
    return found


# --- what is limited: each function lists the places, of which there may be as many as the limit says ---

Finder = Callable[[Sequence[Module]], list[str]]


def cycles(modules: Sequence[Module]) -> list[str]:
    """Circles of modules that import each other, also at type checking."""
    known = {module.name for module in modules}
    imports = {module.name: _targets(module, known) for module in modules}
    reached = {name: _reachable(name, imports) for name in imports}
    circles = {
        tuple(sorted({name} | {other for other in reached[name] if name in reached[other]}))
        for name in imports
        if name in reached[name]
    }
    return [" ".join(circle) for circle in sorted(circles)]


def _targets(module: Module, known: set[str]) -> set[str]:
    """The most exact names among `known` that a module imports."""
    found = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            exact = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in known else node.module for name in exact}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & known


def _reachable(start: str, imports: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    todo = list(imports[start])
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            todo += imports[name]
    return found


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


def _pairs(modules: Sequence[Module]) -> list[str]:
    return [f"{one} {other}" for one, other in pairs(modules)]


def _ambiguous_classes(modules: Sequence[Module]) -> list[str]:
    """Names that several classes have, private ones too."""
    places = defaultdict(list)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(module.place(node.lineno))
    return [f"{name}: {' '.join(found)}" for name, found in sorted(places.items()) if len(found) > 1]


def _openers(modules: Sequence[Module]) -> list[str]:
    return _first_lines(modules, lambda module: module.docstrings, _opens_wrongly)


def _openers_of_notes(modules: Sequence[Module]) -> list[str]:
    return _first_lines(modules, lambda module: module.notes, _opens_wrongly)


def _short_docstrings(modules: Sequence[Module]) -> list[str]:
    return _first_lines(modules, lambda module: module.docstrings, _is_short)


def _opens_wrongly(first_line: str) -> bool:
    return OPENERS.match(first_line) is not None


def _is_short(first_line: str) -> bool:
    return len(first_line.split()) < SHORT_DOCSTRING


def _first_lines(
    modules: Sequence[Module],
    texts: Callable[[Module], list[tuple[int, str]]],
    is_wanted: Callable[[str], bool],
) -> list[str]:
    """Return the places and first lines of the texts whose first line is wanted."""
    found = [(module.place(line), text.splitlines()[0]) for module in modules for line, text in texts(module)]
    return [f"{place}: {first}" for place, first in found if is_wanted(first)]


def _private_words(modules: Sequence[Module]) -> list[str]:
    """Words in names, texts and comments; a name counts by its parts."""
    return [
        f"{module.place(number)}: {word}"
        for module in modules
        for number, line in enumerate(module.text.splitlines(), 1)
        for word in re.findall(r"[A-Z]?[a-z]+", line)
        if word.lower() in PRIVATE_WORDS
    ]


def _long_functions(modules: Sequence[Module]) -> list[str]:
    return [
        f"{module.place(node.lineno)}: {node.name}"
        for module in modules
        for node in module.functions
        if _length(node) > LONG_FUNCTION
    ]


def _length(node: Function) -> int:
    return (node.end_lineno or 0) - node.lineno + 1


def _many_parameters(modules: Sequence[Module]) -> list[str]:
    return [
        f"{module.place(node.lineno)}: {node.name}"
        for module in modules
        for node in module.functions
        if _parameters(node) > MANY_PARAMETERS
    ]


def _parameters(node: Function) -> int:
    names = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def _siblings(modules: Sequence[Module]) -> list[str]:
    """The modules and folders of the fullest package."""
    inside = defaultdict(list)
    for module in modules:
        inside[module.name.rpartition(".")[0]].append(module.name)
    return max(inside.values(), key=len, default=[])


def _slicing(modules: Sequence[Module]) -> list[str]:
    """Constants that say how much is done before others get a turn."""
    return [
        f"{module.place(node.lineno)}: {node.target.id}"
        for module in modules
        for node in module.tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and SLICING.search(node.target.id)
    ]


LIMITED: Final[Mapping[str, Finder]] = {
    "import cycles": cycles,
    "pairs of rooms that import each other": _pairs,
    "class names with several meanings": _ambiguous_classes,
    "docstrings that open with What, Whether, Those, This, It": _openers,
    "notes of constants and attributes that open so": _openers_of_notes,
    f"docstrings whose first line has under {SHORT_DOCSTRING} words": _short_docstrings,
    "words of our own, where the field has one": _private_words,
    f"functions over {LONG_FUNCTION} lines": _long_functions,
    f"functions with over {MANY_PARAMETERS} parameters": _many_parameters,
    "modules and folders in the fullest package": _siblings,
    "constants that slice work": _slicing,
}


def counts(root: Path) -> dict[str, int]:
    """Count in a checkout what is limited, by name."""
    product = read(root, PACKAGES)
    return {name: len(find(product)) for name, find in LIMITED.items()}


def problems(found: Mapping[str, int], limits: Mapping[str, int], lowest: Mapping[str, int]) -> list[str]:
    """Say where counts and limits do not agree, and which limits are above the lowest that they have been."""
    lower = "run `python bench/code.py --lower`"
    return [
        *(
            f"{name}: {count}, and the limit is {limits.get(name, 0)} (`--show` lists the places)"
            for name, count in found.items()
            if count > limits.get(name, 0)
        ),
        *(
            f"{name}: {found.get(name, 0)}, and the limit is {limit}: {lower}"
            for name, limit in limits.items()
            if limit > found.get(name, 0)
        ),
        *(
            f"{name}: the limit has been {lowest[name]} and is {limit}: limits only sink"
            for name, limit in limits.items()
            if limit > lowest.get(name, limit)
        ),
    ]


def read_limits(root: Path) -> dict[str, int]:
    """Read the limits of a checkout; there are none where it has no such file."""
    path = root / LIMITS
    return _parsed(path.read_text()) if path.exists() else {}


def lowest_limits(root: Path) -> dict[str, int]:
    """Read the lowest limit of each name in all commits of a checkout; there are none without a history."""
    lowest: dict[str, int] = {}
    for commit in _git(root, "log", "--format=%H", "--", str(LIMITS)).split():
        for name, limit in _parsed(_git(root, "show", f"{commit}:{LIMITS}")).items():
            lowest[name] = min(limit, lowest.get(name, limit))
    return lowest


def _git(root: Path, *arguments: str) -> str:
    """Return what git prints, which is nothing where it fails."""
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


def _parsed(text: str) -> dict[str, int]:
    return {str(name): int(limit) for name, limit in json.loads(text or "{}").items()}


def lower(root: Path) -> None:
    """Write what there is as the limits, where it is less; a name that has no limit yet gets one."""
    limits = read_limits(root)
    lowered = {name: min(count, limits.get(name, count)) for name, count in counts(root).items()}
    (root / LIMITS).write_text(json.dumps(lowered, indent=2) + "\n")


# --- what is printed ---


def figures(root: Path) -> dict[str, str]:
    """What there is to count in a checkout, by name, as it is printed."""
    product, tests = read(root, PACKAGES), read(root, ["tests"])
    rows: dict[str, str] = {}
    for package in PACKAGES:
        rows |= _sizes(package, [module for module in product if module.package == package])
    rows["lines of the product"] = f"{sum(len(module.text.splitlines()) for module in product):,}"
    rows |= {name: f"{len(find(product)):,}" for name, find in LIMITED.items()}
    counted: dict[str, int] = {
        "file names used twice or more": _ambiguous_files(product),
        "lines with Any in coordinator": _lines_with("Any", product, "coordinator"),
        "NewTypes": sum(module.text.count("NewType(") for module in product),
        "casts in tests": sum(call == "cast" for call in _calls(tests)),
        "patched attributes in tests": sum(call == "monkeypatch.setattr" for call in _calls(tests)),
    }
    rows |= {name: f"{count:,}" for name, count in counted.items()}
    return rows | _history(root)


def _sizes(package: str, modules: Sequence[Module]) -> dict[str, str]:
    files = sorted(len(module.text.splitlines()) for module in modules)
    lengths = sorted(_length(node) for module in modules for node in module.functions)
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


def _ambiguous_files(modules: Sequence[Module]) -> int:
    return sum(count > 1 for count in Counter(module.name.split(".")[-1] for module in modules).values())


def _lines_with(word: str, modules: Sequence[Module], package: str) -> int:
    pattern = re.compile(rf"\b{word}\b")
    lines = (line for module in modules if module.package == package for line in module.text.splitlines())
    return sum(bool(pattern.search(line)) for line in lines)


def _calls(modules: Sequence[Module]) -> Iterator[str]:
    """What is called, as it is written: neither in strings nor in comments."""
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call):
                yield ast.unparse(node.func)


def _history(root: Path) -> dict[str, str]:
    """How commits describe themselves; nothing where there is no git, or no history."""
    log = _git(root, "log", "--format=%s%x00%b%x01")
    commits = [one.strip().partition("\0") for one in log.split("\1") if one.strip()]
    if not commits:
        return {}
    long = sum(len(subject) > SUBJECT_MAX for subject, _, _ in commits)
    described = sum(bool(body.strip()) for _, _, body in commits)
    return {"commits, long subjects, with a body": f"{len(commits)}, {long}, {described}"}


def _print_table(trees: Sequence[Path]) -> None:
    columns = [figures(tree) for tree in trees]
    width = max(len(value) for column in columns for value in column.values()) + 2
    for name in columns[-1]:
        print(f"{name:<58}" + "".join(f"{column.get(name, '-'):>{width}}" for column in columns))


def _print_places(root: Path, word: str) -> None:
    product = read(root, PACKAGES)
    for name, find in LIMITED.items():
        if word in name:
            print(name, *find(product), sep="\n  ")


def _print_problems(root: Path) -> int:
    found = problems(counts(root), read_limits(root), lowest_limits(root))
    for problem in found:
        print(f"{LIMITS}: {problem}", file=sys.stderr)
    return 1 if found else 0


def main(arguments: Sequence[str]) -> int:
    """Print the figures of each tree in a column of its own; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python bench/code.py", description=__doc__.splitlines()[0])
    here = Path(__file__).resolve().parents[1]
    parser.add_argument(
        "trees", nargs="*", type=Path, default=[here], metavar="TREE", help="a checkout (this)"
    )
    doing = parser.add_mutually_exclusive_group()
    doing.add_argument("--check", action="store_true", help="compare with the limits")
    doing.add_argument("--lower", action="store_true", help="lower the limits to what there is")
    doing.add_argument("--show", metavar="WORD", help="list the places of what is limited and named so")
    options = parser.parse_args(arguments)
    trees: list[Path] = [tree.resolve() for tree in options.trees]
    if options.check:
        return max(map(_print_problems, trees))
    if options.lower:
        for tree in trees:
            lower(tree)
    elif options.show is not None:
        for tree in trees:
            _print_places(tree, options.show)
    else:
        _print_table(trees)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
