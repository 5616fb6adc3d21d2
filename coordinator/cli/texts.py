# SPDX-License-Identifier: Apache-2.0
"""Phrases that several commands print."""

from collections.abc import Sequence
from typing import Final

NAMED_MAX: Final = 5


def format_count(number: int, thing: str) -> str:
    """Return a count with its noun: `1 group`, `2 groups`; `thing` is the singular."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def format_first_few(things: Sequence[object]) -> str:
    """Return the first few things as a text, with the number of further ones."""
    more = len(things) - NAMED_MAX
    return f"{', '.join(map(str, things[:NAMED_MAX]))}{f' and {more} more' if more > 0 else ''}"
