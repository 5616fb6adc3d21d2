# SPDX-License-Identifier: Apache-2.0
"""The fold's observations for checks: how often each was made in a range, and the place of the first."""

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from audit.fold.partials import make_partial_batch
from audit.fold.rows import Bools, FoldInputRows, Longs

LONGEST_DETAIL = 300


class CheckSightings:
    """The sightings of one range, by check."""

    def __init__(self, rows: FoldInputRows, since_ms: int) -> None:
        self._rows = rows
        self._since_ms = since_ms
        self._found: list[tuple[str, int, int, int | None, str]] = []

    def add_sighting_of_rows(
        self, check: str, rows: Bools | Longs, detail: Callable[[int], str], *, always: bool = False
    ) -> None:
        """Note these rows (a mask, or numbers); `detail` describes the first of them.

        Rows before `since_ms` are left out, unless `always`.
        """
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        if len(numbers) and self._since_ms and not always:
            times = np.maximum(
                self._rows.longs("timestamp")[numbers], self._rows.longs("max_timestamp")[numbers]
            )
            numbers = numbers[times >= self._since_ms]
        if len(numbers):
            self.add_sighting(check, len(numbers), int(numbers[0]), detail(int(numbers[0])))

    def add_sighting(self, check: str, count: int, row: int, detail: str) -> None:
        """Note `count` rows, of which `row` is the first."""
        offset = self._rows.value_at("offset", row)
        if offset is None:
            offset = self._rows.value_at("base_offset", row)
        self._found.append(
            (check, count, int(self._rows.longs("position")[row]), offset, detail[:LONGEST_DETAIL])
        )

    def partials(self) -> list[pa.RecordBatch]:
        """Return the sightings as partial summaries."""
        if not self._found:
            return []
        names = ("check", "count", "at_position", "at_offset", "detail")
        columns = dict(zip(names, zip(*self._found, strict=True), strict=True))
        return [
            make_partial_batch(
                "sighting", self._rows.place, {name: list(values) for name, values in columns.items()}
            )
        ]
