# SPDX-License-Identifier: Apache-2.0
"""How the story is told: headings, sentences with the time, tables; plain text where there is no terminal."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.console import Console, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.theme import Theme

WIDTH: Final = 100
ROOMY_WIDTH: Final = 92
TIME_WIDTH: Final = 8
THEME: Final = Theme({"ada": "bold cyan", "bob": "bold magenta", "good": "bold green", "bad": "bold red"})
ABSENT: Final = "-"


class Screen:
    """Standard output, and standard error for what went wrong."""

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._out = Console(theme=THEME, highlight=False)
        self._errors = Console(theme=THEME, highlight=False, stderr=True)
        for console in (self._out, self._errors):
            console.width = min(console.width, WIDTH) if console.is_terminal else WIDTH

    def title(self, text: str) -> None:
        """Print what this is all about."""
        self._out.print(f"[bold]{text}[/]")

    def heading(self, text: str) -> None:
        """Begin a chapter."""
        self._out.print()
        self._out.rule(f"[bold]{text}[/]", align="left", style="dim")

    def say(self, text: str) -> None:
        """Print a sentence, with the time; rich's markup counts."""
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_column(width=TIME_WIDTH, justify="right", style="dim")
        line.add_column()
        line.add_row(f"{time.monotonic() - self._began:.1f} s", text)
        self._print(line)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Turn a spinner on a terminal while something takes its time."""
        return self._out.status(text)

    def table(self, partitions: Sequence[int], rows: Mapping[str, Mapping[int, object]]) -> None:
        """Print a column for each partition, a row for each fact."""
        table = Table(box=SIMPLE_HEAD, padding=0, show_edge=False)
        table.add_column("partition", no_wrap=True)
        width = 4 if self._out.width >= ROOMY_WIDTH else 3
        for partition in partitions:
            table.add_column(str(partition), justify="right", no_wrap=True, min_width=width)
        for label, facts in rows.items():
            table.add_row(label, *(cell(facts.get(partition)) for partition in partitions))
        self._print(Padding(table, (1, 0, 0, TIME_WIDTH + 2)))

    def broken(self, why: str, outputs: Mapping[str, str] | None = None) -> None:
        """Print what went wrong, and the last that each process had to say."""
        for name, output in (outputs or {}).items():
            self._errors.print(f"--- the last that {name} wrote to its log", style="dim")
            self._errors.print(escape(output or "nothing"))
        self._errors.print(f"[bad]The demo failed:[/] {escape(why)}")

    def _print(self, what: RenderableType) -> None:
        """Print without the blanks that rich fills its lines up with: in a file they are a nuisance."""
        with self._out.capture() as captured:
            self._out.print(what)
        self._out.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
        self._out.file.flush()


def cell(value: object) -> str:
    """A name in its colour, a number, or a dash."""
    if value is None:
        return ABSENT
    return f"[{value}]{value}[/]" if value in THEME.styles else str(value)
