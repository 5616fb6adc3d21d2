# SPDX-License-Identifier: Apache-2.0
"""Finds where a source reaches for the machine by itself: clocks, chance, files, sockets, threads, processes.

What counts is the use of a name, however it was imported; not its import, and not what stands in an annotation.
"""

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

CLOCKS: Final = ("time", "datetime.datetime.now", "datetime.datetime.today", "datetime.datetime.utcnow")
CHANCE: Final = (
    "os.urandom",
    "os.getrandom",
    "random",
    "secrets",
    "uuid.uuid1",
    "uuid.uuid4",
    "numpy.random",
)
FILES: Final = ("open", "io.open", "os.open", "shutil", "tempfile", "storage.disk.filesystem.RealFileSystem")
SOCKETS: Final = (
    "socket",
    "select",
    "http.client",
    "urllib.request",
    "asyncio.open_connection",
    "asyncio.open_unix_connection",
    "asyncio.start_server",
    "asyncio.start_unix_server",
)
THREADS: Final = (
    "threading.Thread",
    "threading.Timer",
    "_thread",
    "concurrent.futures",
    "multiprocessing",
    "asyncio.to_thread",
)
PROCESSES: Final = (
    "subprocess",
    "signal",
    "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell",
    "os.fork",
    "os.kill",
    "os._exit",
    "os.system",
    "os.popen",
)
FORBIDDEN: Final = (*CLOCKS, *CHANCE, *FILES, *SOCKETS, *THREADS, *PROCESSES)
PATH_METHODS: Final = frozenset(
    {
        "read_text",
        "read_bytes",
        "write_text",
        "write_bytes",
        "iterdir",
        "rglob",
        "unlink",
        "touch",
        "is_file",
        "is_dir",
    }
)
"""Methods of pathlib.Path that go to the disk, and that nothing else of ours is called."""


class Use(NamedTuple):
    """A name that stands for a part of the machine, and the line it is used in."""

    line: int
    name: str


def uses(source: str) -> list[Use]:
    """All uses in a source, in order of lines."""
    tree = ast.parse(source)
    known = _imported(tree)
    return sorted({use for use in _walk(tree, known) if _is_forbidden(use.name)})


def _is_forbidden(name: str) -> bool:
    if name.startswith("."):
        return name[1:] in PATH_METHODS
    return any(name == each or name.startswith(f"{each}.") for each in FORBIDDEN)


def _imported(tree: ast.AST) -> dict[str, str]:
    """What each imported name stands for."""
    known = {"open": "open"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for each in node.names:
                whole = each.name if each.asname else each.name.partition(".")[0]
                known[each.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom):
            known |= {each.asname or each.name: f"{node.module}.{each.name}" for each in node.names}
    return known


def _walk(node: ast.AST, known: dict[str, str]) -> Iterator[Use]:
    if isinstance(node, ast.Attribute | ast.Name) and isinstance(node.ctx, ast.Load):
        name = _dotted(node, known)
        if name is not None:
            yield Use(node.lineno, name)
            return
        if isinstance(node, ast.Attribute):
            yield Use(node.lineno, f".{node.attr}")
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, known)


def _dotted(node: ast.expr, known: dict[str, str]) -> str | None:
    """The whole name of `a.b.c` where `a` was imported."""
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.Attribute):
        head = _dotted(node.value, known)
        return None if head is None else f"{head}.{node.attr}"
    return None
