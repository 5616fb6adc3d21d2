# SPDX-License-Identifier: Apache-2.0
"""Prints the results of commands: tables for people, JSON for programs."""

import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from coordinator.telemetry.escaping import escape_unprintable, escape_unseen
from coordinator.workers.operator_orders import Answer

PADDED_MAX: Final = 100
"""The maximum padding of a column in a pipe, so that one name of 30 KB does not make each line as long."""
LINES_MAX: Final = 3
"""The number of lines above which a value does not decide how a terminal shows the other rows."""
ABSENT: Final = "-"
GAP: Final = 3
"""The number of spaces between columns."""


def print_json(found: Sequence[object]) -> None:
    """Print a JSON array, which is what `--json` of every command prints, also for a single thing."""
    text = msgspec.json.format(msgspec.json.encode(found), indent=2).decode()
    sys.stdout.write(escape_unseen(text) + "\n")


def print_partitions(answer: Answer) -> None:
    """Print the tables of `partitions list`."""
    led = Counter(state.leader for state in answer.partitions)
    nodes = [(n.node, n.state, n.address, led[n.node], n.restarts, n.pid) for n in answer.nodes]
    print_table(["NODE", "STATE", "ADDRESS", "PARTITIONS", "RESTARTS", "PID"], nodes)
    _gap(True)
    rows = [
        (p.partition, p.leader if p.leader >= 0 else None, p.leader_epoch, p.state, p.reason)
        for p in answer.partitions
    ]
    print_table(["PARTITION", "LEADER", "EPOCH", "STATE", "REASON"], rows)


def _gap(wanted: bool) -> None:
    if wanted:
        sys.stdout.write("\n")


Cell = str | int | None


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Print rows below their columns' names, without lines between them.

    If the terminal is too narrow for a row, each value has a line of its own, and nothing is cut or folded. Rows with a
    value of more than LINES_MAX lines are printed so after the others, which may still be a table. In a pipe each row
    is one line, however long.
    """
    cells = [[escape_cell(value) for value in row] for row in rows]
    if not sys.stdout.isatty():
        sys.stdout.write(_as_lines(columns, cells))
        return
    console = Console(file=sys.stdout)
    too_wide: list[list[str]] = []
    rest: list[list[str]] = []
    for row in cells:
        (too_wide if max(map(cell_len, row)) > LINES_MAX * console.width else rest).append(row)
    if rest or not too_wide:
        fits = _fits(columns, rest, console.width)
        sys.stdout.write(_as_table(console, columns, rest) if fits else format_rows_vertically(columns, rest))
    _gap(bool(rest and too_wide))
    sys.stdout.write(format_rows_vertically(columns, too_wide))


def _as_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a line for each row, for grep and awk; a value wider than its column shifts only its own line."""
    widest = [min(max(map(cell_len, column)), PADDED_MAX) for column in zip(columns, *rows, strict=True)]
    return "".join(
        "".join(
            cell + " " * (max(0, wide - cell_len(cell)) + GAP) for cell, wide in zip(row, widest, strict=True)
        ).rstrip()
        + "\n"
        for row in (columns, *rows)
    )


def _as_table(console: Console, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    with console.capture() as captured:
        console.print(table)
    return "".join(f"{line.rstrip()}\n" for line in captured.get().splitlines())


def _fits(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    widest = [max(map(cell_len, column)) for column in zip(columns, *rows, strict=True)]
    return sum(widest) + GAP * len(widest) <= width


def format_rows_vertically(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a line for each value of each row, and an empty line between rows."""
    label = max(map(cell_len, columns)) + 1
    blocks = (
        "".join(f"{name:<{label}} {value}\n" for name, value in zip(columns, row, strict=True))
        for row in rows
    )
    return "\n".join(blocks)


def escape_cell(value: Cell) -> str:
    """Return the value as text with control characters as escapes, or ABSENT if there is no value."""
    return ABSENT if value is None or value == "" else escape_unprintable(str(value))
