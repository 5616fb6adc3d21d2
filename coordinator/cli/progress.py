# SPDX-License-Identifier: Apache-2.0
"""Progress bars of commands that may take long: on standard error, and only if that is a terminal."""

import sys
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

T = TypeVar("T")


class ProgressBar:
    """Passes things on one after the other, and shows how many of them are done; the bar goes at the end."""

    def __init__(self, doing: str) -> None:
        """`doing` names the work: "checking partitions"."""
        self._doing = doing

    def __call__(self, things: Collection[T]) -> Iterator[T]:
        """Yield all of `things`."""
        if not sys.stderr.isatty():
            yield from things
            return
        from rich.console import Console
        from rich.progress import Progress

        with Progress(*_columns(), console=Console(stderr=True), transient=True) as progress:
            yield from progress.track(things, description=self._doing)


def _columns() -> "Iterator[ProgressColumn]":
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    yield TextColumn("{task.description}")
    yield BarColumn()
    yield MofNCompleteColumn()
    yield TimeRemainingColumn()
