# SPDX-License-Identifier: Apache-2.0
"""How the story is told: headings, sentences with the time, tables; plain text where there is no terminal."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final

from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.theme import Theme

WIDTH: Final = 100
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

    @property
    def elapsed_s(self) -> float:
        """Seconds since the story began."""
        return time.monotonic() - self._began

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
        line.add_row(f"{self.elapsed_s:.1f} s", text)
        self._out.print(line)

    def waiting(self, text: str) -> AbstractContextManager[object]:
        """Turn a spinner on a terminal while something takes its time."""
        return self._out.status(text)

    def table(self, partitions: Sequence[int], rows: Mapping[str, Mapping[int, object]]) -> None:
        """Print a column for each partition, a row for each fact."""
        table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
        table.add_column("partition", no_wrap=True)
        for partition in partitions:
            table.add_column(str(partition), justify="right", no_wrap=True, min_width=4)
        for label, facts in rows.items():
            table.add_row(label, *(cell(facts.get(partition)) for partition in partitions))
        self._out.print(Padding(table, (0, 0, 0, TIME_WIDTH + 2)))

    def broken(self, why: str, outputs: Mapping[str, str]) -> None:
        """Print what went wrong, and the last that each process had to say."""
        for name, output in outputs.items():
            self._errors.print(f"--- the last lines of {name}", style="dim")
            self._errors.print(escape(output))
        self._errors.print(f"[bad]The demo failed:[/] {escape(why)}")


def cell(value: object) -> str:
    """A name in its colour, a number, or a dash."""
    if value is None:
        return ABSENT
    return f"[{value}]{value}[/]" if value in THEME.styles else str(value)
